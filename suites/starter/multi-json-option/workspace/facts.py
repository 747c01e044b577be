def collect():
    return {"name": "belay", "size": 3}

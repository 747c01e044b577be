from person import Person


def to_dict(p):
    return {"name": p.name}


def from_dict(d):
    return Person(d["name"])

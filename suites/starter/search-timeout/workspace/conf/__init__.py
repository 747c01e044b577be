import os

NAME = os.environ.get("STAGE", "prod")

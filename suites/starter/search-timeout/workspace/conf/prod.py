from conf.base import *  # noqa

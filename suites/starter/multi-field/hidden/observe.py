from person import Person
from store import from_dict, to_dict


def refused(make):
    try:
        make()
    except ValueError:
        return "refused"
    return "taken"


p = Person("Ada", nickname="Countess")
print(p.display(), "|", from_dict(to_dict(p)).display())
print(Person("Ada").display(), "|", from_dict({"name": "Ada"}).display(), "|", from_dict(to_dict(Person("Ada"))).display())
for n in (20, 21):
    print(n, refused(lambda: Person("Ada", nickname="x" * n)), refused(lambda: from_dict({"name": "Ada", "nickname": "x" * n})))

def as_text(facts):
    return "\n".join("%s: %s" % (k, facts[k]) for k in sorted(facts))

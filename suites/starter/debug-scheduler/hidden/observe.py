from plan.graph import Cycle, Graph
from plan.runner import Runner


def graph(**needs):
    g = Graph()
    for name, others in needs.items():
        g.add(name, others)
    return g


def order(g):
    try:
        return g.order()
    except Cycle:
        return "cycle"
    except KeyError as e:
        return "no job %s" % e


print(order(graph(d=["b", "c"], b=["a"], c=["a"], a=[])))
print(order(graph(a=["b"], b=["c"], c=["a"])), order(graph(x=[], a=["a"])), order(graph(a=["nobody"])))

for retries in (0, 1, 3):
    calls = []

    def do(name):
        calls.append(name)
        if name == "broken" or name == "shaky" and calls.count("shaky") < 3:
            raise RuntimeError(name)

    g = graph(broken=[], shaky=[], child=["broken"], grandchild=["child"], other=["shaky"], free=[])
    print(retries, Runner(g, retries).run(do).lines(), calls)

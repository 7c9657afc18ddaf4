"""Parts of a graph for other code generators: patterns that recognise them, regions that hold them.

pattern.py  the pattern language          region.py     a claimed part of a graph, and the operator that
            stands for it
partition.py  from a graph to regions     dependence.py what must come before what; which groups would make a
              cycle
"""

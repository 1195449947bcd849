"""The flowchart of a policy: a tree of questions that can be printed and followed by hand.

`askwise.case` groups and words the likely answers to a question as a flowchart does, by the other names below.
"""

from askwise.explain.chart import Flowchart
from askwise.explain.cuts import Grouping, group_categories, group_numbers, neat_cut
from askwise.explain.tree import Answer
from askwise.explain.words import interval_in_words, listed_values, number
from askwise.table.desk import percent

__all__ = [
    "Answer",
    "Flowchart",
    "Grouping",
    "group_categories",
    "group_numbers",
    "interval_in_words",
    "listed_values",
    "neat_cut",
    "number",
    "percent",
]

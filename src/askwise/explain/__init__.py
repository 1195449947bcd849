"""The flowchart of a policy: a tree of questions that can be printed and followed by hand."""

from askwise.explain.chart import Flowchart

__all__ = [
    "Flowchart",
]

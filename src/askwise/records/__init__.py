"""Evaluation on records in which tests were done for some cases and not for others: weights, simulation, and both."""

from askwise.records.completions import completions
from askwise.records.estimators import ASSUMPTIONS, MISSING, Overlap, Paths
from askwise.records.runs import RecordRuns

__all__ = ["ASSUMPTIONS", "MISSING", "Overlap", "Paths", "RecordRuns", "completions"]

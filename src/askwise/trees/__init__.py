"""Ordinary scikit-learn classifiers of our own: a crisp tree and a fuzzy one, grown for partial knowledge if wished."""

from askwise.trees.fuzzy_tree import FuzzyRule, FuzzyTreeClassifier
from askwise.trees.partitions import Partition, trapezium_membership
from askwise.trees.subset_cart import CartTree, SubsetCartClassifier

__all__ = [
    "CartTree",
    "FuzzyRule",
    "FuzzyTreeClassifier",
    "Partition",
    "SubsetCartClassifier",
    "trapezium_membership",
]

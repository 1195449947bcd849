"""Scikit-learn classifiers: a crisp tree, a fuzzy tree, and a list of hand-written rules."""

from askwise.trees.cart_growth import CartTree
from askwise.trees.fuzzy_growth import FuzzyRule
from askwise.trees.fuzzy_tree import FuzzyTreeClassifier
from askwise.trees.partitions import Partition, trapezium_membership
from askwise.trees.rule_list import RuleListClassifier
from askwise.trees.subset_cart import SubsetCartClassifier

__all__ = [
    "CartTree",
    "FuzzyRule",
    "FuzzyTreeClassifier",
    "Partition",
    "RuleListClassifier",
    "SubsetCartClassifier",
    "trapezium_membership",
]

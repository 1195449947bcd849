"""The expected value of a feature before it is acquired: v_q of the paper, from completions or by a network."""

from askwise.value.base import State, Value
from askwise.value.gain import PRICE_RULES, by_rule, gain, per_cost, price_power
from askwise.value.neighbors import NeighborValue
from askwise.value.network import ValueEstimator
from askwise.value.savings import NeighborSavings, Savings
from askwise.value.targets import HeldOutStates, held_out_states, value_targets
from askwise.value.usual import SeenGains, UsualGains

__all__ = [
    "PRICE_RULES",
    "HeldOutStates",
    "NeighborSavings",
    "NeighborValue",
    "Savings",
    "SeenGains",
    "State",
    "UsualGains",
    "Value",
    "ValueEstimator",
    "by_rule",
    "gain",
    "held_out_states",
    "per_cost",
    "price_power",
    "value_targets",
]

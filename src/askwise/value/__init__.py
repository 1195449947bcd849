"""What a feature is expected to be worth before it is bought: v_q of the paper, by completions or by a network."""

from askwise.value.base import State, Value
from askwise.value.gain import per_cost
from askwise.value.neighbors import NeighborValue
from askwise.value.network import ValueEstimator
from askwise.value.targets import HeldOutStates, held_out_states, value_targets

__all__ = [
    "HeldOutStates",
    "NeighborValue",
    "State",
    "Value",
    "ValueEstimator",
    "held_out_states",
    "per_cost",
    "value_targets",
]

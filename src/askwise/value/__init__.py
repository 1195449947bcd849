"""What a feature is expected to be worth before it is bought: v_q of the paper, by completions or by a network."""

from askwise.value.gain import per_cost
from askwise.value.neighbours import NeighbourValue
from askwise.value.network import ValueEstimator
from askwise.value.targets import Rehearsal, rehearse, value_targets

__all__ = ["NeighbourValue", "Rehearsal", "ValueEstimator", "per_cost", "rehearse", "value_targets"]

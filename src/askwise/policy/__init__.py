"""Policies: which feature to acquire next."""

from askwise.policy.base import Policy
from askwise.policy.distilled import Distilled
from askwise.policy.dqn import DQN
from askwise.policy.expected_saving import ExpectedSaving
from askwise.policy.greedy import Greedy
from askwise.policy.lookahead import Lookahead
from askwise.policy.orders import Random, Static
from askwise.policy.planned import Planned

__all__ = [
    "DQN",
    "Distilled",
    "ExpectedSaving",
    "Greedy",
    "Lookahead",
    "Planned",
    "Policy",
    "Random",
    "Static",
]

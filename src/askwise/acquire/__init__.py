"""Feature acquisition: the loop, policies, stopping rules, and a session for one case."""

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.acquisition import Acquisition, PolicyMasks, run_episodes
from askwise.acquire.case.session import Session, Suggestion
from askwise.acquire.flowchart.chart import Flowchart
from askwise.acquire.policies.base import Policy
from askwise.acquire.policies.distilled import Distilled
from askwise.acquire.policies.dqn import DQN
from askwise.acquire.policies.greedy import Greedy
from askwise.acquire.policies.lookahead import Lookahead
from askwise.acquire.policies.orders import Random, Static
from askwise.acquire.policies.planned import Planned
from askwise.acquire.stopping.calibrated_stop import CalibratedStop
from askwise.acquire.stopping.handover import Handover
from askwise.acquire.stopping.pays_off import ExpectedSaving, PaysOff
from askwise.acquire.stopping.rules import Confidence, Stopping
from askwise.acquire.suggested_set import SuggestedSet
from askwise.acquire.trajectory import Trajectory

__all__ = [
    "DQN",
    "Acquisition",
    "CalibratedStop",
    "Confidence",
    "Distilled",
    "ExpectedSaving",
    "FeatureAcquirer",
    "Flowchart",
    "Greedy",
    "Handover",
    "Lookahead",
    "PaysOff",
    "Planned",
    "Policy",
    "PolicyMasks",
    "Random",
    "Session",
    "Static",
    "Stopping",
    "SuggestedSet",
    "Suggestion",
    "Trajectory",
    "run_episodes",
]

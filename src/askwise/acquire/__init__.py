"""Feature acquisition: the loop, policies, stopping rules, and a session for one case."""

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.acquisition import Acquisition, PolicyMasks, run_episodes
from askwise.acquire.calibrated_stop import CalibratedStop
from askwise.acquire.distilled import Distilled
from askwise.acquire.dqn import DQN
from askwise.acquire.flowchart.chart import Flowchart
from askwise.acquire.lookahead import Lookahead
from askwise.acquire.pays_off import ExpectedSaving, PaysOff
from askwise.acquire.policies import Greedy, Policy, Random, Static
from askwise.acquire.session import Session, Suggestion
from askwise.acquire.stopping import Confidence, Stopping
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
    "Lookahead",
    "PaysOff",
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

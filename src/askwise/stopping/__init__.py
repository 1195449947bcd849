"""Stopping rules: when to stop acquiring, and what a rule promises."""

from askwise.stopping.calibrated_stop import CalibratedStop
from askwise.stopping.handover import Handover
from askwise.stopping.monitor import StopMonitor
from askwise.stopping.pays_off import PaysOff
from askwise.stopping.rules import Confidence, Stopping

__all__ = [
    "CalibratedStop",
    "Confidence",
    "Handover",
    "PaysOff",
    "StopMonitor",
    "Stopping",
]

"""Pictures of results, as scikit-learn has them: a class for each kind, made from a selector or from its results.

``XDisplay.from_...(...)`` computes and draws; ``XDisplay(...)`` takes what is already computed, and ``plot(ax=...)``
draws it. Afterwards ``ax_`` and ``figure_`` are the axes and the figure. The reports of the command line hold the same
pictures, made by ``to_figure``, which leaves pyplot alone.
"""

from askwise.displays.cases import AcquisitionOrderDisplay, TrajectoryDisplay
from askwise.displays.money import BudgetDisplay, DecisionCurveDisplay, SavingsDisplay
from askwise.displays.trust import RejectionDisplay, ReliabilityDisplay

__all__ = [
    "AcquisitionOrderDisplay",
    "BudgetDisplay",
    "DecisionCurveDisplay",
    "RejectionDisplay",
    "ReliabilityDisplay",
    "SavingsDisplay",
    "TrajectoryDisplay",
]

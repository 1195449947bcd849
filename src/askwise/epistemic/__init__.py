"""What the model does not know: members around the wrapped model, and e(x_S) (Section 3.2.2 and Appendix A)."""

import numpy as np

from askwise.epistemic.base import EpistemicEstimator, assess
from askwise.epistemic.distance import FeatureDistance
from askwise.epistemic.dropout import MCDropout
from askwise.epistemic.ensemble import AuxiliaryEnsemble, can_train_members
from askwise.predict.base import SubsetPredictor
from askwise.predict.final_layer import unfrozen
from askwise.predict.stacked import dropout_layers
from askwise.predict.wrapped import BlackBox, is_torch_module

__all__ = [
    "AuxiliaryEnsemble",
    "EpistemicEstimator",
    "FeatureDistance",
    "MCDropout",
    "assess",
    "suitable_epistemic",
]


def suitable_epistemic(predictor: SubsetPredictor, y: np.ndarray) -> str:
    """What ``epistemic="auto"`` takes: an ensemble where members can be trained, else dropout, else distance."""
    box = unfrozen(predictor.estimator_)
    if not isinstance(box, BlackBox):
        return "ensemble" if can_train_members(predictor, y) else "distance"
    drops = is_torch_module(box.function) and dropout_layers(box.function) and predictor.averages_the_model
    return "dropout" if drops else "distance"

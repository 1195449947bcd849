"""What the model does not know: members around the wrapped model, and e(x_S) (Section 3.2.2 and Appendix A)."""

from askwise.epistemic.base import BeliefModel, EpistemicEstimator
from askwise.epistemic.distance import FeatureDistance
from askwise.epistemic.dropout import MCDropout
from askwise.epistemic.ensemble import AuxiliaryEnsemble, can_train_members
from askwise.epistemic.novelty import Novelty
from askwise.predict.base import SubsetPredictor
from askwise.predict.final_layer import unfrozen
from askwise.predict.stacked import dropout_layers
from askwise.predict.wrapped import BlackBox, is_torch_module

__all__ = [
    "AuxiliaryEnsemble",
    "BeliefModel",
    "EpistemicEstimator",
    "FeatureDistance",
    "MCDropout",
    "Novelty",
    "suitable_epistemic",
]


def suitable_epistemic(predictor: SubsetPredictor) -> str:
    """What ``epistemic="auto"`` takes: an ensemble where members can be trained, else dropout, else distance."""
    box = unfrozen(predictor.estimator_)
    if not isinstance(box, BlackBox):
        return (
            "ensemble" if can_train_members(predictor, predictor.classes_[predictor.training_labels_]) else "distance"
        )
    drops = is_torch_module(box.function) and dropout_layers(box.function) and predictor.averages_the_model
    return "dropout" if drops else "distance"

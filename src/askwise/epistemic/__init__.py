"""Epistemic uncertainty: members around the wrapped model, and e(x_S) (Section 3.2.2 and Appendix A)."""

from askwise.epistemic.base import EpistemicEstimator
from askwise.epistemic.beliefs import Assessment, BeliefModel
from askwise.epistemic.distance import FeatureDistance
from askwise.epistemic.dropout import MCDropout, can_drop_out
from askwise.epistemic.ensemble import AuxiliaryEnsemble, can_train_members
from askwise.epistemic.novelty import Novelty
from askwise.model.black_box import BlackBox
from askwise.model.parts import unfrozen
from askwise.predict.base import SubsetPredictor

__all__ = [
    "Assessment",
    "AuxiliaryEnsemble",
    "BeliefModel",
    "EpistemicEstimator",
    "FeatureDistance",
    "MCDropout",
    "Novelty",
    "suitable_epistemic",
]


def suitable_epistemic(predictor: SubsetPredictor) -> str:
    """What ``epistemic="auto"`` uses: an ensemble where members can be trained, else dropout, else distance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise.epistemic import suitable_epistemic
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> suitable_epistemic(predictor)
    'ensemble'
    """
    if not isinstance(unfrozen(predictor.estimator_), BlackBox):
        labels = predictor.classes_[predictor.training_labels_]
        return "ensemble" if can_train_members(predictor, labels) else "distance"
    return "dropout" if can_drop_out(predictor) else "distance"

"""Predictors of p(y | x_S): wrapped classifiers that predict from any subset of the columns."""

from askwise.model.black_box import wrap
from askwise.model.file_models import BoosterModel, OnnxModel
from askwise.predict.base import SubsetPredictor
from askwise.predict.conditional import ConditionalPredictor
from askwise.predict.imputed import ImputedPredictor
from askwise.predict.local import LocalPredictor
from askwise.predict.masked import MaskTrainedPredictor
from askwise.predict.pooled import PooledPredictor
from askwise.predict.reparametrized import ReparametrizedPredictor
from askwise.predict.rules.predictor import RulePredictor

__all__ = [
    "BoosterModel",
    "ConditionalPredictor",
    "ImputedPredictor",
    "LocalPredictor",
    "MaskTrainedPredictor",
    "OnnxModel",
    "PooledPredictor",
    "ReparametrizedPredictor",
    "RulePredictor",
    "SubsetPredictor",
    "wrap",
]

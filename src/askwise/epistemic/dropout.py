"""Members of a torch module with dropout, without training."""

from __future__ import annotations

import copy
from typing import Any

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.parameters import Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.predict.black_box import BlackBox
from askwise.predict.final_layer import unfrozen
from askwise.predict.modules import DropoutMasks, dropout_layers, is_torch_module
from askwise.predict.reparametrized import ReparametrizedPredictor
from askwise.predict.stacked import StackedDropout
from askwise.randomness import generator, seed_from


class MCDropout(EpistemicEstimator):
    """Members of a torch module with dropout: the same network under `n_samples` fixed dropout masks.

    Around a reparametrized module each member has the same adaptation, applied to the network under dropout.
    """

    def __init__(self, n_samples: int = 30, *, random_state: Any = None) -> None:
        self.n_samples = n_samples
        self.random_state = random_state

    def _fit(self, predictor: SubsetPredictor) -> None:
        box = unfrozen(predictor.estimator_)
        if not (isinstance(box, BlackBox) and is_torch_module(box.function)):
            raise InvalidInput(
                f'epistemic="dropout" needs a torch.nn.Module with dropout layers; got {type(box).__name__}. Use '
                'epistemic="ensemble" (models that can be refitted) or "distance" (any model).'
            )
        if not dropout_layers(box.function):
            raise InvalidInput(
                'epistemic="dropout" needs dropout layers (p > 0), and the wrapped module has none. Use '
                'epistemic="distance", or give trained members: AuxiliaryEnsemble(estimators=[...]).'
            )
        if not can_drop_out(predictor):
            raise InvalidInput(
                'epistemic="dropout" needs a predictor whose answers come from the wrapped module: adaptation='
                f'"conditional", "mean", "output", "last-layer" or "low-rank"; got {type(predictor).__name__}.'
            )
        check_limits(self, {"n_samples": Whole(1)})
        masks = DropoutMasks(self.n_samples, seed_from(generator(self.random_state)))
        self._models = [StackedDropout(predictor.model_, masks)]
        averages = predictor.averages_the_model
        members = [] if averages else range(self.n_samples)
        self._separate = [_thinned(predictor, box, masks.only(member)) for member in members]


def can_drop_out(predictor: SubsetPredictor) -> bool:
    """Whether dropout in the wrapped module has an effect on the predictor's answers, and is supported there."""
    box = unfrozen(predictor.estimator_)
    drops = isinstance(box, BlackBox) and is_torch_module(box.function) and bool(dropout_layers(box.function))
    return drops and (predictor.averages_the_model or isinstance(predictor, ReparametrizedPredictor))


def _thinned(predictor: SubsetPredictor, box: BlackBox, masks: DropoutMasks) -> SubsetPredictor:
    model = copy.copy(predictor.model_)
    model.estimator = box.with_dropout(masks)
    return predictor.with_model(model)

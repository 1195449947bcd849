"""Members of a torch module with dropout, without training."""

from __future__ import annotations

import copy
from typing import Any

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.model.final_layer import torch_module
from askwise.model.modules import DropoutMasks, dropout_layers
from askwise.model.parts import unfrozen
from askwise.model.stacked import StackedDropout
from askwise.model.wrapped import FrozenModel
from askwise.parameters import Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.predict.reparametrized import ReparametrizedPredictor
from askwise.randomness import generator, seed_from


class MCDropout(EpistemicEstimator):
    """Members of a torch module with dropout: the same network under `n_samples` fixed dropout masks.

    Around a reparametrized module each member has the same adaptation, applied to the network under dropout.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import load_iris
    >>> from askwise import wrap
    >>> from askwise.epistemic import BeliefModel, MCDropout
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 3))
    >>> predictor = ImputedPredictor(wrap(net, classes=[0, 1, 2])).fit(X, y)
    >>> beliefs = BeliefModel(predictor, MCDropout(10, random_state=0).fit(predictor))
    >>> beliefs.believe(predictor.schema_.encode(X[:5])).members.shape
    (10, 5, 3)
    """

    def __init__(self, n_samples: int = 30, *, random_state: Any = None) -> None:
        self.n_samples = n_samples
        self.random_state = random_state

    def _fit(self, predictor: SubsetPredictor) -> None:
        module = torch_module(predictor.estimator_)
        if module is None:
            given = type(unfrozen(predictor.estimator_)).__name__
            raise InvalidInput(
                f'epistemic="dropout" needs a torch.nn.Module with dropout layers; got {given}. Use '
                'epistemic="ensemble" (models that can be refitted) or "distance" (any model).'
            )
        if not dropout_layers(module):
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
        members = [] if predictor.averages_the_model else range(self.n_samples)
        self._separate = [
            predictor.with_model(under_dropout(predictor.model_, masks.only(member))) for member in members
        ]


def can_drop_out(predictor: SubsetPredictor) -> bool:
    """Whether dropout in the wrapped module has an effect on the predictor's answers, and is supported there."""
    module = torch_module(predictor.estimator_)
    drops = module is not None and bool(dropout_layers(module))
    return drops and (predictor.averages_the_model or isinstance(predictor, ReparametrizedPredictor))


def under_dropout(model: FrozenModel, masks: DropoutMasks) -> FrozenModel:
    """A wrapped torch module under fixed dropout masks."""
    thinned = copy.copy(model)
    thinned.estimator = unfrozen(model.estimator).with_dropout(masks)
    return thinned

"""Members of a torch module with dropout, without training."""

from __future__ import annotations

from typing import Any

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.final_layer import unfrozen
from askwise.predict.stacked import StackedDropout, StackedModels, dropout_layers
from askwise.predict.wrapped import BlackBox, is_torch_module
from askwise.randomness import generator, seed_from


class MCDropout(EpistemicEstimator):
    """Members of a torch module with dropout: the same network under `n_samples` fixed dropout masks."""

    def __init__(self, n_samples: int = 30, *, random_state: Any = None) -> None:
        self.n_samples = n_samples
        self.random_state = random_state

    def joined(self, predictor: SubsetPredictor) -> SubsetPredictor:
        if not predictor.averages_the_model:
            return predictor
        return predictor.with_model(StackedModels([predictor.model_, self._stacked]))

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
        if self.n_samples < 1:
            raise InvalidInput(f"n_samples must be at least 1; got {self.n_samples!r}.")
        if not predictor.averages_the_model:
            raise InvalidInput('epistemic="dropout" goes with adaptation="conditional" or "mean".')
        seed = seed_from(generator(self.random_state))
        self._stacked = StackedDropout(predictor.model_, self.n_samples, seed)

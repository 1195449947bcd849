"""MC dropout members of image networks, also with a reparametrized last layer, from one pass of the backbone."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.parameters import Number, Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.predict.modules import dropout_layers
from askwise.randomness import generator, seed_from
from askwise.rows import EncodedRows
from askwise.vision.grid import ImageSchema
from askwise.vision.last_layer import LastLayer, replace_part, run, shared_copy, torch_module
from askwise.vision.predictors import PatchNetwork, fill_image


class PatchDropout(EpistemicEstimator):
    """Members of an image network under `n_samples` fixed dropout masks (rate 0.2 and 30 samples in the paper).

    If the only dropout is right before the last layer, or there is none (it is then added there at `rate`), all members
    share one pass of the backbone: a member is a last layer under dropout, scaled and shifted as the predictor's own.
    A network with dropout elsewhere is evaluated once per member.

    Parameters
    ----------
    n_samples
        Number of members.
    rate
        Dropout rate for a network without dropout layers.
    random_state
        Seed of the masks.
    """

    def __init__(self, n_samples: int = 30, *, rate: float = 0.2, random_state: Any = None) -> None:
        self.n_samples = n_samples
        self.rate = rate
        self.random_state = random_state

    def joined(self, predictor: SubsetPredictor) -> SubsetPredictor:
        return predictor.with_model(self._beside) if predictor.averages_the_model else predictor

    def extended(self, belief: Belief, rows: EncodedRows, leave_out: np.ndarray | None) -> Belief:
        if belief.members is not None:
            return belief
        predictor = self._predictor
        assert isinstance(predictor, PatchNetwork)
        features = predictor.features(rows) if belief.features is None else belief.features
        if self._thinned:
            filled = rows.filled(predictor.fill_)
            layer = predictor.layer_
            seen = [layer.as_features(run(network, layer.model, filled)) for network in self._thinned]
            return belief.with_members([predictor.answers(own, rows, self._weights[0]) for own in seen])
        return belief.with_members([predictor.answers(features, rows, weight) for weight in self._weights])

    def fewer(self, n_members: int) -> Self:
        """The first `n_members` of the fitted members."""
        other = copy.copy(self)
        if self._thinned:
            other._thinned = self._thinned[:n_members]
        else:
            other._weights = self._weights[:n_members]
        other._beside = _BesideTheModel(self._predictor.model_, self._beside.layer, other._weights, other._thinned)
        return other

    def _fit(self, predictor: SubsetPredictor) -> None:
        check_limits(self, {"n_samples": Whole(1), "rate": Number(0, 1, above=True, below=True)})
        module = torch_module(predictor.estimator_)
        if module is None:
            raise InvalidInput(
                'epistemic="dropout" needs a torch.nn.Module; use epistemic="distance" or None for other classifiers.'
            )
        self._predictor = predictor
        if isinstance(predictor, PatchNetwork):
            layer = predictor.layer_
        else:
            rows, schema = predictor.training_rows_, predictor.schema_
            assert isinstance(schema, ImageSchema)
            layer = LastLayer(predictor.model_, module, rows.take(slice(8)).filled(fill_image(rows, schema, "mean")))
        rng = np.random.default_rng(seed_from(generator(self.random_state)))
        self._thin(layer, rng)
        self._beside = _BesideTheModel(predictor.model_, layer, self._weights, self._thinned)

    def _thin(self, layer: LastLayer, rng: np.random.Generator) -> None:
        """Last layers (k, H, C) under dropout; networks with their own masks if dropout is elsewhere."""
        network = layer.module if layer.backbone is None else layer.backbone
        drops = dropout_layers(network)
        self._thinned: list[Any] = []
        if layer.backbone is None and (
            not drops or run(network, layer.model, layer.probe).shape[1] != len(layer.weight)
        ):
            raise InvalidInput(
                'epistemic="dropout" needs a network with dropout layers, or one whose last linear layer gives a logit '
                'per class. Use epistemic="distance".'
            )
        if drops and not _only_before_the_last_layer(network, drops, layer):
            self._thinned = [_with_fixed_masks(network, rng) for _ in range(self.n_samples)]
            self._weights = layer.weight[None]
            return
        rate = next(iter(drops.values())).p if drops else self.rate
        kept = (rng.random((self.n_samples, len(layer.weight), 1)) >= rate) / (1 - rate)
        self._weights = kept * layer.weight


class _BesideTheModel:
    """The model's answers and those of its members, (n, (1 + k) C), as one model on completed images."""

    def __init__(self, model: Any, layer: LastLayer, weights: np.ndarray, thinned: list[Any]) -> None:
        self.model, self.layer, self.weights, self.thinned = model, layer, weights, thinned
        self.n_outputs = model.n_outputs * (1 + (len(thinned) or len(weights)))

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        features, bias = self.layer.features(rows), self.layer.bias
        logits = [features @ self.layer.weight + bias]
        if self.thinned:
            seen = [self.layer.as_features(run(network, self.model, rows)) for network in self.thinned]
            logits += [features @ self.weights[0] + bias for features in seen]
        else:
            logits += [features @ weight + bias for weight in self.weights]
        return np.hstack([softmax(part, axis=1) for part in logits])


def _only_before_the_last_layer(network: Any, drops: dict[str, Any], layer: LastLayer) -> bool:
    """Whether the output of the only dropout layer is the features, so that dropout scales the features."""
    import torch

    if len(drops) > 1 or layer.backbone is None:
        return False
    factors = np.linspace(0.5, 1.5, len(layer.weight))
    copied = shared_copy(network)
    replace_part(copied, next(iter(drops)), _fixed(torch.as_tensor(factors)))
    try:
        changed = run(copied, layer.model, layer.probe)
    except RuntimeError:  # the numbers of dropped units and of features differ
        return False
    return bool(np.allclose(changed, layer.features(layer.probe) * factors, rtol=1e-4, atol=1e-5))


def _with_fixed_masks(network: Any, rng: np.random.Generator) -> Any:
    """The network with fixed masks for its dropout layers, of the shapes found with a first image."""
    copied = shared_copy(network)
    for name, part in dropout_layers(copied).items():
        replace_part(copied, name, _drawn_once(part.p, type(part).__name__ != "Dropout", int(rng.integers(2**31))))
    return copied


def _fixed(factors: Any) -> Any:
    from torch import nn

    class Fixed(nn.Module):
        def forward(self, units: Any) -> Any:
            return units * factors.to(units)

    return Fixed()


def _drawn_once(rate: float, per_channel: bool, seed: int) -> Any:
    import torch
    from torch import nn

    class DrawnOnce(nn.Module):
        """Drops the same units in every call and for every image."""

        def forward(self, units: Any) -> Any:
            shape = (units.shape[1], *(1 for _ in units.shape[2:])) if per_channel else units.shape[1:]
            kept = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) >= rate
            return units * kept.to(units) / (1 - rate)

    return DrawnOnce()

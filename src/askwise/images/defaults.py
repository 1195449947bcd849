"""The meaning of the names of adaptations, epistemic estimators and policies for images.

``adaptation="auto"`` is ``"conditional"`` (`SimilarImagePredictor`): nothing is trained, and a step of one image takes
about ten evaluations of the network. ``policy="auto"`` is `BestOrder`: patches in the middle first, unless a learned
order or ``"greedy"`` is clearly better on held-out training images. ``"greedy"`` is by similar images
(`SimilarImageValue`); with a `PatchNetwork`, by the paper's value network. ``epistemic="auto"`` is dropout (30 samples,
before the last layer if the network has no dropout) for torch modules and distance for other models.
``policy="static"`` acquires patches in the middle first. The comparison behind these choices is in
`docs/project/images.md`.
"""

from __future__ import annotations

from typing import Any

from askwise.epistemic import EpistemicEstimator, FeatureDistance
from askwise.errors import InvalidInput
from askwise.images.dropout import PatchDropout
from askwise.images.novelty import ImageNovelty
from askwise.images.orders import BestOrder, value_for
from askwise.images.predictors import PatchNetwork
from askwise.images.similar_answers import SimilarImagePredictor
from askwise.model.final_layer import torch_module
from askwise.model.modules import dropout_layers, linear_layers
from askwise.policy.base import Policy
from askwise.policy.greedy import Greedy
from askwise.policy.orders import Random, Static
from askwise.predict import SubsetPredictor

ADAPTER_EPOCHS, REFRESH = 20, 2
"""Epochs of the adapter, and how many of them share drawn masks: what was compared in docs/images.md."""


def make_predictor(adaptation: str, estimator: Any, seed: int, progress: bool | str) -> SubsetPredictor:
    """The predictor that `adaptation` names."""
    if adaptation == "mean":
        return PatchNetwork(estimator, random_state=seed)
    if adaptation in ("auto", "conditional"):
        return SimilarImagePredictor(estimator, random_state=seed)
    if adaptation == "last-layer":
        return PatchNetwork(
            estimator, adapter_epochs=ADAPTER_EPOCHS, refresh=REFRESH, random_state=seed, progress=progress
        )
    raise InvalidInput(
        f'For images, adaptation must be "auto", "mean", "conditional", "last-layer" or a predictor such as '
        f"askwise.vision.PatchNetwork(pretrain_epochs=5); got {adaptation!r}."
    )


def make_epistemic(
    epistemic: str, predictor: SubsetPredictor, seed: int, n_jobs: int | None, progress: bool | str
) -> EpistemicEstimator:
    """The epistemic estimator that `epistemic` names; none of them trains, so nothing runs in parallel or for long."""
    if epistemic == "auto":
        module = torch_module(predictor.estimator_)
        drops = module is not None and bool({**dropout_layers(module), **linear_layers(module)})
        epistemic = "dropout" if drops else "distance"
    if epistemic == "dropout":
        return PatchDropout(random_state=seed)
    if epistemic == "distance":
        return FeatureDistance(random_state=seed)
    raise InvalidInput(
        'For images, epistemic must be "auto", "dropout", "distance", None or an estimator such as '
        f"AuxiliaryEnsemble(estimators=[...]); got {epistemic!r}."
    )


def make_policy(policy: str, predictor: SubsetPredictor) -> Policy:
    """The policy that `policy` names."""
    if policy == "auto":
        return BestOrder()
    if policy == "greedy":
        return Greedy(value_for(predictor))
    if policy == "static":
        schema: Any = predictor.schema_
        return Static(schema.grid.middle_first())
    if policy == "random":
        return Random()
    raise InvalidInput(
        'For images, policy must be "auto", "greedy", "static" (patches in the middle first), "random" or a Policy; '
        f"got {policy!r}."
    )


make_novelty = ImageNovelty

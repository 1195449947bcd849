"""The methods that are compared, by name: ``policy-backbone`` for ours, the rivals by their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from askwise import baselines
from askwise.acquire import DQN, Greedy
from askwise.acquire.acquirer import FeatureAcquirer
from askwise.bench.tasks import Task
from askwise.errors import InvalidInput, listed
from askwise.predict import MaskTrainedPredictor
from askwise.selector import DynamicFeatureSelector
from askwise.standin import make_model

Fit = Callable[[Task], FeatureAcquirer]


def fit_method(name: str, task: Task) -> FeatureAcquirer:
    """The method called `name`, fitted on the training rows of `task`."""
    check_methods([name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's MLP stops after 200 iterations
        return METHODS[name](task)


def check_methods(names: list[str]) -> None:
    """Refuse names that there are not."""
    for name in names:
        if name not in METHODS:
            raise InvalidInput(f"There is no method {name!r}. The methods are: {listed(METHODS, 40, str)}.")


def _ours(backbone: str, adaptation: Any, policy: Any, task: Task) -> DynamicFeatureSelector:
    """The paper's method around a model that is trained first and then left as it is."""
    model = make_model(backbone, task.seed).fit(task.X_train, task.y_train)
    selector = DynamicFeatureSelector(
        model,
        costs=task.costs,
        groups=task.groups,
        adaptation=adaptation() if callable(adaptation) else adaptation,
        policy=policy() if callable(policy) else policy,
        random_state=task.seed,
        progress=False,
    )
    return selector.fit(task.X_train, task.y_train)


def _rival(kind: Any, task: Task) -> FeatureAcquirer:
    return kind(costs=task.costs, groups=task.groups, random_state=task.seed).fit(task.X_train, task.y_train)


def _on_a_frozen_mlp(task: Task) -> FeatureAcquirer:
    model = make_model("mlp", task.seed).fit(task.X_train, task.y_train)
    rival = baselines.AACO(model, costs=task.costs, groups=task.groups, random_state=task.seed)
    return rival.fit(task.X_train, task.y_train)


GREEDY = partial(Greedy, "network")
"""The paper's greedy policy, with its two-headed estimator."""

METHODS: dict[str, Fit] = {
    "rl-remlp": partial(_ours, "mlp", "last-layer", DQN),
    "greedy-remlp": partial(_ours, "mlp", "last-layer", GREEDY),
    "rl-mlp": partial(_ours, "mlp", "mean", DQN),
    "greedy-mlp": partial(_ours, "mlp", "mean", GREEDY),
    "rl-cart": partial(_ours, "tree", "rules", DQN),
    "greedy-cart": partial(_ours, "tree", "rules", GREEDY),
    "rl-ftree": partial(_ours, "fuzzy-tree", "rules", DQN),
    "greedy-ftree": partial(_ours, "fuzzy-tree", "rules", GREEDY),
    "greedy-forest": partial(_ours, "forest", "rules", GREEDY),
    "admlp": partial(_ours, "mlp", partial(MaskTrainedPredictor, None), DQN),
    "adremlp": partial(_ours, "mlp", partial(MaskTrainedPredictor, None, reparametrized=True), DQN),
    "askwise": partial(_ours, "mlp", "auto", "auto"),
    "random-mlp": partial(_ours, "mlp", "mean", "random"),
    "static-cmi": partial(_rival, baselines.StaticCMI),
    "static-best": partial(_rival, baselines.StaticBest),
    "tabnet": partial(_rival, baselines.TabNet),
    "dime": partial(_rival, baselines.DIME),
    "gdfs": partial(_rival, baselines.GDFS),
    "vip": partial(_rival, baselines.VIP),
    "cwcf": partial(_rival, baselines.CWCF),
    "invase": partial(_rival, baselines.INVASE),
    "aaco": partial(_rival, baselines.AACO),
    "aaco-mlp": _on_a_frozen_mlp,
    "eddi": partial(_rival, baselines.EDDI),
}
OURS = [name for name, fit in METHODS.items() if getattr(fit, "func", None) is _ours]

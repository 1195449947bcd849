"""The methods that are compared, by name: ``policy-backbone`` for ours, the baselines by their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput, listed
from askwise.policy import DQN, Greedy
from askwise.predict import MaskTrainedPredictor, ReparametrizedPredictor, RulePredictor
from askwise.reference_models import make_model
from askwise.selector import DynamicFeatureSelector
from askwise.value import ValueEstimator
from askwise_bench import baselines
from askwise_bench.grid.images import IMAGE_METHODS, IMAGE_VARIANTS
from askwise_bench.grid.tasks import Task


def fit_method(name: str, task: Task) -> FeatureAcquirer:
    """The method called `name`, fitted on the training rows of `task`."""
    check_methods([name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's MLP stops after 200 iterations
        return METHODS[name].fit(task)


def check_methods(names: list[str]) -> None:
    """Refuse unknown names."""
    for name in names:
        if name not in METHODS:
            raise InvalidInput(f"There is no method {name!r}. The methods are: {listed(METHODS, len(METHODS), str)}.")


def _fit_selector(backbone: str, adaptation: Any, policy: Any, task: Task) -> DynamicFeatureSelector:
    """The paper's method around a model that is trained first and then not changed."""
    model = make_model(backbone, task.seed).fit(task.X_train, task.y_train)
    if policy is DQN:
        policy = partial(DQN, task.settings.schedule)
    selector = DynamicFeatureSelector(
        model,
        costs=task.costs,
        groups=task.groups,
        adaptation=adaptation() if callable(adaptation) else adaptation,
        policy=policy() if callable(policy) else policy,
        calibration="auto" if adaptation in OUR_ADAPTATIONS else None,  # the paper's methods are not calibrated
        random_state=task.seed,
        progress=False,
    )
    return selector.fit(task.X_train, task.y_train)


def _fit_baseline(kind: Any, task: Task) -> FeatureAcquirer:
    return kind(costs=task.costs, groups=task.groups, random_state=task.seed).fit(task.X_train, task.y_train)


def _fit_two_networks(kind: Any, task: Task) -> FeatureAcquirer:
    return _fit_baseline(partial(kind, **AUTHORS_TRAINING) if task.settings.authors_training else kind, task)


def _fit_aaco_on(model: str, task: Task) -> FeatureAcquirer:
    return _fit_baseline(partial(baselines.AACO, make_model(model, task.seed).fit(task.X_train, task.y_train)), task)


AUTHORS_TRAINING = {"batch_size": 128, "patience": 5}
"""Of GDFS and DIME."""

OUR_ADAPTATIONS = ("auto", "pooled")
GREEDY = partial(Greedy, "network", price_rule="per price")
"""The paper's greedy policy, with its two-headed estimator and its price rule."""

GREEDY_INDIVIDUAL = partial(Greedy, ValueEstimator(epochs=10), price_rule="per price")
"""The same, the estimator trained for as long as the paper trains one "individually"."""


@dataclass(frozen=True)
class Method:
    """How a method is fitted on a task, what it is, and the optional package that it needs."""

    title: str
    fit: Callable[[Task], FeatureAcquirer]
    sees_everything: bool = False
    package: str | None = None

    @property
    def installed(self) -> bool:
        """Whether the package that it needs beyond those of askwise is there."""
        return self.package is None or find_spec(self.package) is not None


def _selector(title: str, backbone: str, adaptation: Any, policy: Any) -> Method:
    return Method(title, partial(_fit_selector, backbone, adaptation, policy))


def _baseline(title: str, kind: Any) -> Method:
    return Method(title, partial(_fit_baseline, kind), kind.sees_everything)


UNGATED = partial(ReparametrizedPredictor, None, "last-layer", gate=False)
MASKED = partial(MaskTrainedPredictor, None, reference="own")
MASKED_AND_REPARAMETRIZED = partial(MASKED, reparametrized=True)
BEST_RULE = partial(RulePredictor, None, aggregation="best")
METHODS: dict[str, Method] = {
    "rl-remlp": _selector("Q-network, MLP with a reparametrized last layer", "mlp", "last-layer", DQN),
    "greedy-remlp": _selector("greedy, MLP with a reparametrized last layer", "mlp", "last-layer", GREEDY),
    "rl-remlp-ungated": _selector("rl-remlp, reparametrized at every subset size", "mlp", UNGATED, DQN),
    "greedy-remlp-ungated": _selector("greedy-remlp, reparametrized at every subset size", "mlp", UNGATED, GREEDY),
    "greedy-remlp-individual": _selector(
        "greedy-remlp, value network trained for 10 epochs", "mlp", "last-layer", GREEDY_INDIVIDUAL
    ),
    "rl-mlp": _selector("Q-network, MLP on mean-imputed rows", "mlp", "mean", DQN),
    "greedy-mlp": _selector("greedy, MLP on mean-imputed rows", "mlp", "mean", GREEDY),
    "rl-cart": _selector("Q-network, rules of a CART", "tree", "rules", DQN),
    "greedy-cart": _selector("greedy, rules of a CART", "tree", "rules", GREEDY),
    "rl-cart-best": _selector("rl-cart, the single best rule answers", "tree", BEST_RULE, DQN),
    "greedy-cart-best": _selector("greedy-cart, the single best rule answers", "tree", BEST_RULE, GREEDY),
    "greedy-subset-cart": _selector("greedy, rules of a CART grown for subsets", "subset-tree", "rules", GREEDY),
    "rl-ftree": _selector("Q-network, rules of a fuzzy tree", "fuzzy-tree", "rules", DQN),
    "greedy-ftree": _selector("greedy, rules of a fuzzy tree", "fuzzy-tree", "rules", GREEDY),
    "greedy-ftree-best": _selector("greedy-ftree, the single best rule answers", "fuzzy-tree", BEST_RULE, GREEDY),
    "greedy-subset-ftree": _selector(
        "greedy, rules of a fuzzy tree grown for subsets", "subset-fuzzy-tree", "rules", GREEDY
    ),
    "greedy-ferl": replace(
        _selector("greedy, rules of the fuzzy tree FERL of ex-fuzzy", "ferl", "rules", GREEDY), package="ex_fuzzy"
    ),
    "greedy-forest": _selector("greedy, rules of a random forest", "forest", "rules", GREEDY),
    "admlp": _selector("Q-network, a network trained under masks", "mlp", MASKED, DQN),
    "adremlp": _selector("Q-network, the same, reparametrized", "mlp", MASKED_AND_REPARAMETRIZED, DQN),
    "askwise": _selector("the defaults of this library, MLP", "mlp", "auto", "auto"),
    "random-mlp": _selector("random order, MLP on mean-imputed rows", "mlp", "mean", "random"),
    "static-cmi": _baseline("one ranking by conditional mutual information", baselines.StaticCMI),
    "static-best": _baseline("the best fixed subset for each budget", baselines.StaticBest),
    "tabnet": _baseline("attention, reads the whole row", baselines.TabNet),
    "dime": Method("mutual information by a value network", partial(_fit_two_networks, baselines.DIME)),
    "gdfs": Method("greedy by a policy network", partial(_fit_two_networks, baselines.GDFS)),
    "vip": _baseline("variational information pursuit", baselines.VIP),
    "cwcf": _baseline("classification with costly features, a Q-network", baselines.CWCF),
    "invase": _baseline("selector and predictor, reads the whole row", baselines.INVASE),
    "aaco": _baseline("subsets that helped similar rows, a network trained under masks", baselines.AACO),
    "aaco-mlp": Method("subsets that helped similar rows, a frozen MLP", partial(_fit_aaco_on, "mlp")),
    "eddi": _baseline("information reward by a partial VAE", baselines.EDDI),
}
TABULAR = list(METHODS)
QUICK_SEARCH: dict[str, Any] = {"n_folds": 3, "n_candidates": 5, "max_features": 12, "max_rows": 1000}
"""Of the best fixed subsets: fewer folds, candidates and rows than by default, which matters on large tables."""

METHODS |= {
    "static-quick": Method(
        "static-best, searched with fewer folds, candidates and rows",
        partial(_fit_baseline, partial(baselines.StaticBest, **QUICK_SEARCH)),
    ),
    "aaco-forest": Method("subsets that helped similar rows, a frozen forest", partial(_fit_aaco_on, "forest")),
    "askwise-forest": _selector("the defaults of this library, random forest", "forest", "auto", "auto"),
    "askwise-boosting": replace(
        _selector("the defaults of this library, boosting", "xgboost", "auto", "auto"), package="xgboost"
    ),
    "pooled": _selector("pooled answers, MLP", "mlp", "pooled", "auto"),
    "pooled-forest": _selector("pooled answers, random forest", "forest", "pooled", "auto"),
    "pooled-boosting": replace(_selector("pooled answers, boosting", "xgboost", "pooled", "auto"), package="xgboost"),
}
METHODS |= {name: Method(title, fit) for name, (title, fit) in (IMAGE_METHODS | IMAGE_VARIANTS).items()}

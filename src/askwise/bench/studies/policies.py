r"""What changes the choice of features: the weight of epistemic uncertainty, unavailable features, the L1 penalty.

Deviations from the paper's protocol, numbered:

1. :math:`\lambda` is changed in the fitted policy: the value network has a head for each of its two terms, so that it
   need not be trained again. A Q-network has only their sum and is left out.
2. The gain is made of reductions, so that a positive :math:`\lambda` lowers epistemic uncertainty, as the paper's table
   says and its Eq. 9, read as it is printed, does not.
3. The paper argues about features that are unavailable at test time (Section 2.1) and measures nothing; here a share of
   the features of each test row, drawn from the seed, cannot be had; the same ones for every method.
4. The paper lists the L1 weights it tried (Appendix G) without a result; here they are compared under the budgets of
   the main tables.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import pandas as pd

from askwise.acquire import Greedy
from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.policies import Policy, Random
from askwise.bench.grid.tasks import Task
from askwise.bench.grid.trials import Measurement
from askwise.bench.studies.uncertainty import budgets_at, defined, outcomes
from askwise.errors import InvalidInput
from askwise.predict.base import class_positions
from askwise.selector import DynamicFeatureSelector
from askwise.value import ValueEstimator

RISK_WEIGHTS = (-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0)
LAMBDA_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
UNAVAILABLE_SHARES = (0.0, 0.1, 0.3, 0.5)
L1_WEIGHTS = (0.0, 0.001, 0.01, 0.1, 0.5, 1.0, 2.0)
"""Those of Appendix G."""

GONE = 1002
"""Sets the draws of what is gone apart from those of a random order of purchases, which has the same seed."""


def lambda_sweep(task: Task, method: DynamicFeatureSelector) -> Iterator[Measurement]:
    r"""Accuracy and epistemic uncertainty by the weight :math:`\lambda` and budget, for greedy policies.

    Table "Effect of epistemic uncertainty weight" (Section 4.2): ``lambda[0.5]/accuracy``, ``lambda[0.5]/epistemic``
    (Eq. 13) and ``lambda[0.5]/variance`` under budgets of 20 % to 80 % of the price of everything.
    """
    _check_greedy(method, "lambda_sweep")
    budgets = budgets_at(method, LAMBDA_SHARES)
    for weight in RISK_WEIGHTS:
        weighted = copy.copy(method).set_params(risk_weight=weight)  # the fitted method keeps its own
        for outcome in outcomes(task, weighted, budgets):
            yield Measurement(f"lambda[{weight:g}]/accuracy", float(outcome.correct.mean()), outcome.budget)
            for name in ("epistemic", "variance"):
                mean = float(getattr(outcome.uncertainty, name).mean())
                yield from defined(f"lambda[{weight:g}]/{name}", mean, outcome.budget)


def unavailable(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Accuracy by budget when some features of each row cannot be had (the argument of Section 2.1; beyond the paper).

    ``unavailable[share=0.3]/accuracy``, and ``unavailable[share=0.3]/random_accuracy`` of the same predictor when it
    buys in random order: what is left of the policy's advantage.
    """
    budgets = method.default_budgets()
    y = class_positions(method.classes_, task.y_test)
    for share in UNAVAILABLE_SHARES:
        X = without(task, method, share)
        policies: dict[str, Policy | None] = {"accuracy": None, "random_accuracy": Random(task.seed)}
        for metric, policy in policies.items():
            for budget, (proba, _, _) in zip(budgets, method.final_states(X, budgets, policy), strict=True):
                accuracy = float((proba.argmax(axis=1) == y).mean())
                yield Measurement(f"unavailable[share={share:g}]/{metric}", accuracy, budget)


def l1_sweep(task: Task, method: DynamicFeatureSelector) -> Iterator[Measurement]:
    """Accuracy by budget and by the L1 weight of the value network (Appendix G), each trained anew.

    ``l1[0.01]/accuracy`` under the budgets of the main tables.
    """
    _check_greedy(method, "l1_sweep")
    budgets = method.default_budgets()
    y = class_positions(method.classes_, task.y_test)
    for weight in L1_WEIGHTS:
        regularized = method.with_policy(Greedy(ValueEstimator(l1=weight, random_state=task.seed)))
        for budget, (proba, _, _) in zip(budgets, regularized.final_states(task.X_test, budgets), strict=True):
            yield Measurement(f"l1[{weight:g}]/accuracy", float((proba.argmax(axis=1) == y).mean()), budget)


def without(task: Task, method: FeatureAcquirer, share: float) -> pd.DataFrame:
    """The test rows less a random `share` of the features of each; what is gone at a low share stays gone."""
    n_features = len(method.features_)
    draws = np.random.default_rng([task.seed, GONE]).random((len(task.X_test), n_features))
    gone = draws.argsort(axis=1).argsort(axis=1) < round(share * n_features)
    return task.X_test.mask(method.schema_.expand(gone))


def _check_greedy(method: FeatureAcquirer, study: str) -> None:
    if not isinstance(method, DynamicFeatureSelector) or not isinstance(method.policy_, Greedy):
        raise InvalidInput(
            f"{study} needs a selector with a greedy policy; got {type(method).__name__} with "
            f"{type(method.policy_).__name__}."
        )

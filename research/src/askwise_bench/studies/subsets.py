r"""One model for every subset against one trained on the subset alone: bias, risk gap, effect of reparametrization.

For random subsets :math:`S` the predictor of a method, :math:`f_{\theta^*}`, is compared on the test rows with a fresh
model that was trained on :math:`S` and nothing else, :math:`f_{\theta_S^*}` (Eqs. 2 and 3). Deviations from the paper's
protocol, numbered:

1. `SUBSETS_PER_SIZE` different subsets per size and seed, five seeds of which make more than the paper's 100 of one
   seed; 100 under its own settings. A table with few features has fewer subsets of a size.
2. The local model is the wrapped classifier, cloned and trained on the columns of :math:`S`; that of a baseline,
   which wraps none, is the paper's MLP. A missing cell of :math:`S` is filled in by the local model's own imputer, so
   that there is one local model per subset.
3. Divergences and log losses are taken from probabilities mixed with 1 % of the class frequencies, because a tree gives
   zeros.
4. The bias has the direction of Appendix E, :math:`D(f(x_S) \| reference)`; the other one is measured as well.
5. The risk is the test error, as in Appendix F, and the log loss as well; e of Eq. 13 is measured beside the variance.
6. The local model has every feature it knows, and there a reparametrized model answers as the plain one does: the two
   local models of the reparametrization study are one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.predict import ImputedPredictor, ReparametrizedPredictor
from askwise.predict.base import class_positions
from askwise.reference_models import make_model
from askwise.uncertainty import kl_divergence, smoothed
from askwise_bench.grid.tasks import Task
from askwise_bench.grid.trials import Measurement
from askwise_bench.studies.uncertainty import (
    TARGETED_SHARES,
    assessed,
    class_frequencies,
    correlations,
    defined,
    with_only,
)

SUBSETS_PER_SIZE = 25
BIAS_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
BIAS_SUBSETS_PER_SIZE = 5

_LOCAL_ANSWERS: WeakKeyDictionary[FeatureAcquirer, dict[tuple[Task, bytes], np.ndarray]] = WeakKeyDictionary()
"""Predictions of the local models of a fitted method on the test rows, by subset: several studies need the same."""


@dataclass(frozen=True)
class Risk:
    """The mean loss on the test rows, measured in two ways."""

    error: float
    log_loss: float


def bias(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    r"""How far the prediction from a subset is from the reference of the subset and from that of all features.

    Table "Average prediction bias metrics" and figure "Bias decomposition" (Appendix E):
    by ``subset``, ``kl_ref`` = :math:`D(f(x_S) \| f_{\theta_S^*}(x_S))` and ``kl_full`` =
    :math:`D(f(x_S) \| f(x))`; over all of them ``mean_kl_ref``, ``mean_kl_full`` and their ratio ``kl_ratio``. In names
    with ``reverse_`` the arguments are exchanged.
    """
    prior, full = class_frequencies(task, method), method.predictor_.predict_full(task.X_test)
    found: dict[str, list[float]] = {}
    for k, subset in enumerate(_subsets(task, method, BIAS_SHARES, BIAS_SUBSETS_PER_SIZE)):
        proba = method.predict_proba(with_only(method, task.X_test, subset))
        for name, reference in (("ref", local_answers(task, method, subset)), ("full", full)):
            both = {"kl": (proba, reference), "reverse_kl": (reference, proba)}
            for direction, (first, second) in both.items():
                mean = float(kl_divergence(first, smoothed(second, prior)).mean())
                found.setdefault(f"{direction}_{name}", []).append(mean)
                yield _of_subset(f"{direction}_{name}", mean, k, subset)
    means = {name: float(np.mean(divergences)) for name, divergences in found.items()}
    yield from (Measurement(f"mean_{name}", mean) for name, mean in means.items())
    for direction in ("kl", "reverse_kl"):
        if means[f"{direction}_full"] > 0:
            yield Measurement(f"{direction}_ratio", means[f"{direction}_ref"] / means[f"{direction}_full"])


def risk_gap(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    r"""Whether epistemic uncertainty finds the subsets on which one model for all is worse than one of their own.

    Table and figure "correlations between :math:`\Delta_S` and mean epistemic variance" of Appendix F. By ``subset``:
    ``delta`` (Eq. 3) by ``loss``, ``variance`` and ``epistemic``; over all of them ``mean_delta`` by ``loss``, and
    ``pearson``, ``spearman`` and their p values by ``loss`` and by ``measure`` of uncertainty.
    """
    if method.epistemic_ is None:
        raise InvalidInput(f"risk_gap needs a method with members; {type(method).__name__} has none.")
    gaps: dict[str, list[float]] = {"error": [], "log_loss": []}
    uncertain: dict[str, list[float]] = {"variance": [], "epistemic": []}
    per_size = task.settings.subsets_per_size or SUBSETS_PER_SIZE
    for k, subset in enumerate(_subsets(task, method, TARGETED_SHARES, per_size)):
        proba, found = assessed(task, method, with_only(method, task.X_test, subset))
        ours, local = _risk(task, method, proba), _risk(task, method, local_answers(task, method, subset))
        for loss, gap in gaps.items():
            gap.append(getattr(ours, loss) - getattr(local, loss))
            yield _of_subset("delta", gap[-1], k, subset, loss=loss)
        for name, mean in uncertain.items():
            mean.append(float(getattr(found, name).mean()))
            if not np.isnan(mean[-1]):
                yield _of_subset(name, mean[-1], k, subset)
    for loss, gap in gaps.items():
        yield Measurement("mean_delta", float(np.mean(gap)), loss=loss)
        for name, mean in uncertain.items():
            for metric, value in correlations(np.array(mean), np.array(gap)).items():
                yield from defined(metric, value, loss=loss, measure=name)


def reparametrization(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    r"""The effect of reparametrization on the risk gap :math:`\Delta_S`, around the same model.

    Table and figure "Reparametrization effect on the subset risk gap" of Appendix F. By ``subset``: the test errors
    ``error_imputed``, ``error_adapted`` and ``error_local``; over all of them
    ``mean_delta``, ``median_delta`` and ``mean_abs_delta`` of the imputed and the adapted model, the share of subsets
    with a smaller :math:`|\Delta_S|` (``wins``) and with a lower, a higher and the same error, the error that adapting
    saves (``error_saved``), and Wilcoxon's p values.
    The model of a size at which the adapter did not lower the held-out loss is the imputed one: a tie.
    """
    if not isinstance(method.predictor_, ReparametrizedPredictor):
        raise InvalidInput(
            f"reparametrization needs a method with a reparametrized predictor; got {type(method.predictor_).__name__}."
        )
    imputed = ImputedPredictor(method.predictor_.estimator_, "mean").fit(task.X_train, task.y_train)
    errors: dict[str, list[float]] = {"imputed": [], "adapted": [], "local": []}
    per_size = task.settings.subsets_per_size or SUBSETS_PER_SIZE
    for k, subset in enumerate(_subsets(task, method, TARGETED_SHARES, per_size)):
        known = with_only(method, task.X_test, subset)
        answers = {
            "imputed": imputed.predict_proba(known),
            "adapted": method.predict_proba(known),
            "local": local_answers(task, method, subset),
        }
        for name, proba in answers.items():
            errors[name].append(_risk(task, method, proba).error)
            yield _of_subset(f"error_{name}", errors[name][-1], k, subset)
    compared = compare_gaps(*(np.array(each) for each in errors.values()))
    yield from (Measurement(metric, value) for metric, value in compared.items())


def compare_gaps(imputed: np.ndarray, adapted: np.ndarray, local: np.ndarray) -> dict[str, float]:
    r"""The risk gaps of two models from their errors and those of the local models on the same subsets, (K,) each."""
    gaps = {"imputed": imputed - local, "adapted": adapted - local}
    found: dict[str, float] = {}
    for name, gap in gaps.items():
        found[f"mean_delta_{name}"] = float(gap.mean())
        found[f"median_delta_{name}"] = float(np.median(gap))
        found[f"mean_abs_delta_{name}"] = float(np.abs(gap).mean())
    smaller = np.abs(gaps["imputed"]) - np.abs(gaps["adapted"])  # above 0: the adapted model is nearer to the local one
    saved = imputed - adapted
    shares = {"wins": smaller > 0, "lower_error": saved > 0, "higher_error": saved < 0, "equal_error": saved == 0}
    found |= {name: float(share.mean()) for name, share in shares.items()}
    tested = {"wilcoxon_p_abs_delta": _wilcoxon_p(smaller), "wilcoxon_p_error": _wilcoxon_p(saved)}
    return {**found, "error_saved": float(saved.mean()), **tested}


def local_answers(task: Task, method: FeatureAcquirer, subset: np.ndarray) -> np.ndarray:
    """(n, C) predictions for the test rows by a model that was trained on the features `subset` (M,) alone."""
    known = _LOCAL_ANSWERS.setdefault(method, {})
    key = (task, subset.tobytes())
    if key not in known:
        columns = np.flatnonzero(method.schema_.expand(subset[None])[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's MLP stops after 200 iterations
            model = clone(_classifier(task, method)).fit(task.X_train.iloc[:, columns], task.y_train)
        known[key] = np.asarray(model.predict_proba(task.X_test.iloc[:, columns]))
    return known[key]


def draw_subsets(n_features: int, size: int, most: int, seed: int) -> np.ndarray:
    """Different random subsets of one size, at most `most`: (k, n_features) bool."""
    if comb(n_features, size) <= most:
        chosen: Sequence[Any] = list(combinations(range(n_features), size))
    else:
        rng = np.random.default_rng([seed, size])
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < most:
            drawn[tuple(sorted(rng.permutation(n_features)[:size].tolist()))] = None
        chosen = list(drawn)
    masks = np.zeros((len(chosen), n_features), dtype=bool)
    for mask, features in zip(masks, chosen, strict=True):
        mask[list(features)] = True
    return masks


def _subsets(task: Task, method: FeatureAcquirer, shares: Sequence[float], per_size: int) -> np.ndarray:
    """(K, M): subsets of as many features as `shares` say, at least one and not all."""
    n_features = len(method.features_)
    sizes = sorted({min(max(1, round(share * n_features)), n_features - 1) for share in shares})
    return np.concatenate([draw_subsets(n_features, size, per_size, task.seed) for size in sizes])


def _of_subset(metric: str, value: float, k: int, subset: np.ndarray, loss: str | None = None) -> Measurement:
    return Measurement(metric, value, subset=k, subset_size=int(subset.sum()), loss=loss)


def _classifier(task: Task, method: FeatureAcquirer) -> Any:
    """The wrapped classifier; for a baseline, which wraps none, the paper's MLP."""
    wrapped = getattr(method, "estimator_", None)
    return make_model("mlp", task.seed) if wrapped is None else wrapped


def _risk(task: Task, method: FeatureAcquirer, proba: np.ndarray) -> Risk:
    y = class_positions(method.classes_, task.y_test)
    probable = smoothed(proba, class_frequencies(task, method))[np.arange(len(y)), y]
    return Risk(float((proba.argmax(axis=1) != y).mean()), float(-np.log(probable).mean()))


def _wilcoxon_p(differences: np.ndarray) -> float:
    """Wilcoxon's signed-rank p; 1 where nothing differs."""
    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0

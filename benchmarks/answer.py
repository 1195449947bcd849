"""What do kernel width, similar rows and pooling change? Accuracy and log loss along the default policy.

Frozen MLP and forest on five tables, 1 to 10 features. Only training rows are used: those of the usual split are split
again, into rows to fit and validation rows, so that what is decided here has seen no test row. All answers are given
about the same states, because the policy reads completions, whose weights do not change. Differences are in points of
accuracy and in log loss, mean and standard error over tables and splits. "width" is Scott's rule with the factor that
is chosen, against one width of 0.8; "similar rows" the default, which answers up to half on similar rows themselves,
against "width"; "left out" the width for a model that cannot be cloned, whose answers are not calibrated, and neither
are those it is compared with. "own covariance" is what pooled answers gain because classes may have covariances of
their own, over Gaussians with one for all. docs/project/benchmarks.md has what was found.

    python benchmarks/answer.py --splits 3
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.evaluation import final_states
from askwise.predict import ConditionalPredictor, class_gaussians
from askwise.predict.base import class_positions
from askwise.predict.calibration import log_losses
from askwise.reference_models import make_model
from askwise.table.rows import EncodedRows

TABLES = ("wine", "heart", "cirrhosis", "yeast", "breast_cancer")
MODELS = ("mlp", "forest")
WIDE = 0.8
ALL = class_gaussians.COMMON_ROWS
COMPARED = {
    "width": "wide",
    "similar rows": ("similar rows", "width"),
    "pooled": "wide",
    "pooled after width": ("pooled", "width"),
    "own covariance": ("pooled", "pooled, one covariance"),
    "left out": "wide, raw",
}


def validation_split(name: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """The table, and positions of the rows to fit and of the validation rows, all of them training rows."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    else:
        X, y = load(name).X, load(name).y
    y = np.asarray(y)
    train, _ = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    fit, held = train_test_split(train, test_size=0.3, stratify=y[train], random_state=seed)
    return X, y, fit, held


def measured(name: str, model: str, seed: int, most: int) -> list[dict[str, object]]:
    """One row per kind of answer: accuracy, log loss and agreement with the model, mean over budgets."""
    X, y, fit, held = validation_split(name, seed)
    held = held[:most]
    estimator = make_model(model, seed).fit(X.iloc[fit], y[fit])
    auto = ConditionalPredictor(None, answer_bandwidth="auto", random_state=seed)
    kinds: dict[str, Any] = {
        "wide": ConditionalPredictor(None, answer_bandwidth=WIDE, random_state=seed),
        "width": auto,
        "similar rows": "conditional",
    }
    selectors, seconds = {}, {}
    for kind, adaptation in {**kinds, "pooled": "pooled", "pooled, one covariance": "pooled"}.items():
        start = time.perf_counter()
        class_gaussians.COMMON_ROWS = (None,) if kind == "pooled, one covariance" else ALL
        selectors[kind] = DynamicFeatureSelector(
            estimator, adaptation=adaptation, epistemic=None, random_state=seed, progress=False
        ).fit(X.iloc[fit], y[fit])
        seconds[kind] = time.perf_counter() - start
    opaque = DynamicFeatureSelector(
        estimator.predict_proba, adaptation=auto, epistemic=None, random_state=seed, progress=False
    )
    raw = opaque.fit(X.iloc[fit], y[fit]).predictor_
    first = selectors["wide"]
    labels = class_positions(first.classes_, y[held])
    full = estimator.predict_proba(X.iloc[held]).argmax(axis=1)
    rows = first.schema_.encode(X.iloc[held])
    ends = final_states(first, X.iloc[held], range(1, min(10, len(first.features_) - 1) + 1))
    known = [rows.masked(first.schema_.expand(end.mask)) for end in ends]
    answers: dict[str, Callable[[EncodedRows], np.ndarray]] = {k: s.beliefs_.proba for k, s in selectors.items()}
    answers |= {"wide, raw": first.predictor_.proba, "left out": raw.proba}
    chosen = {kind: selector.choices_["answer"]["factor"] for kind, selector in selectors.items()}
    chosen["left out"] = raw.answer_factor_
    out = []
    for kind, answer in answers.items():
        probas = [answer(part) for part in known]
        decided = np.stack([proba.argmax(axis=1) for proba in probas])
        measures = {
            "accuracy": 100 * (decided == labels).mean(),
            "log loss": np.mean([log_losses(proba, labels).mean() for proba in probas]),
            "agreement": 100 * (decided == full).mean(),
            "factor": chosen.get(kind),
            "model share": selectors["pooled"].choices_["pooling"]["model_share"] if kind == "pooled" else np.nan,
            "seconds": seconds.get(kind, np.nan),
        }
        out.append({"table": name, "model": model, "seed": seed, "kind": kind, **measures})
    return out


def differences(found: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error, by model, of what each kind of answer gains over the one it is compared with."""
    rows = []
    for model, part in found.groupby("model"):
        wide = part.pivot(index=["table", "seed"], columns="kind")
        for kind, other in COMPARED.items():
            new, old = other if isinstance(other, tuple) else (kind, other)
            row = {"model": model, "answer": kind}
            for measure in ("accuracy", "log loss", "agreement"):
                gained = wide[measure][new] - wide[measure][old]
                row[measure] = f"{gained.mean():+.3f} +- {gained.std() / np.sqrt(len(gained)):.3f}"
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--most", type=int, default=200, help="validation rows per split")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, object]] = []
    for name in options.tables:
        for model in options.models:
            for seed in range(options.first, options.first + options.splits):
                rows += measured(name, model, seed, options.most)
            found = pd.DataFrame([row for row in rows if (row["table"], row["model"]) == (name, model)])
            print(name, model, "\n", found.groupby("kind").mean(numeric_only=True).round(3), flush=True)
    print(differences(pd.DataFrame(rows)).to_string(index=False))


if __name__ == "__main__":
    main()

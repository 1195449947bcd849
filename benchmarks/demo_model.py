"""Which reference model the demo trains: the lowest log loss in cross-validation of its training rows.

The held-out rows of the demo are not touched.

    python benchmarks/demo_model.py
"""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score

from askwise.datasets import load
from askwise.reference_models import make_model, train_reference_model

MODELS = ("logistic", "forest", "mlp", "xgboost", "tree")
FOLDS, REPEATS = 5, 4


def main() -> None:
    rows = train_reference_model(load("heart"), "logistic", seed=0)
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    print(f"log loss on {len(rows.y_train)} training rows, {FOLDS} folds, mean and spread of {REPEATS} repeats")
    for name in MODELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = cross_val_score(make_model(name, 0), rows.X_train, rows.y_train, cv=folds, scoring="neg_log_loss")
        repeats = -found.reshape(REPEATS, FOLDS).mean(axis=1)
        print(f"{name:10} {repeats.mean():.3f} +- {repeats.std(ddof=1):.3f}")


if __name__ == "__main__":
    main()

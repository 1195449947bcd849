"""The heart data as people at a desk see it: categories in words, labels, units and prices, and a small forest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.epistemic import AuxiliaryEnsemble
from askwise.table.desk import Desk, Shown

CALIBRATION_ROWS = 100
WORDS: dict[str, dict[int, Any]] = {
    "sex": {0: "female", 1: "male"},
    "cp": {1: "typical angina", 2: "atypical angina", 3: "other pain", 4: "no pain"},
    "fbs": {0: False, 1: True},
    "restecg": {0: "normal", 1: "ST-T abnormality", 2: "hypertrophy"},
    "exang": {0: False, 1: True},
    "slope": {1: "rising", 2: "flat", 3: "falling"},
    "thal": {3: "normal", 6: "fixed defect", 7: "reversible defect"},
}
LABELS = {
    "age": ("Age", "years"),
    "sex": ("Sex", None),
    "cp": ("Chest pain", None),
    "trestbps": ("Resting blood pressure", "mm Hg"),
    "chol": ("Cholesterol", "mg/dl"),
    "fbs": ("Fasting blood sugar over 120 mg/dl", None),
    "restecg": ("Resting ECG", None),
    "thalach": ("Maximum heart rate", "bpm"),
    "exang": ("Pain during exercise", None),
    "oldpeak": ("ST depression in exercise ECG", "mm"),
    "slope": ("Slope in exercise ECG", None),
    "ca": ("Vessels seen in fluoroscopy", None),
    "thal": ("Thallium scan", None),
}


def heart_selector() -> Any:
    """A fitted selector with a calibrated stop."""
    data = load("heart")
    X = data.X.copy()
    for name, words in WORDS.items():
        X[name] = data.X[name].map(words).astype(object)
    y = np.where(np.asarray(data.y) == 1, "disease", "no disease")
    order = np.random.default_rng(0).permutation(len(X))
    rest, train = order[:CALIBRATION_ROWS], order[CALIBRATION_ROWS:]
    members = AuxiliaryEnsemble(n_members=2, random_state=0)
    selector = DynamicFeatureSelector(_model(X, y, train), costs=data.prices, epistemic=members, random_state=0)
    selector.fit(X.iloc[train], y[train])
    selector.calibrate_stop(X.iloc[rest], agreement=0.9)
    return selector


def _model(X: pd.DataFrame, y: np.ndarray, rows: np.ndarray) -> Any:
    numbers = [name for name in X.columns if name not in WORDS]
    encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer((SimpleImputer(), numbers), (encoder, list(WORDS)))
    model = make_pipeline(columns, RandomForestClassifier(25, min_samples_leaf=3, random_state=0))
    return model.fit(X.iloc[rows], y[rows])


def save_heart(folder: Path) -> None:
    """A saved selector of the heart data with the words of the desk."""
    features = {name: Shown(label, unit) for name, (label, unit) in LABELS.items()}
    heart_selector().save(folder, desk=Desk("CAD", features))

"""Small tables, models and threads that several tests use."""

import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier


def correlated_numbers(n: int, n_features: int, cuts: Sequence[float], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes by the sum of the first two columns; the fourth nearly repeats the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X[:, 3] = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1], cuts)]


def patients(n: int, seed: int, pulse: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, counts, text, booleans and a category, with missing cells among the numbers and the text."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "visits": rng.integers(0, 5, n),
            "city": rng.choice(["Ghent", "Lille", "Namur"], n),
            "smoker": rng.random(n) < 0.4,
            "pain": pd.Categorical(rng.choice(["none", "mild", "bad"], n), ["none", "mild", "bad"]),
        }
    )
    if pulse:
        table["pulse"] = rng.normal(70, 8, n)
    y = ((table["age"] > 50) ^ (table["city"] == "Lille")).astype(int).to_numpy()
    for column in ["age", "city"] + ["pulse"] * pulse:
        table.loc[rng.random(n) < 0.15, column] = np.nan
    return table, y


def holed_numbers(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes by the second of four columns, with missing cells; of the first row nothing is there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = (X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0] = np.nan
    return X, y


def few_numbers(n: int = 90, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Two or three classes by the sum of the first two of four columns."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    return X, np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.7][: n_classes - 1])


def network(seed: int = 0, hidden: tuple[int, ...] = (6,), **options: Any) -> MLPClassifier:
    """A small network, trained briefly."""
    return MLPClassifier(hidden, max_iter=30, random_state=seed, **options)


def fitted(estimator: Any, n_classes: int = 3) -> Any:
    """The estimator fitted on `few_numbers`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*few_numbers(n_classes=n_classes))


def at_once(ask: Callable[[int], Any], n_threads: int, interval: float) -> list[Any]:
    """`ask(number)` of several threads that are switched often; errors are kept."""
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        try:
            found[number] = ask(number)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    return [found[number] for number in range(n_threads)]


def made_images(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n, 1, 8, 8) uint8 of three classes: class c is bright in patch r2c2, r2c3 or r3c2 of a 4 x 4 grid."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    images = rng.integers(0, 90, (n, 1, 8, 8), dtype=np.uint8)
    for c, (r, k) in enumerate([(2, 2), (2, 4), (4, 2)]):
        images[y == c, :, r : r + 2, k : k + 2] += 150
    return images, y

"""What the paper says in words about images (Section 4.3), with what must be above 0 for each sentence to hold."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from askwise.bench.paper.claims import Claim, Finding, agreement
from askwise.bench.paper.image_results import ACCURACIES, DATA, METHODS, OURS_IN_PAPER
from askwise.bench.report.rows import Quantity, method_name

WHERE = "Section 4.3"
PHOTOGRAPHS = ("cifar10", "imagenette")
RIVALS = ("patch-dime", "patch-vip")
ALIKE = 2.0
"""Points of accuracy below which a difference is called none."""

FAR_BELOW = 3
MOST_PATCHES = 10


def _by_seed(rows: pd.DataFrame, metric: str, method: str, data: str | None = None) -> pd.Series:
    """A metric by (data, seed), the mean over the numbers of patches."""
    chosen = Quantity("images", metric).of(rows[rows["method"] == method])
    chosen = chosen if data is None else chosen[chosen["data"] == data]
    return chosen.groupby(["data", "seed"])["value"].mean()


def _above(rows: pd.DataFrame, pairs: Iterable[tuple[str, str]], data: Iterable[str | None]) -> list[Finding]:
    """The first method of each pair is more accurate, in points; on each of `data`, None = on all of them."""
    return [
        Finding.over(
            f"{method_name(a)} over {method_name(b)}{'' if name is None else f' ({DATA[name]})'}",
            100 * (_by_seed(rows, "accuracy", a, name) - _by_seed(rows, "accuracy", b, name)),
        )
        for name in data
        for a, b in pairs
    ]


def _gain(rows: pd.DataFrame, method: str, over: str = "random") -> pd.Series:
    """Points by which a method's own choices beat another order of the patches, by (data, seed)."""
    return 100 * (_by_seed(rows, "accuracy", method) - _by_seed(rows, f"{over}_accuracy", method))


def _gains(over: str, methods: Iterable[str], rows: pd.DataFrame) -> list[Finding]:
    return [Finding.over(f"{method_name(name)}, points", _gain(rows, name, over)) for name in methods]


def _alike(rows: pd.DataFrame) -> list[Finding]:
    differences = {name: _above(rows, [("recnn", "cnn")], [name])[0] for name in DATA}
    return [
        Finding(f"{ALIKE:g} minus the gain ({DATA[name]})", ALIKE - found.samples, found.data)
        for name, found in differences.items()
    ]


def _low_epistemic(rows: pd.DataFrame) -> list[Finding]:
    found = []
    for name in (*OURS_IN_PAPER, "patch-askwise"):
        ratio = _by_seed(rows, "aleatoric", name) - FAR_BELOW * _by_seed(rows, "epistemic", name)
        found.append(Finding.over(f"{method_name(name)}, aleatoric minus {FAR_BELOW} epistemic", ratio))
    return found


def _by_patches(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric by number of patches, one row per (data, seed, method)."""
    chosen = Quantity("images", metric).of(rows)
    return chosen.pivot(index=["data", "seed", "method"], columns="budget", values="value")


def _calibration_steps(rows: pd.DataFrame) -> list[Finding]:
    errors = _by_patches(rows, "ece").groupby(["data", "seed"]).mean()
    steps = [(a, b) for a, b in pairwise(range(1, MOST_PATCHES + 1)) if {a, b} <= set(errors.columns)]
    return [Finding.over(f"ECE at {a} minus that at {b} patches", errors[a] - errors[b]) for a, b in steps]


def _calibration_and_accuracy(rows: pd.DataFrame) -> list[Finding]:
    errors, accuracies = _by_patches(rows, "ece"), _by_patches(rows, "accuracy")
    ranked = errors.rank(axis=1).T.corrwith(accuracies.rank(axis=1).T) if len(errors) else pd.Series(dtype=float)
    by_seed = -ranked.groupby(["data", "seed"]).mean() if len(ranked) else _by_seed(rows, "ece", "")
    return [Finding.over("minus Spearman's rho, mean over methods", by_seed)]


def _average(name: str) -> float:
    return float(np.mean([mean for mean, _ in ACCURACIES[name].values()]))


def _printed(name: str, data: str) -> float:
    return ACCURACIES[name][data][0]


_BEST = max(ACCURACIES, key=_average)
_RISES = [DATA[name] for name in DATA if _printed("recnn", name) - _printed("cnn", name) >= ALIKE]
_OTHERS = [name for name in ACCURACIES if name != "patch-vip"]
_DROPS = [(rival, frozen) for rival in RIVALS for frozen in ("cnn", "recnn")]

IMAGE_CLAIMS = [
    Claim(
        "VIP has the best accuracy over all images",
        WHERE,
        partial(_above, pairs=[("patch-vip", name) for name in _OTHERS], data=[None]),
        agreement(
            _BEST == "patch-vip",
            f"{METHODS[_BEST].strip('*')} has {_average(_BEST):.2f} on average, VIP {_average('patch-vip'):.2f}",
        ),
    ),
    Claim(
        "Frozen networks drop on CIFAR-10 and Imagenette (below DIME and VIP)",
        WHERE,
        partial(_above, pairs=_DROPS, data=PHOTOGRAPHS),
        agreement(all(_printed(a, name) > _printed(b, name) for a, b in _DROPS for name in PHOTOGRAPHS)),
    ),
    Claim(
        f"Reparametrization alone does not improve images (by less than {ALIKE:g} points)",
        WHERE,
        _alike,
        agreement(not _RISES, f"it does on {', '.join(_RISES)}"),
    ),
    Claim(
        "AdCNN is above CNN",
        WHERE,
        partial(_above, pairs=[("adcnn", "cnn")], data=list(DATA)),
        agreement(all(_printed("adcnn", name) > _printed("cnn", name) for name in DATA)),
    ),
    Claim("On images, the proposed policies beat random patches", "Figure 2", partial(_gains, "random", OURS_IN_PAPER)),
    Claim(
        f"VIP hardly gains from its policy on images (less than {ALIKE:g} points)",
        "Figure 2",
        lambda rows: [Finding.over(f"{ALIKE:g} minus the gain", ALIKE - _gain(rows, "patch-vip"))],
    ),
    Claim(
        "DIME gains less over random patches than AdCNN",
        "Figure 2",
        lambda rows: [Finding.over("points", _gain(rows, "adcnn") - _gain(rows, "patch-dime"))],
    ),
    Claim(f"On images, epistemic is far below aleatoric uncertainty (1/{FAR_BELOW})", WHERE, _low_epistemic),
    Claim("Calibration improves with every patch", "Figure 3", _calibration_steps),
    Claim("The calibration error of images falls as accuracy rises", "Figure 3", _calibration_and_accuracy),
    Claim(
        "On images, the proposed policies and the default beat the order from the middle",
        "beyond the paper",
        partial(_gains, "middle", (*OURS_IN_PAPER, "patch-askwise")),
    ),
    Claim(
        "The default of this library beats DIME, VIP and GDFS on images",
        "beyond the paper",
        partial(_above, pairs=[("patch-askwise", f"patch-{name}") for name in ("dime", "vip", "gdfs")], data=[None]),
    ),
]

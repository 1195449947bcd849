"""What the paper says in words about images (Section 4.3), with what must be above 0 for each sentence to hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from askwise_bench.paper import evidence
from askwise_bench.paper.claims import Claim, Term, agreement, compared, larger, paired
from askwise_bench.paper.paper_results import IMAGE_ACCURACIES, IMAGE_METHODS, IMAGES, OURS_ON_IMAGES
from askwise_bench.report.rows import Quantity, method_name

PHOTOGRAPHS = ("cifar10", "imagenette")
RUN = ("mnist", "imagenette")
"""Sets of which rows are kept."""

DROPS = "patch-dime patch-vip > cnn recnn"
ALIKE = 2.0
"""Points of accuracy below which a difference is called none."""

FAR_BELOW = 3
MOST_PATCHES = 10
_ACCURACY = Quantity("images", "accuracy")


def _on(data: str) -> Quantity:
    return Quantity("images", "accuracy", {"data": data})


def _above(pairs: str, *data: str) -> list[Term]:
    """The first method of each pair is more accurate, in points, on each of `data`."""
    return [term for name in data for term in larger(_on(name), pairs, 100, f" ({IMAGES[name]})")]


def _gain(what: str, method: str, over: str = "random", scale: int = 100, margin: float = 0.0) -> Term:
    """Points by which a method's own choices beat another order of the patches."""
    other = Quantity("images", f"{over}_accuracy")
    return Term(what, [(scale, method, _ACCURACY), (-scale, method, other)], margin)


def _average(name: str) -> float:
    return float(np.mean([mean for mean, _ in IMAGE_ACCURACIES[name].values()]))


def _printed(pairs: str, *data: str) -> list[float]:
    """The difference of each pair on each of `data`, in print."""
    by = IMAGE_ACCURACIES
    return [by[a][name][0] - by[b][name][0] for name in data for a, b in paired(pairs)]


_BEST = max(IMAGE_ACCURACIES, key=_average)
_RISES = [IMAGES[name] for name in IMAGES if _printed("recnn > cnn", name)[0] >= ALIKE]

IMAGE_CLAIMS = [
    Claim(
        "Section 4.3: VIP has the best accuracy over all images",
        larger(_ACCURACY, f"patch-vip > {' '.join(IMAGE_ACCURACIES)}", 100),
        agreement(
            _BEST == "patch-vip",
            f"{IMAGE_METHODS[_BEST].strip('*')} has {_average(_BEST):.2f} on average, VIP {_average('patch-vip'):.2f}",
        ),
    ),
    Claim(
        "Section 4.3: Frozen networks drop on CIFAR-10 and Imagenette (below DIME and VIP)",
        _above(DROPS, *PHOTOGRAPHS),
        agreement(min(_printed(DROPS, *PHOTOGRAPHS)) > 0),
    ),
    Claim(
        f"Section 4.3: Reparametrization alone does not improve images (by less than {ALIKE:g} points)",
        [
            Term(
                f"{ALIKE:g} minus the gain ({IMAGES[name]})",
                [(-100, "recnn", _on(name)), (100, "cnn", _on(name))],
                ALIKE,
            )
            for name in IMAGES
        ],
        agreement(not _RISES, f"it does on {', '.join(_RISES)}"),
    ),
    Claim(
        f"Section 4.3: AdCNN is above CNN ({' and '.join(IMAGES[name] for name in RUN)})",
        _above("adcnn > cnn", *RUN),
        agreement(min(_printed("adcnn > cnn", *RUN)) > 0),
    ),
    Claim(
        "Figure 2: On images, the proposed policies beat random patches",
        [_gain(f"{method_name(name)}, points", name) for name in OURS_ON_IMAGES],
    ),
    Claim(
        f"Figure 2: VIP hardly gains from its policy on images (less than {ALIKE:g} points)",
        [_gain(f"{ALIKE:g} minus the gain", "patch-vip", scale=-100, margin=ALIKE)],
    ),
    Claim(
        "Figure 2: DIME gains less over random patches than AdCNN",
        [Term("points", [*_gain("", "adcnn").parts, *_gain("", "patch-dime", scale=-100).parts])],
    ),
    Claim(
        f"Section 4.3: On images, epistemic is far below aleatoric uncertainty (1/{FAR_BELOW})",
        [
            Term(
                f"{method_name(name)}, aleatoric minus {FAR_BELOW} epistemic",
                [(1, name, Quantity("images", "aleatoric")), (-FAR_BELOW, name, Quantity("images", "epistemic"))],
            )
            for name in (*OURS_ON_IMAGES, "patch-askwise")
        ],
    ),
    Claim(
        "Figure 3: Calibration improves with every patch",
        [
            Term(
                f"ECE at {a} minus that at {b} patches",
                [(sign, None, Quantity("images", "ece", {"budget": k})) for sign, k in ((1, a), (-1, b))],
                paired=False,
            )
            for a, b in pairwise(range(1, MOST_PATCHES + 1))
        ],
    ),
    Claim("Figure 3: The calibration error of images falls as accuracy rises", evidence.calibration_and_accuracy),
    Claim(
        "Section 4.3: With two patches VIP and AdMLP are equally sure and differently calibrated",
        evidence.two_patches,
    ),
    Claim("Section 4.3: DIME scales better with the budget than AdCNN", evidence.scales_better),
    Claim(
        "beyond the paper: On images, the proposed policies and the default beat the order from the middle",
        [_gain(f"{method_name(name)}, points", name, "middle") for name in (*OURS_ON_IMAGES, "patch-askwise")],
    ),
    compared(
        "beyond the paper: AdCNN trained in turns with its choices beats DIME, VIP and GDFS on images",
        _ACCURACY,
        "adcnn-alternating > patch-dime patch-vip patch-gdfs",
        scale=100,
    ),
    compared(
        "beyond the paper: The default of this library beats DIME, VIP and GDFS on images",
        _ACCURACY,
        "patch-askwise > patch-dime patch-vip patch-gdfs",
        scale=100,
    ),
]

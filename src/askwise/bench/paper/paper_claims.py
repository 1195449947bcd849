"""What the paper says in words, claim by claim, with what must be above 0 for each to hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import pandas as pd

from askwise.bench.paper import paper_results
from askwise.bench.paper.accuracy_claims import ACCURACY_CLAIMS, Pair, better
from askwise.bench.paper.claims import Claim, Source, Term, Verdict, agreement, judged
from askwise.bench.paper.image_claims import IMAGE_CLAIMS
from askwise.bench.paper.table_claims import TABLE_CLAIMS
from askwise.bench.report.rows import Quantity, method_name
from askwise.bench.studies.policies import RISK_WEIGHTS

BY_RL = ("rl-remlp", "rl-mlp", "cwcf")
BY_ENTROPY = {"measure": "total"}
BY_ERROR = {"loss": "error"}


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Every claim, in the order of the paper."""
    return [judged(claim, claim.look(rows)) for claim in CLAIMS]


def _measured(text: str, where: str, terms: Sequence[Term], printed: str = "") -> Claim:
    return Claim(text, where, lambda rows: [term.find(rows) for term in terms], printed)


def _between(quantity: Quantity, pairs: Iterable[Pair], scale: float = 1.0) -> list[Term]:
    """The first method of each pair has the larger value."""
    return [
        Term(f"{method_name(a)} over {method_name(b)}", (a, quantity), (b, quantity), scale=scale) for a, b in pairs
    ]


def _weighted(metric: str, weights: Iterable[float]) -> Source:
    return None, Quantity("risk_weights", metric, {"risk_weight": list(weights)})


def _steps_of_shift(method: str, metric: str) -> list[Term]:
    """The metric grows from each sigma to the next."""
    return [
        Term(
            f"{method_name(method)}, {low:g} to {high:g}:",
            _shifted(method, metric, high),
            _shifted(method, metric, low),
        )
        for low, high in pairwise(paper_results.SHIFT_SIGMAS)
    ]


def _shifted(method: str, metric: str, sigma: float) -> Source:
    return method, Quantity("shift", metric, {"sigma": sigma})


def _lowest(table: Mapping[str, Sequence[float]], column: int) -> str:
    return min(table, key=lambda name: table[name][column])


_NO_WEIGHT = _weighted("epistemic", [0.0])
_POSITIVE_WEIGHTS = _weighted("epistemic", [weight for weight in RISK_WEIGHTS if weight > 0])
_NEGATIVE_WEIGHTS = _weighted("epistemic", [weight for weight in RISK_WEIGHTS if weight < 0])
_GAP: Source = "rl-remlp", Quantity("risk_gap", "mean_delta", BY_ERROR)
_SHIFTED = sorted({name for name, _ in paper_results.SHIFT})
_LOST = max(100 * (line[0][0] - line[k][0]) for line in paper_results.SHIFT.values() for k in (1, 2))
_VARIANCES = [[entry[2] for entry in line if entry[2] is not None] for line in paper_results.SHIFT.values()]
_CALMER = [f"{method_name(n)} at {b} %" for (n, b), line in paper_results.SHIFT.items() if line[0][1] >= line[-1][1]]

CLAIMS = [
    *ACCURACY_CLAIMS,
    _measured(
        "Positive lambda lowers epistemic uncertainty",
        "Table 2",
        [Term("e at 0 minus e above it:", _NO_WEIGHT, _POSITIVE_WEIGHTS)],
        agreement(paper_results.LAMBDA["positive"][2] < paper_results.LAMBDA["zero"][2]),
    ),
    _measured(
        "Negative lambda raises epistemic uncertainty",
        "Table 2",
        [Term("e below 0 minus e at it:", _NEGATIVE_WEIGHTS, _NO_WEIGHT)],
        agreement(paper_results.LAMBDA["negative"][2] > paper_results.LAMBDA["zero"][2]),
    ),
    _measured(
        "Lambda of 0.1 is more accurate than 0",
        "Section 4.2",
        [Term("points", _weighted("accuracy", [0.1]), _weighted("accuracy", [0.0]), scale=100)],
    ),
    _measured(
        "DIME is closest to the model of the subset",
        "Table 3",
        _between(Quantity("bias", "mean_kl_ref"), [(name, "dime") for name in paper_results.BIAS if name != "dime"]),
        agreement(_lowest(paper_results.BIAS, 0) == "dime"),
    ),
    _measured(
        "Greedy CART is farthest from it",
        "Table 3",
        _between(
            Quantity("bias", "mean_kl_ref"), [("greedy-cart", n) for n in paper_results.BIAS if n != "greedy-cart"]
        ),
        agreement(max(paper_results.BIAS, key=lambda name: paper_results.BIAS[name][0]) == "greedy-cart"),
    ),
    _measured(
        "Methods trained by RL lean toward the full model more than DIME does (KL ratio)",
        "Section 4.2",
        _between(Quantity("bias", "kl_ratio"), [(name, "dime") for name in BY_RL]),
        agreement(_lowest(paper_results.BIAS, 2) == "dime"),
    ),
    _measured(
        "They agree with the full model more than DIME does (KL to it)",
        "Section 4.2",
        _between(Quantity("bias", "mean_kl_full"), [("dime", name) for name in BY_RL]),
        agreement(_lowest(paper_results.BIAS, 1) != "dime", "DIME is the nearest of all"),
    ),
    _measured(
        "Entropy rejects better than aleatoric, epistemic uncertainty or variance (AURC)",
        "Appendix E",
        [
            Term(
                f"{method_name(m)}, {other.replace('_', ' ')}:",
                (m, Quantity("selective", "aurc", {"measure": other})),
                (m, Quantity("selective", "aurc", BY_ENTROPY)),
                scale=100,
            )
            for m in ("greedy-cart", "rl-mlp", "rl-remlp")
            for other in ("aleatoric", "mutual_information", "variance")
        ],
    ),
    _measured(
        "VIP has the lowest AURC",
        "Appendix E",
        _between(
            Quantity("selective", "aurc", BY_ENTROPY), [(n, "vip") for n in paper_results.SELECTIVE if n != "vip"], 100
        ),
        agreement(_lowest(paper_results.SELECTIVE, 0) == "vip"),
    ),
    _measured(
        "Reparametrization helps to find failures (AUROC)",
        "Appendix E",
        _between(Quantity("selective", "auroc", BY_ENTROPY), [("rl-remlp", "rl-mlp")], 100),
        agreement(paper_results.SELECTIVE["rl-remlp"][2] > paper_results.SELECTIVE["rl-mlp"][2]),
    ),
    _measured(
        "Noise of up to 0.2 costs less than 4 points of accuracy",
        "Appendix F",
        [
            Term(
                f"{method_name(m)}, 4 minus the loss:", _shifted(m, "accuracy", 0.2), _shifted(m, "accuracy", 0), 4, 100
            )
            for m in _SHIFTED
        ],
        agreement(_LOST < 4, f"{_LOST:.0f}"),
    ),
    _measured(
        "Ensemble variance grows with every step of the noise",
        "Appendix F",
        [term for name in ("greedy-cart", "rl-remlp") for term in _steps_of_shift(name, "variance")],
        agreement(
            all(low < high for line in _VARIANCES for low, high in pairwise(line)), "one step shows no change in print"
        ),
    ),
    _measured(
        "The calibration error of every method grows with the noise (0 to 2)",
        "Appendix F",
        [Term(f"{method_name(m)}:", _shifted(m, "ece", 2), _shifted(m, "ece", 0)) for m in _SHIFTED],
        agreement(not _CALMER, ", ".join(_CALMER)),
    ),
    _measured(
        "For greedy CART ensemble variance finds the subsets with a large risk gap",
        "Appendix F",
        [Term("Pearson's r", ("greedy-cart", Quantity("risk_gap", "pearson", {**BY_ERROR, "measure": "variance"})))],
        agreement(sum(r for (name, _), (r, _) in paper_results.RISK_GAP.items() if name == "greedy-cart") > 0),
    ),
    _measured(
        "For RL ReMLP there is hardly any gap (between -0.02 and 0.02)",
        "Appendix F",
        [
            Term("0.02 minus the gap", _GAP, margin=0.02, scale=-1),
            Term("0.02 plus the gap", _GAP, margin=0.02),
        ],
    ),
    _measured(
        "Reparametrization narrows the risk gap",
        "Appendix F",
        [
            Term(
                "|gap|:",
                ("rl-remlp", Quantity("reparametrization", "mean_abs_delta_imputed")),
                ("rl-remlp", Quantity("reparametrization", "mean_abs_delta_adapted")),
            )
        ],
        agreement(paper_results.REPARAMETRIZATION["all"][3] < paper_results.REPARAMETRIZATION["all"][2]),
    ),
    _measured(
        "Cases of high aleatoric uncertainty have low epistemic uncertainty",
        "Appendix F",
        [Term("minus Spearman's rho, mean over methods", (None, Quantity("scatter", "spearman")), scale=-1)],
    ),
    *TABLE_CLAIMS,
    *IMAGE_CLAIMS,
    Claim(
        "The default of this library beats RL ReMLP, VIP and the best fixed subset",
        "beyond the paper",
        partial(better, "variable", [("askwise", name) for name in ("rl-remlp", "vip", "static-best")]),
    ),
]

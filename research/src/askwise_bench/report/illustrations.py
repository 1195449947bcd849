"""What the paper only says in words or draws by formula, computed exactly: Sections 2.1 and 2.3, and Appendix A.

These figures need no rows: every report has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from askwise.plotting import COLORS, svg
from askwise.uncertainty import entropy, epistemic_divergence, kl_divergence, mutual_information
from askwise_bench.report.figures import Panel, Picture, add_legend, finish_axes, panel_grid

N_MEMBERS = 2000
PREVALENCE = 0.001
DOUBT = 1.5
"""Standard deviation of the members' log odds."""

RATIOS = np.geomspace(1, 1e6, 121)
"""How much likelier the test's result is with the disease than without."""

OFFSET_SPREAD = 3.0
SIGNAL = {"A": 1.0, "B": 0.25}
"""Half the distance between the class means of the two features, in standard deviations."""

VISITS = (0.5, 0.9, 0.99)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(101)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""An expectation over a standard normal is a sum over these."""


@dataclass(frozen=True)
class Illustration:
    """A figure made of formulas: `make` gives its panels and a note with its numbers."""

    name: str
    title: str
    label: str
    make: Callable[[], tuple[list[Panel], str]]
    x: str
    y: str = "nats"
    log: bool = False
    top: float | None = None

    def picture(self) -> Picture:
        """The figure."""
        panels, note = self.make()
        return Picture(self.name, self.title, self.label, note, svg(self.name, self.draw, panels))

    def draw(self, panels: Sequence[Panel]) -> Figure:
        """A curve per line of each panel."""
        figure, grid = panel_grid(len(panels))
        for axes, panel in zip(grid, panels, strict=True):
            for (name, values), color in zip(panel.lines.iterrows(), COLORS, strict=False):
                axes.plot(values.index, values, color=color, linewidth=1.8, label=name)
            finish_axes(axes, panel.title, self.x, self.y)
            axes.set_ylim(bottom=0, top=self.top)
            if self.log:
                axes.set_xscale("log")
        add_legend(figure, grid)
        return figure


def illustration_pictures() -> list[Picture]:
    """All of them, in the order of the paper."""
    return [illustration.picture() for illustration in ILLUSTRATIONS]


def rare_disease() -> tuple[list[Panel], str]:
    """Section 2.3: a disease of 0.1 % prevalence, and a test result of growing weight."""
    ratios = RATIOS
    found = {name: rare_disease_uncertainty(ratios, settled) for name, settled in TESTS.items()}
    balanced = int(found["the doubt stays"]["entropy"].argmax())
    told = [
        f"where {name}, they go from {parts['entropy'].iloc[0]:.4f} and {parts['EU'].iloc[0]:.4f} to "
        f"{parts['entropy'].iloc[balanced]:.3f} and {parts['EU'].iloc[balanced]:.4f} nats"
        for name, parts in found.items()
    ]
    note = (
        f"The members give a prevalence of 0.1 % on average, with a standard deviation of {DOUBT:g} in log odds; a "
        "positive result multiplies the odds by its likelihood ratio. Entropy and epistemic uncertainty up to a ratio "
        f"of {ratios[balanced]:.0f}: {'; '.join(told)}. Entropy rises either way; for epistemic uncertainty to fall "
        "meanwhile, as the paper says, the test must also settle the members' doubt."
    )
    return [Panel(name, parts.set_index(ratios).T) for name, parts in found.items()], note


def rare_disease_uncertainty(ratios: np.ndarray, settled: bool) -> pd.DataFrame:
    """Entropy of the mean prediction and its epistemic part (EU) after a result of each likelihood ratio.

    `settled`: the result also shrinks the members' doubt, by the square root of the ratio.
    """
    doubt = DOUBT / (np.sqrt(ratios) if settled else np.ones_like(ratios))
    center = logit(PREVALENCE) - DOUBT**2 / 2  # so that the mean probability is the prevalence
    proba = expit(center + (DOUBT**2 - doubt**2) / 2 + np.log(ratios) + doubt * NODES[:, None])  # (k, n)
    mean = WEIGHTS @ proba
    total = entropy(np.column_stack([1 - mean, mean]))
    of_members = entropy(np.stack([1 - proba, proba], axis=-1))  # (k, n)
    return pd.DataFrame({"entropy": total, "EU": total - WEIGHTS @ of_members})


def growing_risk() -> tuple[list[Panel], str]:
    """Section 2.3: the risk of a frozen model need not fall with one more feature."""
    reading, offset = risks_by_features()
    note = (
        f"A reading is the class (-1 or 1) plus an offset (standard deviation {OFFSET_SPREAD:g}); a second feature "
        "measures the offset. With the reading alone the frozen, mean-imputed model loses "
        f"{reading['frozen, mean-imputed'][1]:.2f} nats, more than the {reading['frozen, mean-imputed'][0]:.2f} with "
        f"nothing known and the {reading['frozen, mean-imputed'][2]:.2f} with both; the exact p(y | x_S) loses "
        f"{reading['exact'][1]:.2f}. More features never raise the risk of the exact prediction."
    )
    return [Panel("the reading first", reading.T), Panel("the offset first", offset.T)], note


def risks_by_features() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Log loss with 0, 1 and 2 features of the frozen and of the exact model: reading first, offset first."""
    spread = OFFSET_SPREAD**2
    covariance = np.array([[spread + 0.25, spread], [spread, spread + 0.25]])  # each has noise of its own, 0.5
    slope = 2 * np.linalg.inv(covariance)[0]  # log odds by Bayes' rule: class means are (1, 0) and (-1, 0)
    both = _logistic_risk(slope[0], np.sqrt(slope @ covariance @ slope))
    nothing, sd = np.log(2), np.sqrt(covariance[0, 0])
    frozen = [_logistic_risk(slope[0], abs(slope[0]) * sd), _logistic_risk(0.0, abs(slope[1]) * sd)]
    exact = [_logistic_risk(2 / sd**2, 2 / sd), nothing]  # the offset alone says nothing of the class
    first, second = (
        pd.DataFrame({"frozen, mean-imputed": [nothing, f, both], "exact": [nothing, e, both]})
        for f, e in zip(frozen, exact, strict=True)
    )
    return first, second


def rarely_visited() -> tuple[list[Panel], str]:
    """Section 2.1, Eq. 4: one model trained on the subsets that a policy visits pays on those it rarely visits."""
    shares = np.linspace(0.01, 0.99, 99)
    gaps = pd.DataFrame([risk_gaps(share) for share in shares], index=100 * shares)
    told = [f"{risk_gaps(share)['gap on B']:.4f} nats at {100 * share:g} %" for share in VISITS]
    note = (
        "Two features, A strong and B weak, share one weight in one model for both subsets, trained on as many rows of "
        "each as a policy visits. The risk gap (Eq. 3) on B, to a model of B alone, grows with the share of visits to "
        f"A: {', '.join(told)}; that on A falls to {risk_gaps(VISITS[-1])['gap on A']:.4f}."
    )
    return [Panel("", gaps.T)], note


def risk_gaps(share: float) -> dict[str, float]:
    """Risk gap on each subset when a `share` of the training rows shows A and the others B."""

    def risk(name: str, weight: float) -> float:
        return _logistic_risk(weight * SIGNAL[name], abs(weight))

    def joint(weight: float) -> float:
        return share * risk("A", weight) + (1 - share) * risk("B", weight)

    weight = float(minimize_scalar(joint, bounds=(0, 5), method="bounded", options={"xatol": 1e-8}).x)
    # The model of one subset alone has the weight of Bayes' rule, twice the signal.
    return {f"gap on {name}": risk(name, weight) - risk(name, 2 * signal) for name, signal in SIGNAL.items()}


def _logistic_risk(mean: float, deviation: float) -> float:
    """Expected log loss where the log odds of the true class are normal."""
    return float(WEIGHTS @ np.logaddexp(0, -(mean + deviation * NODES)))


def bernoulli() -> tuple[list[Panel], str]:
    """Appendix A: e = EU + KL(mean || q) for members Bernoulli(theta) and a primary model Bernoulli(phi)."""
    uniform = (np.arange(N_MEMBERS) + 0.5) / N_MEMBERS
    cases = {"theta uniform on [0, 1]": uniform, "theta 0 or 1, half each": np.array([0.0, 1.0])}
    note = (
        "e, the divergence of the members from the primary model, is their disagreement with each other (EU) plus the "
        "divergence of their mean from it. In nats."
    )
    return decompositions(cases), note


def decompositions(cases: Mapping[str, np.ndarray]) -> list[Panel]:
    """Both terms and their sum over phi, computed as the library computes them for its own predictions."""
    phi = np.linspace(0.01, 0.99, 99)
    primary = np.column_stack([1 - phi, phi])  # (n, 2)
    panels = []
    for title, theta in cases.items():
        members = np.repeat(np.column_stack([1 - theta, theta])[:, None, :], len(phi), axis=1)  # (k, n, 2)
        terms = {
            "e": epistemic_divergence(members, primary),
            "EU": mutual_information(members),
            "KL(mean || q)": kl_divergence(members.mean(axis=0), primary),
        }
        panels.append(Panel(title, pd.DataFrame(terms, index=phi).T))
    return panels


TESTS = {"the doubt stays": False, "the test settles the doubt": True}
ILLUSTRATIONS = (
    Illustration(
        "rarely-visited", "Subsets that a policy rarely visits", "Section 2.1", rarely_visited, "visits to A, %"
    ),
    Illustration(
        "rare-disease",
        "A rare disease: more is known and entropy rises",
        "Section 2.3",
        rare_disease,
        "likelihood ratio of the test's result",
        log=True,
    ),
    Illustration(
        "growing-risk", "Risk need not fall with one more feature", "Section 2.3", growing_risk, "features known"
    ),
    Illustration("bernoulli", "Bernoulli ensembles", "Appendix A", bernoulli, "phi, of the primary model", top=3),
)

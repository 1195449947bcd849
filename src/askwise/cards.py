"""Objects as notebooks show them: small HTML cards of a case, a suggestion, a run of `acquire`, and a selector.

A card is one self-contained element with its own style, which follows a light or dark page and loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from askwise.plotting import COLORS, template

MOST_RANKED = 5
MOST_CASES = 8
MOST_PRICES = 8


def case_card(report: Mapping[str, Any], suggestion: Any) -> str:
    """The card of a `Session`, from its report and its `Suggestion` (None at the end)."""
    chances = sorted(report["probabilities"].items(), key=lambda item: -item[1])
    colors = dict(zip(report["probabilities"], COLORS, strict=False))
    bars = [(label, share, colors.get(label, COLORS[-1])) for label, share in chances[: len(COLORS)]]
    ranked = [] if suggestion is None else suggestion.ranking
    return _card("case", report=report, bars=bars, ranking=_ranked(ranked), more=max(0, len(ranked) - MOST_RANKED))


def suggestion_card(ranking: Sequence[tuple[str, float, float]]) -> str:
    """The card of a `Suggestion`: its candidates, best first."""
    return _card("suggestion", ranking=_ranked(ranking), more=max(0, len(ranking) - MOST_RANKED))


def trajectory_card(trajectory: Any) -> str:
    """The card of a `Trajectory`: what was acquired for the first cases, at what price, and where each ended."""
    spent, decided = trajectory.spent_after(-1), trajectory.predict(-1)
    sure = trajectory.ends.proba.max(axis=1)
    cases = [
        {
            "case": i if trajectory.index is None else trajectory.index[i],
            "asked": [trajectory.features[k] for k in trajectory.order[i] if k >= 0],
            "spent": float(spent[i]),
            "prediction": decided[i],
            "sure": float(sure[i]),
        }
        for i in range(min(MOST_CASES, len(spent)))
    ]
    mean = float(spent.mean()) if len(spent) else 0.0
    return _card("trajectory", cases=cases, n=len(spent), steps=trajectory.n_steps, mean=mean)


def selector_card(selector: Any) -> str:
    """The card of a fitted selector, to stand below scikit-learn's own: prices, parts in use, and the promise."""
    prices = sorted(zip(selector.features_, selector.costs_.tolist(), strict=True), key=lambda item: -item[1])
    stop = getattr(selector, "stop_", None)
    facts = {
        "predicts by": type(selector.predictor_).__name__,
        "chooses by": type(selector.policy_).__name__,
        "members from": "none" if selector.epistemic_ is None else type(selector.epistemic_).__name__,
        "calibrated": "no" if getattr(selector, "calibration_", None) is None else "yes",
    }
    return _card(
        "selector",
        prices=prices[:MOST_PRICES],
        highest=max((price for _, price in prices), default=0.0) or 1.0,
        more=max(0, len(prices) - MOST_PRICES),
        uniform=selector.prices_.uniform,
        facts=facts,
        classes=[str(label) for label in selector.classes_],
        n_features=len(prices),
        promise=None if stop is None else stop.promise,
    )


def _ranked(ranking: Sequence[tuple[str, float, float]]) -> list[dict[str, Any]]:
    shown = ranking[:MOST_RANKED]
    highest = max((gain for _, _, gain in shown), default=0.0)
    return [
        {"feature": name, "cost": cost, "gain": gain, "share": max(0.0, gain / highest) if highest > 0 else 0.0}
        for name, cost, gain in shown
    ]


def _card(kind: str, **content: Any) -> str:
    return template("card.html").render(kind=kind, **content)

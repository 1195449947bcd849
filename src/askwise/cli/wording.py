"""Values, names and rules as people read them, in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askwise.table.desk import Desk

MOST_CATEGORIES = 6
NONE_FIRES = "No rule fires yet: each class has its share of the training rows."
NONE_POSSIBLE = "No other rule is possible any more."


def shown_value(value: Any) -> str:
    """A value as people write it; those of a group's columns one after the other."""
    if isinstance(value, Mapping):
        return ", ".join(shown_value(cell) for cell in value.values())
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def shown_number(number: float | str | None) -> str:
    """A gain or an uncertainty: "infinite" is a word already, None is one that is not measured."""
    if number is None or isinstance(number, str):
        return number or "-"
    return f"{round(number, 3) + 0.0:.3f}"  # + 0.0, because rounding error would read as -0.000


def step_name(step: Mapping[str, Any], known: Mapping[str, Any] | None = None, desk: Desk | None = None) -> str:
    """What happened in a step of a trace; `known` is what was known from the start."""
    from askwise.table.desk import Desk

    desk = desk or Desk()
    if step["feature"] is not None:
        return desk.label(str(step["feature"]))
    if not known:
        return "nothing yet"
    said = (f"{desk.label(name)} {desk.with_unit(name, shown_value(value))}" for name, value in known.items())
    return "known: " + ", ".join(said)


def choices_in_words(choices: Mapping[str, Any]) -> list[str]:
    """What a selector chose, from its `choices_`."""
    words = [_policy_in_words(choices["policy"])]
    if "answer" in choices:
        words.append(_width_in_words(choices["answer"]))
    if "pooling" in choices:
        share = choices["pooling"]["model_share"]
        words.append(f"the model keeps {share:.0%} of the weight, and Gaussians of each class have the rest")
    if choices["calibration"] is not None:
        losses = choices["calibration"]["log_loss"]
        calibrated = "calibrated by temperature scaling"
        kept = calibrated if choices["calibration"]["kept"] else f"not {calibrated}, which would not help"
        within = ", within chance" if choices["calibration"]["kept"] and losses["after"] > losses["before"] else ""
        words.append(f"{kept} (log loss {losses['before']:.3f} before, {losses['after']:.3f} after{within})")
    if choices["settling"]["cut_short"]:
        words.append(f"on part of the rows only, to save time ({choices['settling']['refits']} refits of the model)")
    return words


def _width_in_words(choice: Mapping[str, Any]) -> str:
    """How incomplete rows are predicted: the width of the kernel, and the share of similar rows themselves."""
    narrowest, widest = (f"{choice[end]:.2g}" for end in ("narrowest", "widest"))
    grows = "" if narrowest == widest else f" with one feature known, {widest} with nearly all"
    by = choice["by"] if choice["by"].startswith(("default", "given")) else f"chosen by {choice['by']}"
    share = choice["similar_rows"]
    themselves = f" and, up to {share:.0%}, its average over these rows as they are" if share else ""
    filled = "the model's average over missing values filled in from similar training rows"
    return f"predictions: {filled}{themselves} (kernel width {narrowest}{grows}; {by})"


def _policy_in_words(choice: Mapping[str, Any]) -> str:
    """The policy, and the reason for it if looking ahead was considered."""
    ahead = choice.get("lookahead")
    if ahead is None:
        return f"policy {choice['name']}"
    if ahead["gates"]:
        return f"policy {choice['name']} ({', '.join(ahead['gates'])}: worth most for what to acquire next)"
    tried = ahead["n_considered"], ahead["n_features"]
    looked = "" if tried[0] == tried[1] else f", tried from {tried[0]} of {tried[1]} features,"
    plans = "; under a budget, what its rest can buy counts as well" if "plans" in choice else ""
    return f"policy {choice['name']} (looking ahead{looked} would gain little{plans})"


def finality(step: Mapping[str, Any]) -> str:
    """How likely the decision of a step is final; not where the case is unlike everything that this rests on."""
    if warnings_of(step):
        return "How likely the decision would stay the same with everything known cannot be said."
    share = step["decision_is_final"]
    said = "over 99%" if 0.995 <= share < 1 else f"{share:.0%}"
    return f"The decision would stay the same with everything known: {said}"


def shown_share(step: Mapping[str, Any], share: float, digits: int = 0) -> str:
    """A probability of a step; none where the case is unlike everything that it would rest on."""
    return "" if warnings_of(step) else f"{share:.{digits}%}"


def warnings_of(step: Mapping[str, Any]) -> list[str]:
    """Why the prediction of a step rests on nothing seen in training: cells, or the case as a whole."""
    said = [
        f"{cell['column']} {shown_value(cell['value'])} is outside everything seen in training ({_seen(cell['seen'])})."
        for cell in step.get("outside") or []
    ]
    novelty = step.get("novelty") or 0.0
    if novelty == "infinite" or novelty > 0:
        how_far = novelty if isinstance(novelty, str) else f"{novelty:.2g}"
        said.append(f"The case as a whole is unlike the training rows (novelty {how_far}; 0 is within what was seen).")
    return said


def _seen(seen: Sequence[Any]) -> str:
    if len(seen) == 2 and all(isinstance(end, int | float) and not isinstance(end, bool) for end in seen):
        return f"{shown_value(seen[0])} to {shown_value(seen[1])}"
    more = f", ... ({len(seen)} in all)" if len(seen) > MOST_CATEGORIES else ""
    return ", ".join(shown_value(value) for value in seen[:MOST_CATEGORIES]) + more

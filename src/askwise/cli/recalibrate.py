"""The command `askwise recalibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.console import print_json, progress
from askwise.cli.monitor import Database, Served, opened_checks, since_text, url_shown
from askwise.cli.options import AsJson, Opening, check_saved, with_options
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np

    from askwise.stopping.calibrated_stop import CalibratedStop

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FOLDER", help="Where to save the new version (default: in its place)."),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="DATE",
        help="Only cases that were finished at this date (2026-11-01) or later: after a change, those before it say "
        "nothing about what comes.",
    ),
]


@with_options(Opening)
def recalibrate(
    opening: Opening,
    folder: Served,
    database: Database = None,
    output: Output = None,
    since: Since = None,
    as_json: AsJson = False,
) -> None:
    """Make a new stop from the cases that the server checked, for the same goal; the model stays as it is."""
    check_saved(folder)
    after = since_text(since)
    from askwise.files import writing
    from askwise.persistence.folder import read_folder
    from askwise.persistence.saving import load_desk, save
    from askwise.stopping.guarantee import rows_needed

    target = folder if output is None else output
    with progress(3) as say:
        say("reading the cases")
        selector, checks, url = opened_checks(folder, opening, database)
        old, handover = checks.stop, selector.handover_
        if old is None:
            raise InvalidInput(f"{folder} has no stop that promises an agreement; calibrate one first.")
        X, n_left_out = checks.rows(after)
        needed = rows_needed(old.goal.risk, old.goal.confidence)
        if len(X) < needed:
            raise InvalidInput(
                f"{len(X)} checked cases{' since then' if since else ''} are complete, and an agreement of "
                f"{old.goal.agreement:g} at confidence {old.goal.confidence:g} needs {needed}: check more of them "
                "(askwise serve --check)."
            )
        say("calibrating")
        limit = None if old.conditions.budget == float("inf") else old.conditions.budget
        spent, full = _everything(selector, X, limit)
        before = _on_these(selector, X, old, limit, spent, full)
        goal = old.goal
        new = selector.calibrate_stop(
            X,
            agreement=goal.agreement,
            confidence=goal.confidence,
            conditional=goal.conditional,
            per_class=goal.per_class,
            subgroups=old.grouped_by or None,
            budget=limit,
        )
        say("saving")
        like, _ = read_folder(folder, opening.key_file, only=())
        with writing(target):
            save(selector, target, key_file=opening.key_file, desk=load_desk(folder, opening.key_file), like=like)
    after_it = _on_these(selector, X, new, limit, spent, full)
    found: dict[str, Any] = {
        "cases": len(X),
        "left_out": n_left_out,
        "old": {**before, "threshold": old.threshold, "promise": old.promise},
        "new": {**after_it, "threshold": new.threshold, "promise": new.promise},
        "lost": _lost(old, new, handover),
        "folder": str(target),
        "database": url_shown(url),
    }
    if as_json:
        print_json(found)
        return
    typer.echo(f"Checked cases:  {len(X)} complete, {n_left_out} left out")
    for which in ("old", "new"):
        one = found[which]
        typer.echo(
            f"The {which} stop:   {one['price']:.4g} per case on these, {one['changed']:.1%} of the decisions changed, "
            f"{one['early']:.0%} stopped early"
        )
    typer.echo(f"Now promised:   {new.promise}")
    for line in found["lost"]:
        typer.echo(f"Note:           {line}")
    served = "" if target == folder else f"; serve it with --db {url_shown(url)}, so that its cases stay where they are"
    typer.echo(f"Saved:          {target}{served}. Restart the server: cases are checked anew, for the new promise.")


def _everything(selector: Any, X: Any, budget: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the cases cost without a stop, (n,), and what all features decide, (n,): the same for every stop."""
    full = selector.beliefs_.decisions(selector.predictor_.full_proba(selector.schema_.encode(X)))
    return selector.acquire(X, budget).spent_after(-1), selector.classes_[full]


def _on_these(
    selector: Any, X: Any, stop: CalibratedStop, budget: Any, everything: np.ndarray, full: np.ndarray
) -> dict[str, float]:
    """What a stop does to the cases, beside what `everything` costs and the decisions of the `full` rows."""
    run = selector.acquire(X, budget, stop=stop)
    return {
        "price": float(run.spent_after(-1).mean()),
        "changed": float((run.predict() != full).mean()),
        "early": float((run.spent_after(-1) < everything).mean()),
    }


def _lost(old: CalibratedStop, new: CalibratedStop, handover: Any) -> list[str]:
    """What the selector had and has no more, in words."""
    found = []
    if old.prediction_sets is not None:
        found.append("There are no prediction sets any more: they need the true classes, which no server knows.")
    if handover is not None:
        found.append("The rule for cases to hand to a person was made for the old stop and is gone: calibrate it anew.")
    if old.subgroups and not new.subgroups:
        names = ", ".join(map(repr, old.subgroups))
        found.append(f"Nothing is promised for each of {names} any more: no column holds them.")
    fewer = {one.label for one in old.classes if one.promised} - {one.label for one in new.classes if one.promised}
    if fewer:
        names = ", ".join(map(repr, sorted(fewer, key=str)))
        found.append(f"Nothing is promised for each case of {names} any more: too few of these are.")
    return found

"""The command `askwise explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.acquire import CasesFile, Id
from askwise.cli.console import make_console, print_json
from askwise.cli.evaluate import Folder
from askwise.cli.shared_options import AsJson, Opening, Reading, check_saved, with_options
from askwise.errors import InvalidInput
from askwise.tables import check_path

if TYPE_CHECKING:
    import pandas as pd

Case = Annotated[str, typer.Option(metavar="NUMBER", help="The row to explain, 1 for the first; with --id, its id.")]


@with_options(Opening, Reading)
def explain(
    opening: Opening,
    reading: Reading,
    folder: Folder,
    cases: CasesFile,
    case: Case,
    id_column: Id = None,
    as_json: AsJson = False,
) -> None:
    """Explain one case of a file: how its known values lead to the prediction, one by one, and what to ask next."""
    check_saved(folder)
    check_path(cases)
    from askwise.cli.comparison import Story
    from askwise.cli.own_files import open_saved, read_cases
    from askwise.cli.steps import print_rules, print_story

    selector, desk = open_saved(folder, opening)
    frame = read_cases(cases, selector, desk, reading, keep=[id_column] if id_column else [])
    row = _row(frame, case, id_column, cases)
    values = selector.schema_.encode(frame.drop(columns=[id_column] if id_column else []).iloc[[row]]).values[0]
    report, why, reasons = followed(selector, values, desk)
    title = f"Case {case} of {cases.name}"
    if as_json:
        print_json({"case": case, **report, "reasons": reasons, "why": why})
        return
    console = make_console()
    console.print(f"{title}: {report['prediction']}", style="bold")
    console.print("Its known values, in the order in which askwise would have asked for them")
    print_story(console, Story(title, report["trace"]))
    print_rules(console, report, 5)
    for step in reasons:
        said = f"{desk.label(step['feature'])}: {step['said']}"
        console.print(f"- {said}")
    console.print(f"\n{why['text']}")


def followed(selector: Any, values: Any, desk: Any) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Replay the known values of a case in the order of the policy: its report, what comes next, and each reason."""
    import numpy as np

    schema = selector.schema_
    known = schema.any_column(~np.isnan(values)[None])[0]
    session, reasons = selector.start(budget=float("inf")), []
    left = {name for name, there in zip(schema.features, known, strict=True) if there}
    while left:
        suggestion = session.suggest()
        ranked = [name for name, _, _ in suggestion.ranking if name in left] if suggestion is not None else []
        feature = ranked[0] if ranked else min(left, key=schema.features.index)
        before = session.report()["prediction"]
        session.answer(feature, schema.show_feature(schema.position(feature), values))
        after = session.report()
        share = after["probabilities"][str(after["prediction"])]
        moved = "changes the decision to" if after["prediction"] != before else "stays"
        reasons.append({"feature": feature, "said": f"{moved} {after['prediction']}, {share:.0%}"})
        left.remove(feature)
    return session.report(), session.why(desk), reasons


def _row(frame: pd.DataFrame, case: str, id_column: str | None, path: Path) -> int:
    """The position of the case."""
    if id_column is not None:
        found = [r for r, name in enumerate(frame[id_column].astype(str)) if name == case]
        if len(found) != 1:
            raise InvalidInput(f"--case: {path} has {len(found)} rows whose {id_column!r} is {case!r}; one is needed.")
        return found[0]
    if not case.isdecimal() or not 1 <= int(case) <= len(frame):
        raise InvalidInput(f"--case must be the number of a row of {path}, 1 to {len(frame)}; got {case!r}.")
    return int(case) - 1

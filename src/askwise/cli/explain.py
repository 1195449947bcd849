"""The command `askwise explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.acquire import CasesFile, Id
from askwise.cli.console import make_console, print_json
from askwise.cli.evaluate import Folder
from askwise.cli.options import AsJson, Opening, Reading, check_saved, with_options
from askwise.errors import InvalidInput
from askwise.table.reading import check_path

if TYPE_CHECKING:
    import pandas as pd

RULES_SHOWN = 5
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
    one = frame.drop(columns=[id_column] if id_column else []).iloc[[row]]
    encoded = selector.schema_.encode(one)
    for j, values in encoded.unseen.items():
        column = selector.schema_.columns[j].name
        raise InvalidInput(f"--case {case}: the column {column!r} holds {values[0]!r}, which no training row has.")
    report, why = followed(selector, encoded.values[0], desk)
    stopped = None if selector.stop_ is None else _stopped(selector, one)
    title = f"Case {case} of {cases.name}"
    if as_json:
        print_json({"case": case, **report, "why": why, "stopped": stopped})
        return
    console = make_console()
    console.print(f"{title}: predicted {report['prediction']}", style="bold")
    console.print("Its known values, in the order in which askwise would have asked for them:")
    print_story(console, Story(title, report["trace"]), desk)
    print_rules(console, report, RULES_SHOWN)
    console.print(_settled(report["trace"], desk))
    if stopped is not None:
        price, count = desk.amount(stopped["spent"]), stopped["n_bought"]
        features = f"{count} feature{'' if count == 1 else 's'}"
        console.print(f"The stop would have ended it after {features} for {price}: {stopped['prediction']}.")
    console.print(f"\n{why['text']}")


def _settled(trace: list[dict[str, Any]], desk: Any) -> str:
    """Since when the decision has been what it is."""
    changed = [t for t in range(1, len(trace)) if trace[t]["prediction"] != trace[t - 1]["prediction"]]
    if not changed:
        return f"The decision has been {trace[-1]['prediction']} from the start."
    feature = desk.label(trace[changed[-1]]["feature"])
    return f"The decision has been {trace[-1]['prediction']} since step {changed[-1]}: {feature}."


def _stopped(selector: Any, one: pd.DataFrame) -> dict[str, Any]:
    """Where the calibrated stop would have ended the case."""
    from askwise.scale.parts import ends_of
    from askwise.table.columns import plain

    end = ends_of(selector.acquire(one, stop="calibrated"), one.index.to_numpy(), "prediction").iloc[0]
    return {name: plain(end[name]) for name in ("n_bought", "bought", "spent", "prediction")}


def followed(selector: Any, values: Any, desk: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Replay the known values of a case in the order of the policy: its report, and why what comes next does."""
    schema, session = selector.schema_, selector.start(budget=float("inf"))
    left = [name for i, name in enumerate(schema.features) if (values == values)[schema.feature_columns[i]].any()]
    while left:
        suggestion = session.suggest()
        ranked = [] if suggestion is None else [name for name, _, _ in suggestion.ranking if name in left]
        feature = [*ranked, *left][0]
        session.answer(feature, schema.show_feature(schema.position(feature), values))
        left.remove(feature)
    return session.report(), session.why(desk)


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

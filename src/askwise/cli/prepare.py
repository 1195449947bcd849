"""From the options to a wrapped model: the rows, the reference model trained on them, and the selector around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from askwise.cli.comparison import Comparison
from askwise.cli.console import make_console
from askwise.cli.options import RULE_MODELS, Adaptation, Model, Source
from askwise.cli.user_table import load_user_table, row_counters
from askwise.datasets import Dataset, load, names
from askwise.errors import InvalidInput
from askwise.reference_models import ReferenceModel, train_reference_model
from askwise.selector import DynamicFeatureSelector
from askwise.tables import read_table


def prepare(
    source: Source, model: Model, adaptation: Adaptation, seed: int, say: Callable[[str], None]
) -> tuple[ReferenceModel, DynamicFeatureSelector]:
    """The table, the reference model trained on it, and the selector around that; `say` names each step."""
    dataset = _load(source)
    say(f"training the reference model, {model.value}")
    rows = train_reference_model(dataset, model.value, seed)
    say("wrapping it")
    by_rules = adaptation is Adaptation.auto and model in RULE_MODELS
    selector = DynamicFeatureSelector(
        rows.estimator,
        costs=dataset.prices,
        groups=dataset.groups,
        adaptation="rules" if by_rules else adaptation.value,
        random_state=seed,
        progress=False,
    )
    return rows, selector.fit(rows.X_train, rows.y_train)


def about(rows: ReferenceModel, selector: DynamicFeatureSelector, seed: int) -> list[tuple[str, str]]:
    """How a result was made, as (what, text)."""
    prices = "as published with the data" if rows.dataset.prices is not None else "1 for each feature"
    adapted = [] if selector.adaptation == "auto" else [("adaptation", str(selector.adaptation))]
    return [
        ("data", " ".join(rows.dataset.description.split())),
        ("rows", rows.split),
        ("model", f"{rows.model}, a reference model in place of a validated one: {rows.estimator[-1]}"),
        *adapted,
        ("prices", prices),
        ("seed", str(seed)),
    ]


def facts(rows: ReferenceModel, selector: DynamicFeatureSelector, comparison: Comparison) -> dict[str, Any]:
    """What a demo found, ready for JSON."""
    return {
        "data": rows.dataset.name,
        "model": rows.model,
        "adaptation": selector.adaptation,
        "split": rows.split,
        "full_accuracy": comparison.full,
        "note": comparison.note,
        "curves": comparison.curves.to_dict("records"),
    }


def _load(source: Source) -> Dataset:
    if source.csv is None:
        name = source.data or "wine"
        if name not in names():
            raise InvalidInput(f"--data: there is no data set {name!r}. The data sets are: {', '.join(names())}.")
        return load(name)
    notes = make_console(stderr=True)
    table = read_table(source.csv, source.table)
    for line in table.inferred:
        notes.print(line, soft_wrap=True)
    dataset = load_user_table(table.frame, source.csv, str(source.target), source.drop)
    for column in row_counters(dataset.X):
        notes.print(f"Note: column {column!r} numbers the rows. If it is an id: --drop {column!r}")
    return dataset

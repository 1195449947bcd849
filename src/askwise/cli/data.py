"""The command `askwise data`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askwise.cli.console import failures
from askwise.cli.options import Seed
from askwise.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

    from askwise.datasets import Dataset
    from askwise.table.desk import Desk

SHARES = {"train": 0.6, "calibrate": 0.2, "test": 0.2}
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set; a wrong name lists them all.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="The folder (default: its name).")]

HEART: dict[str, tuple[str, str | None, dict[int, str]]] = {
    "age": ("Age", "years", {}),
    "sex": ("Sex", None, {0: "female", 1: "male"}),
    "cp": ("Chest pain", None, {1: "typical", 2: "atypical", 3: "other", 4: "none"}),
    "trestbps": ("Blood pressure at rest", "mmHg", {}),
    "chol": ("Cholesterol", "mg/dl", {}),
    "fbs": ("Fasting sugar above 120 mg/dl", None, {0: "no", 1: "yes"}),
    "restecg": ("ECG at rest", None, {0: "normal", 1: "ST-T", 2: "hypertrophy"}),
    "thalach": ("Highest heart rate", "bpm", {}),
    "exang": ("Angina in exercise", None, {0: "no", 1: "yes"}),
    "oldpeak": ("ST depression in exercise", "mm", {}),
    "slope": ("ST slope in exercise", None, {1: "up", 2: "flat", 3: "down"}),
    "ca": ("Vessels seen in fluoroscopy", None, {}),
    "thal": ("Thallium scan", None, {3: "normal", 6: "fixed", 7: "reversible"}),
}
"""Label, unit and codes of each column of heart."""

TARGETS = {"heart": ("diagnosis", {0: "healthy", 1: "disease"})}
"""The name of the target and of its classes, where the original has numbers only."""


def data(name: Name, output: Output = None, seed: Seed = 0) -> None:
    """Write a data set as files like your own: train.csv, calibrate.csv, test.csv, prices.csv, and groups.toml."""
    with failures():
        folder = Path(name) if output is None else output
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(f"{folder} exists and is not an empty folder. Choose another with --output.")
        from askwise.datasets import load, names
        from askwise.files import writing

        if name not in names():
            raise InvalidInput(f"There is no data set {name!r}. The data sets are: {', '.join(names())}.")
        with writing(folder):
            written = _written(folder, load(name), seed)
        for path, what in written.items():
            typer.echo(f"{path}: {what}")


def _written(folder: Path, dataset: Dataset, seed: int) -> dict[Path, str]:
    """What was written, by file."""
    from askwise.cli.price_list import price_list
    from askwise.files import write_whole
    from askwise.table.prices import Prices
    from askwise.table.schema import read_table

    target, names = TARGETS.get(dataset.name, ("target", {}))
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for part, rows in _parts(dataset, seed).items():
        X = dataset.X.iloc[rows].apply(_whole)
        table = X.assign(**{target: [names.get(label, label) for label in dataset.y[rows].tolist()]})
        write_whole(folder / f"{part}.csv", table.to_csv(index=False, lineterminator="\n"))
        written[folder / f"{part}.csv"] = f"{len(rows):,} rows, the class is in the column {target}"
    schema = read_table(dataset.X, dataset.groups)[0]
    prices = (dataset.prices or Prices()).resolve(schema.features)
    write_whole(folder / "prices.csv", price_list(schema, prices, _desk(dataset)))
    written[folder / "prices.csv"] = f"{len(schema.features)} features"
    if dataset.groups:
        lines = [f"{_quoted(group)} = [{', '.join(map(_quoted, of))}]\n" for group, of in dataset.groups.items()]
        write_whole(folder / "groups.toml", "".join(lines))
        written[folder / "groups.toml"] = f"{len(lines)} groups of columns"
    return written


def _parts(dataset: Dataset, seed: int) -> dict[str, list[int]]:
    """Rows of each part: at random, with rows that belong together in one part."""
    import numpy as np

    groups = np.arange(len(dataset.y)) if dataset.row_groups is None else dataset.row_groups
    distinct, which = np.unique(groups, return_inverse=True)
    place = (np.random.default_rng(seed).permutation(len(distinct)) + 0.5)[which] / len(distinct)
    ends = np.cumsum([0, *SHARES.values()])
    return {
        part: np.flatnonzero((place > low) & (place <= high)).tolist()
        for part, low, high in zip(SHARES, ends[:-1], ends[1:], strict=True)
    }


def _desk(dataset: Dataset) -> Desk:
    from askwise.table.desk import Desk, Shown

    currency = "CAD" if dataset.prices is not None else None
    shown = HEART if dataset.name == "heart" else {}
    return Desk(
        currency, {name: Shown(_with_codes(label, codes), unit) for name, (label, unit, codes) in shown.items()}
    )


def _with_codes(label: str, codes: dict[int, str]) -> str:
    return f"{label} ({', '.join(f'{code} {word}' for code, word in codes.items())})" if codes else label


def in_words(dataset: Dataset) -> Dataset:
    """heart with names, answers and classes in words in place of its codes; any other data set as it is."""
    if dataset.name != "heart" or dataset.prices is None:
        return dataset
    import numpy as np

    from askwise.table.prices import Prices

    columns = list(dataset.X.columns)
    label = {name: HEART[name][0] for name in columns}
    X = dataset.X.apply(lambda cells: cells.map(codes) if (codes := HEART[str(cells.name)][2]) else cells)
    resolved = dataset.prices.resolve(columns)
    prices = Prices(
        {label[name]: float(price) for name, price in zip(columns, resolved.costs, strict=True)},
        [([label[columns[i]] for i in members], saving) for members, saving in resolved.shared],
    )
    classes = TARGETS["heart"][1]
    y = np.array([classes[code] for code in dataset.y.tolist()])
    return replace(dataset, X=X.rename(columns=label), y=y, prices=prices)


def _whole(cells: pd.Series) -> pd.Series:
    """Whole numbers without a decimal point: 63 and not 63.0."""
    numeric = cells.dtype.kind == "f" and bool((cells.dropna() % 1 == 0).all())
    return cells.astype("Int64") if numeric else cells


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

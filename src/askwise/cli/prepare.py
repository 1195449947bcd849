"""From the options to a wrapped model: the rows, the reference model trained on them, and the selector around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from askwise.cli.comparison import RANDOM_ORDERS, compare, flowchart, stop_in_time, tell_story
from askwise.cli.data import in_words
from askwise.cli.demo_report import Report
from askwise.cli.options import RULE_MODELS, Adaptation, Setup
from askwise.cli.user_table import load_user_table
from askwise.datasets import Dataset, load, names
from askwise.errors import InvalidInput, listed
from askwise.evaluation import default_budgets
from askwise.reference_models import ReferenceModel, train_reference_model
from askwise.selector import DynamicFeatureSelector
from askwise.table.prices import Prices
from askwise.table.schema import read_table as read_schema


def prepare(setup: Setup, say: Callable[[str], None]) -> tuple[ReferenceModel, DynamicFeatureSelector]:
    """The table, the reference model trained on it, and the selector around that; `say` names each step."""
    dataset = _priced(_load(setup), setup.price or [])
    say(f"training the reference model, {setup.model.value}")
    rows = train_reference_model(dataset, setup.model.value, setup.seed)
    say("wrapping it")
    by_rules = setup.adaptation is Adaptation.auto and setup.model in RULE_MODELS
    selector = DynamicFeatureSelector(
        rows.estimator,
        costs=dataset.prices,
        groups=dataset.groups,
        adaptation="rules" if by_rules else setup.adaptation.value,
        random_state=setup.seed,
        progress=False,
    )
    return rows, selector.fit(rows.X_train, rows.y_train)


def demonstrate(setup: Setup, say: Callable[[str], None]) -> tuple[ReferenceModel, DynamicFeatureSelector, Report]:
    """Train, wrap, compare and follow one case."""
    if isinstance(setup.budget, dict):
        raise InvalidInput("askwise demo compares budgets of money; give --budget a number.")
    rows, selector = prepare(setup, say)
    budgets = default_budgets(selector.prices_)
    if setup.budget is not None:
        budgets = [*(budget for budget in budgets if budget < setup.budget), setup.budget]
    comparison = compare(selector, rows, budgets, setup.seed, say)
    if setup.budget is None:
        say("calibrating when to stop")
        unit = "CAD" if rows.dataset.prices is not None and not setup.price else ""
        comparison = replace(comparison, stopped=stop_in_time(selector, rows), unit=unit)
    story = tell_story(selector, rows, comparison)
    say("drawing a flowchart")
    chart = flowchart(selector, rows, setup.budget)
    say("drawing the report")
    last = setup.seed + RANDOM_ORDERS - 1
    made = [*about(rows, selector, setup), ("random orders", f"seeds {setup.seed} to {last}")]
    return rows, selector, Report(f"{rows.dataset.name}, {rows.model}", made, story, comparison, flowchart=chart)


def about(rows: ReferenceModel, selector: DynamicFeatureSelector, setup: Setup) -> list[tuple[str, str]]:
    """How a result was made, as (what, text)."""
    prices = "as published with the data" if rows.dataset.prices is not None else "1 for each feature"
    if setup.price:
        prices = f"given: {', '.join(setup.price)}; the others as published with the data, or 1"
    adapted = [] if selector.adaptation == "auto" else [("adaptation", str(selector.adaptation))]
    return [
        ("data", " ".join(rows.dataset.description.split())),
        ("rows", rows.split),
        ("model", f"{rows.model}, a reference model in place of a validated one: {rows.estimator[-1]}"),
        *adapted,
        ("prices", prices),
        ("seed", str(setup.seed)),
    ]


def _load(source: Setup) -> Dataset:
    if source.csv is None:
        name = source.data or "heart"
        if name not in names():
            raise InvalidInput(f"--data: there is no data set {name!r}. The data sets are: {', '.join(names())}.")
        return in_words(load(name))
    return load_user_table(source.csv, str(source.target), source)[0]


def _priced(dataset: Dataset, texts: Sequence[str]) -> Dataset:
    """The data set with the prices of ``--price NAME=PRICE`` in place of its own; shared savings are kept."""
    if not texts:
        return dataset
    features = read_schema(dataset.X, dataset.groups)[0].features
    usual = (dataset.prices or Prices()).resolve(features)
    costs = dict(zip(features, usual.costs.tolist(), strict=True))
    for text in texts:
        name, _, price = text.rpartition("=")
        if name.strip() not in costs:
            known = listed(features, spell=str)
            raise InvalidInput(f"--price must be NAME=PRICE with the name of a feature ({known}); got {text!r}.")
        try:
            costs[name.strip()] = float(price)
        except ValueError:
            raise InvalidInput(f"--price {text}: the price must be a number such as 2.5; got {price!r}.") from None
    prices = Prices(costs, usual.shared, usual.time, weights=usual.weights, **usual.others)
    return replace(dataset, prices=prices.resolve(features))

"""What a caller can get wrong: the message names the thing and says what to do, and nothing is lost."""

import re
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from askwise import AskwiseError, DynamicFeatureSelector, InvalidInput, Prices, wrap
from askwise.predict import ConditionalPredictor, ImputedPredictor, LocalPredictor

COLUMNS = ["age", "iron", "sugar", "scan"]


def numbers(n=60):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 4)), columns=COLUMNS)
    return X, (X["scan"] > 0).astype(int).to_numpy()


def mixed(n=60):
    X, y = numbers(n)
    return X.assign(city=np.random.default_rng(1).choice(["Ghent", "Lille"], n)), y


def any_model(X):
    """Takes whatever table it is given."""
    return np.tile([0.25, 0.75], (len(X), 1))


def selector(estimator=any_model, **options):
    return DynamicFeatureSelector(estimator, random_state=0, progress=False, **options)


def test_invalid_input_is_a_value_error_and_ours():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(InvalidInput, AskwiseError)


def refused(call, *words, error=InvalidInput):
    """`call` is refused with a message that holds all of `words` (regular expressions)."""
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert re.search(word, str(caught.value), re.DOTALL), f"{word!r} is not in: {caught.value}"


# Training tables ------------------------------------------------------------------------------------------------------

BAD_TABLES = {
    "a date": (lambda X: X.assign(born=pd.Timestamp("2020-02-02")), ["'born'", "dates or times", "number first"]),
    "a length of time": (lambda X: X.assign(stay=pd.Timedelta("3D")), ["'stay'", "dates or times"]),
    "numbers beside text": (lambda X: X.assign(dose=["much", 3.0] * 30), ["'dose'", "beside text", "must hold"]),
    "lists": (lambda X: X.assign(dose=[[1, 2]] * 60), ["'dose'", "list", "must hold numbers"]),
    "complex numbers": (lambda X: X.assign(dose=1 + 2j), ["'dose'", "Complex data"]),
    "nothing but missing": (lambda X: X.assign(dose=np.nan), ["'dose'", "no value in any row", "Drop it"]),
    "nothing but None": (lambda X: X.assign(dose=None), ["'dose'", "no value in any row"]),
    "infinity": (lambda X: X.assign(iron=[np.inf] + [0.0] * 59), ["'iron'", "infinite", "row 0", "NaN"]),
    "minus infinity": (lambda X: X.assign(iron=[0.0] * 59 + [-np.inf]), ["'iron'", "infinite", "row 59"]),
    "infinity among objects": (
        lambda X: X.assign(iron=np.array([np.inf] + [0.0] * 59, dtype=object)),
        ["'iron'", "infinite"],
    ),
    "two columns of one name": (
        lambda X: pd.concat([X, X[["age"]]], axis=1),
        ["two columns named 'age'", "must differ"],
    ),
    "no columns": (lambda X: X[[]], ["0 feature", "minimum of 1"]),
}


@pytest.mark.parametrize("estimator", [any_model, LogisticRegression()], ids=["callable", "to be fitted"])
@pytest.mark.parametrize("name", BAD_TABLES)
def test_training_tables(name, estimator):
    spoil, words = BAD_TABLES[name]
    X, y = numbers()
    refused(lambda: selector(estimator).fit(spoil(X), y), *words)


@pytest.mark.parametrize("predictor", [ImputedPredictor, ConditionalPredictor, LocalPredictor])
@pytest.mark.parametrize("name", BAD_TABLES)
def test_training_tables_of_predictors(name, predictor):
    spoil, words = BAD_TABLES[name]
    X, y = numbers()
    refused(lambda: predictor(LogisticRegression()).fit(spoil(X), y), *words)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([["a", "b"]] * 60), ["text", "DataFrame"]),
        (np.array([["a", 1.0]] * 60, dtype=object), ["text", "DataFrame"]),
        (np.full((60, 2), np.inf), ["infinity"]),
        (np.zeros(60), ["2D array"]),
        (np.zeros((60, 2, 2)), ["dim"]),
        (np.zeros((60, 0)), ["0 feature"]),
        (np.zeros((0, 2)), ["0 sample|one|empty|least"]),
        (np.column_stack([np.arange(60.0), np.full(60, np.nan)]), ["'x1'", "no value in any row"]),
    ],
)
def test_training_arrays(array, words):
    y = np.arange(len(array)) % 2
    for estimator in (any_model, LogisticRegression()):
        refused(lambda e=estimator: selector(e).fit(array, y), *words, error=ValueError)


def test_an_empty_frame():
    X, y = numbers()
    refused(lambda: selector().fit(X[:0], y[:0]), "sample|row|least", error=ValueError)


# Labels ---------------------------------------------------------------------------------------------------------------

BAD_LABELS = {
    "one class": (lambda y: np.zeros(60), ["one class", r"0\.0"]),
    "one class of text": (lambda y: ["ill"] * 60, ["one class", "'ill'"]),
    "missing": (lambda y: np.where(np.arange(60) == 3, np.nan, y), ["NaN", "row 3", "leave out"]),
    "missing among text": (lambda y: [None, *["ill", "well"] * 29, "ill"], ["NaN", "row 0", "leave out"]),
    "NA": (lambda y: pd.Series([pd.NA, *[0, 1] * 29, 0], dtype="Int64"), ["NaN", "row 0", "leave out"]),
    "infinite": (lambda y: np.where(np.arange(60) == 3, np.inf, y), ["infinity"]),
    "too few": (lambda y: y[:59], ["60", "59"]),
    "too many": (lambda y: np.append(y, 1), ["60", "61"]),
    "several outputs": (lambda y: np.column_stack([y, y]), ["one label per row", "multi-output"]),
    "none at all": (lambda y: None, ["requires y"]),
    "a measurement": (lambda y: np.linspace(0, 1, 60), ["[Cc]ontinuous|regression"]),
}


@pytest.mark.parametrize("estimator", [LogisticRegression(), "fitted"], ids=["to be fitted", "fitted"])
@pytest.mark.parametrize("name", BAD_LABELS)
def test_labels(name, estimator):
    spoil, words = BAD_LABELS[name]
    X, y = numbers()
    model = LogisticRegression().fit(X, y) if estimator == "fitted" else estimator
    refused(lambda: selector(model).fit(X, spoil(y)), *words, error=ValueError)
    refused(lambda: ConditionalPredictor(model).fit(X, spoil(y)), *words, error=ValueError)


@pytest.mark.parametrize("labels", [["ill", "well"], [0, 2], [0.5, 1.0], [False, None]])
def test_labels_that_the_model_does_not_know(labels):
    X, y = numbers()
    model = LogisticRegression().fit(X, y)
    given = np.array(labels, dtype=object if None in labels else None)[y]
    refused(lambda: selector(model).fit(X, given), "does not know|NaN|continuous", error=ValueError)


def test_a_label_that_the_model_does_not_know_is_named():
    X, y = numbers()
    model = LogisticRegression().fit(X, np.array(["ill", "well"])[y])
    refused(lambda: selector(model).fit(X, np.array(["ill", "dead"])[y]), "'dead'", "does not know", "'ill', 'well'")


# Tables to be asked about ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, y = mixed()
    return selector().fit(X, y)


@pytest.fixture(scope="module")
def on_array():
    X, y = numbers()
    return selector(LogisticRegression()).fit(X.to_numpy(), y)


ASKING = {
    "predict": lambda s, X: s.predict(X),
    "suggest": lambda s, X: s.suggest(X),
    "acquire": lambda s, X: s.acquire(X, budget=1),
    "uncertainty": lambda s, X: s.uncertainty(X),
    "scores": lambda s, X: s.scores(X),
    "evaluate": lambda s, X: s.evaluate(X, [0] * len(X), budgets=[1]),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("ask", ASKING)
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X: X.drop(columns="iron"), ["iron"]),
        (lambda X: X.assign(weight=1.0), ["weight"]),
        (lambda X: X.rename(columns={"iron": "copper"}), ["iron", "copper"]),
        (lambda X: X[X.columns[::-1]], ["order"]),
        (lambda X: X.assign(iron=np.inf), ["'iron'", "infinite"]),
        (lambda X: X.assign(iron="much"), ["'iron'", "must hold numbers", "much"]),
        (lambda X: X.assign(iron=pd.Timestamp("2020-02-02")), ["'iron'", "dates or times", "number first"]),
        (lambda X: X.assign(iron=[[1, 2]] * len(X)), ["'iron'", "must hold numbers"]),
        (lambda X: X.assign(city=[["Ghent"]] * len(X)), ["'city'"]),
        (lambda X: X.to_numpy(), ["text|DataFrame"]),
        (lambda X: X.drop(columns="city").assign(city=0.0).to_numpy(), ["DataFrame", "categories"]),
    ],
    ids=[
        "missing column",
        "extra column",
        "renamed",
        "other order",
        "infinite",
        "text for a number",
        "date",
        "list",
        "list for text",
        "array with text",
        "array for categories",
    ],
)
def test_tables_to_be_asked_about(fitted, ask, spoil, words):
    X, _ = mixed(5)
    before = joblib.hash(fitted)
    refused(lambda: ASKING[ask](fitted, spoil(X)), *words, error=ValueError)
    assert joblib.hash(fitted) == before


@pytest.mark.parametrize("ask", ASKING)
@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((3, 3)), ["3 features", "4"]),
        (np.full((3, 4), np.inf), ["infinity"]),
        (np.array([["a"] * 4]), ["text"]),
        (np.zeros(4), ["2D"]),
    ],
    ids=["too few columns", "infinite", "text", "one row as a vector"],
)
def test_arrays_to_be_asked_about(on_array, ask, array, words):
    refused(lambda: ASKING[ask](on_array, array), *words, error=ValueError)


def test_a_category_never_seen_is_refused_in_a_session_and_passed_on_in_a_batch(fitted):
    X, y = mixed()
    session = fitted.start(budget=3)
    refused(lambda: session.answer("city", "Paris"), "'city'", "'Ghent', 'Lille'", "'Paris'")
    assert session.known == {}
    assert session.left == 3
    refused(lambda: fitted.start({"city": "Paris"}), "'city'", "'Paris'")
    abroad = X[:3].assign(city="Paris")
    assert fitted.predict(abroad).shape == (3,)
    # A model that refuses it says so itself.
    strict = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X[["city"]], y)
    owner = selector(strict).fit(X[["city"]], y)
    refused(lambda: owner.predict(abroad[["city"]]), "Paris", "unknown categories", error=ValueError)
    assert owner.predict(X[["city"]][:3]).shape == (3,)


# Prices and groups ----------------------------------------------------------------------------------------------------


def shared_prices(entry: Any):
    """Prices with one entry of shared savings, be it what it may."""
    return Prices([5] * 4, shared=[entry])


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([1, 2, 3], ["each of the 4 features", r"\(3,\)", "'age', 'iron'"]),
        ([1, 2, 3, 4, 5], ["each of the 4 features", r"\(5,\)"]),
        (5, ["each of the 4 features"]),
        ([1, -1, 1, 1], ["'iron'", "finite number >= 0", "-1"]),
        ([1, np.nan, 1, 1], ["'iron'", "finite number >= 0", "nan"]),
        ([1, np.inf, 1, 1], ["'iron'", "finite number >= 0", "available"]),
        ({"iron": -1}, ["'iron'", "finite number >= 0"]),
        ({"iron": "cheap"}, ["'iron'", "finite number >= 0", "'cheap'"]),
        ({"iron": None}, ["'iron'", "finite number >= 0"]),
        ({"copper": 1}, ["no feature 'copper'", "'age', 'iron'"]),
        ("cheap", ["costs must be numbers", "'cheap'"]),
        (Prices([5] * 4, shared=[(["iron"], 1)]), ["two or more", "'iron'"]),
        (Prices([5] * 4, shared=[(["iron", "iron"], 1)]), ["two or more", "'iron'"]),
        (Prices([5] * 4, shared=[(["iron", "copper"], 1)]), ["no feature 'copper'"]),
        (Prices([5, 1, 5, 5], shared=[(["iron", "scan"], 2)]), ["'iron'", "more than its price 1", "lower it"]),
        (Prices([5] * 4, shared=[(["iron", "scan"], -1)]), [r"saving of \['iron', 'scan'\]", ">= 0"]),
        (shared_prices((["iron", "scan"], "some")), [r"saving of \['iron', 'scan'\]", "'some'"]),
        (shared_prices("iron"), ["pairs"]),
    ],
)
def test_prices(costs, words):
    X, y = numbers()
    refused(lambda: selector(costs=costs).fit(X, y), *words)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"lab": ["iron", "copper"]}, ["'lab'", "'copper'", "does not have"]),
        ({"lab": ["iron", 9]}, ["'lab'", "9", "does not have"]),
        ({"lab": ["iron", -1]}, ["'lab'", "-1", "does not have"]),
        ({"lab": ["iron", "iron"]}, ["'iron'", "'lab'"]),
        ({"lab": ["iron"], "blood": ["sugar", "iron"]}, ["'iron'", "'lab'", "'blood'"]),
        ({"lab": []}, ["'lab'", "one or more columns"]),
        ({"lab": "iron"}, ["'lab'", "one or more columns", "'iron'"]),
        ({"lab": 3}, ["'lab'", "one or more columns"]),
        ({"age": ["iron", "sugar"]}, ["'age'", "rename the group"]),
        (["iron", "sugar"], ["groups", "dict"]),
        ({1: ["iron"], "1": ["sugar"]}, ["'1'"]),
    ],
)
def test_groups(groups, words):
    X, y = numbers()
    refused(lambda: selector(groups=groups).fit(X, y), *words)


def test_the_price_of_a_column_that_is_part_of_a_group():
    X, y = numbers()
    owner = selector(groups={"lab": ["iron", "sugar"]}, costs={"iron": 3})
    refused(lambda: owner.fit(X, y), "no feature 'iron'", "'age', 'lab', 'scan'")


# Money, masks, answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [-1, -0.01, np.nan, "much", [1, 2], [[1.0]], {}])
def test_budgets(fitted, budget):
    X, y = mixed()
    nothing = X[:3].assign(scan=np.nan)
    words = ["budget must be"]
    refused(lambda: fitted.acquire(X[:3], budget=budget), *words)
    refused(lambda: fitted.suggest(nothing, budget=budget), *words)
    refused(lambda: fitted.start(budget=budget), *words)
    refused(lambda: selector(budget=budget).fit(X, y), *words)
    refused(lambda: fitted.evaluate(X[:3], y[:3], budgets=[budget]), *words)


def test_a_negative_budget_of_one_row(fitted):
    X, _ = mixed()
    refused(lambda: fitted.acquire(X[:3], budget=[1, -1, 1]), "budget must be >= 0")


@pytest.mark.parametrize("owner", ["known", "available"])
@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.zeros((3, 5)), ["boolean", "float64"]),
        (np.zeros((3, 5), int), ["boolean", "int64"]),
        ([0, 1, 0, 1, 0], ["boolean"]),
        (["city"], ["boolean"]),
        (np.zeros((3, 4), bool), [r"shape \(3, 5\)", r"\(3, 4\)"]),
        (np.zeros((2, 5), bool), [r"shape \(3, 5\)", r"\(2, 5\)"]),
        (np.zeros(3, bool), [r"shape \(3, 5\)", r"\(3,\)"]),
        (True, [r"shape \(3, 5\)"]),
    ],
)
def test_masks(fitted, owner, mask, words):
    X, _ = mixed()
    refused(lambda: fitted.acquire(X[:3], budget=1, **{owner: mask}), owner, *words)
    if owner == "available":
        refused(lambda: fitted.suggest(X[:3], **{owner: mask}), owner, *words)


@pytest.mark.parametrize("mask", [np.zeros((3, 4)), "all", np.zeros((3, 3), bool), np.zeros((4, 4), bool)])
def test_masks_of_predictors(mask):
    X, y = numbers()
    predictor = ImputedPredictor(LogisticRegression()).fit(X, y)
    refused(lambda: predictor.predict_proba(X[:3], mask), "mask must")


def test_a_feature_that_is_known_already(fitted):
    session = fitted.start({"age": 40.0}, budget=2)
    before = session.report()
    refused(lambda: session.answer("age", 41.0), "'age' is known already", "40", r"undo\(\)")
    refused(lambda: session.unavailable("age"), "'age' is known already")
    assert session.report() == before
    session.answer("iron", 1.0)
    before = session.report()
    refused(lambda: session.answer("iron", 2.0), "'iron' is known already")
    assert session.report() == before


# Models ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda X: np.full((len(X), 3), 1 / 3), ["shape", r"\[0, 1\]", ", 3\\)"]),
        (lambda X: np.full(len(X) + 1, 0.5), ["shape", r"\[0, 1\]"]),
        (lambda X: np.full((1, 2), 0.5), ["shape", r"\(1, 2\)"]),
        (lambda X: np.full((len(X), 2), 3.0), ["sum to one", r"\[3.0, 3.0\]", "softmax"]),
        (lambda X: np.tile([1.5, -0.5], (len(X), 1)), [">= 0", r"\[1.5, -0.5\]"]),
    ],
)
def test_models_that_give_no_probabilities(model, words):
    X, y = numbers()
    refused(lambda: selector(model).fit(X, y).predict(X), *words)
    refused(lambda: selector(wrap(model, [0, 1])).fit(X, y).predict(X), *words)


@pytest.mark.parametrize("fit_first", [False, True])
def test_an_estimator_without_probabilities(fit_first):
    X, y = numbers()
    model = Perceptron().fit(X, y) if fit_first else Perceptron()
    refused(lambda: selector(model).fit(X, y), "Perceptron", "predict_proba", "CalibratedClassifierCV")


def test_a_refused_fit_can_be_repeated_with_what_was_meant():
    X, y = numbers()
    owner = selector(costs={"copper": 1})
    refused(lambda: owner.fit(X, y), "copper")
    assert owner.set_params(costs={"iron": 2}).fit(X, y).costs_.tolist() == [1, 2, 1, 1]


def test_prices_and_groups_are_checked_before_a_model_is_trained():
    """What can be said at once is not said after an hour of training."""
    X, y = numbers()

    class Slow(HistGradientBoostingClassifier):
        def fit(self, X, y):
            raise AssertionError("trained in vain")

    refused(lambda: selector(Slow(), costs={"copper": 1}).fit(X, y), "copper")
    refused(lambda: selector(Slow(), groups={"lab": ["copper"]}).fit(X, y), "copper")


def test_numbers_that_a_small_type_cannot_hold_are_passed_on_as_they_are():
    """A frame of int8 wraps around at 128; the model must see the 130 that it was asked about."""
    X = pd.DataFrame({"age": np.arange(100, dtype="int8"), "n": np.tile(np.arange(5, dtype="uint8"), 20)})
    y = (X["age"] > 50).astype(int)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    selector = DynamicFeatureSelector(model, epistemic=None, random_state=0).fit(X, y)
    later = pd.DataFrame({"age": [130, 150], "n": [1, 300]})
    np.testing.assert_array_equal(selector.predict_proba(later), model.predict_proba(later))


def test_prices_by_number_mean_the_label_of_a_column_that_has_one():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=[10, 0, 5])
    y = np.arange(40) % 2
    selector = DynamicFeatureSelector(LogisticRegression(), costs={0: 9.0}, epistemic=None).fit(X, y)
    assert dict(zip(selector.features_, selector.costs_.tolist(), strict=True)) == {"10": 1.0, "0": 9.0, "5": 1.0}
    with pytest.raises(InvalidInput, match="twice"):
        DynamicFeatureSelector(LogisticRegression(), costs={"x0": 5, 0: 2}).fit(X.to_numpy(), y)


def test_a_multi_output_model_is_refused_by_name():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = DecisionTreeClassifier().fit(X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0]))
    with pytest.raises(InvalidInput, match="DecisionTreeClassifier is multi-output"):
        DynamicFeatureSelector(model).fit(X, X[:, 0] > 0)

"""What a caller can get wrong: the message names the thing and says what to do, and nothing is lost."""

import contextlib
import itertools
import re
from collections.abc import Callable
from typing import Any, cast

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from askwise import AskwiseError, DynamicFeatureSelector, InvalidInput, Prices, wrap
from askwise.epistemic import AuxiliaryEnsemble
from askwise.policy import DQN, Greedy, Static
from askwise.predict import ConditionalPredictor, ImputedPredictor, LocalPredictor

COLUMNS = ["age", "iron", "sugar", "scan"]


def numbers(n=60):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 4)), columns=COLUMNS)
    return X, (X["scan"] > 0).astype(int).to_numpy()


def mixed(n=60):
    X, y = numbers(n)
    rng = np.random.default_rng(1)
    return X.assign(
        city=rng.choice(["Ghent", "Lille"], n),
        smoker=rng.random(n) < 0.5,
        tested=pd.array(rng.random(n) < 0.5, dtype="boolean"),
    ), y


def any_model(X):
    """Takes whatever table it is given."""
    return np.tile([0.25, 0.75], (len(X), 1))


def selector(estimator=any_model, **options):
    return DynamicFeatureSelector(estimator, random_state=0, progress=False, **options)


def test_invalid_input_is_a_value_error_and_ours():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(InvalidInput, AskwiseError)


def message_of(call, error):
    """The message with which `call` is refused; None where it is not."""
    try:
        call()
    except error as found:
        return str(found)
    return None


def refused(call, *words, error=InvalidInput, case=""):
    """`call` is refused with a message that holds all of `words` (regular expressions)."""
    message = message_of(call, error)
    assert message is not None, f"{case}: not refused; expected a message with {words}"
    for word in words:
        assert re.search(word, message, re.DOTALL), f"{case}: {word!r} is not in: {message}"


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


def test_training_tables():
    X, y = numbers()
    for name, (spoil, words) in BAD_TABLES.items():
        for estimator in (any_model, LogisticRegression()):
            refused(lambda e=estimator, spoil=spoil: selector(e).fit(spoil(X), y), *words, case=name)
        for predictor in (ImputedPredictor, ConditionalPredictor, LocalPredictor):
            owner = predictor(LogisticRegression())
            refused(lambda owner=owner, spoil=spoil: owner.fit(spoil(X), y), *words, case=name)


BAD_ARRAYS: dict[str, tuple[Any, list[str]]] = {
    "text": (np.array([["a", "b"]] * 60), ["text", "DataFrame"]),
    "text among objects": (np.array([["a", 1.0]] * 60, dtype=object), ["text", "DataFrame"]),
    "infinite": (np.full((60, 2), np.inf), ["infinity"]),
    "a vector": (np.zeros(60), ["2D array"]),
    "three dimensions": (np.zeros((60, 2, 2)), ["dim"]),
    "no columns": (np.zeros((60, 0)), ["0 feature"]),
    "no rows": (np.zeros((0, 2)), ["0 sample|one|empty|least"]),
    "an empty column": (np.column_stack([np.arange(60.0), np.full(60, np.nan)]), ["'x1'", "no value in any row"]),
    "identifiers": (np.column_stack([np.arange(60), np.arange(60) + 2**53]), [r"beyond 2\*\*53", "digits"]),
    "negative identifiers": (np.column_stack([np.arange(60), np.arange(60) - 2**62]), [r"beyond 2\*\*53"]),
    "masked identifiers": (np.ma.MaskedArray(np.arange(120).reshape(60, 2) + 2**53), [r"beyond 2\*\*53"]),
    "sparse": (csr_matrix(np.eye(60)), ["sparse matrix", "dense", r"X\.toarray\(\)"]),
    "sparse array": (csr_array(np.eye(60)), ["sparse matrix", r"X\.toarray\(\)"]),
}


def test_training_arrays():
    for name, (array, words) in BAD_ARRAYS.items():
        y = np.arange(array.shape[0]) % 2
        for owner in (selector(), selector(LogisticRegression()), ConditionalPredictor(LogisticRegression())):
            refused(lambda o=owner, X=array, y=y: o.fit(X, y), *words, error=ValueError, case=name)


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


def test_labels():
    X, y = numbers()
    for name, (spoil, words) in BAD_LABELS.items():
        for model in (LogisticRegression(), LogisticRegression().fit(X, y)):
            for owner in (selector(model), ConditionalPredictor(model)):
                refused(lambda o=owner, spoil=spoil: o.fit(X, spoil(y)), *words, error=ValueError, case=name)


def test_labels_that_the_model_does_not_know():
    X, y = numbers()
    model = LogisticRegression().fit(X, y)
    kinds: list[list[Any]] = [["ill", "well"], [0, 2], [0.5, 1.0], [False, None]]
    for labels in kinds:
        given = np.array(labels, dtype=object if None in labels else None)[y]
        refused(
            lambda y=given: selector(model).fit(X, y),
            "does not know|NaN|continuous",
            error=ValueError,
            case=str(labels),
        )


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
    "ranking": lambda s, X: s.ranking(X),
    "evaluate": lambda s, X: s.evaluate(X, [0] * np.shape(X)[0], budgets=[1]),
}


BAD_QUERIES: dict[str, tuple[Any, list[str]]] = {
    "missing column": (lambda X: X.drop(columns="iron"), ["iron"]),
    "extra column": (lambda X: X.assign(weight=1.0), ["weight"]),
    "renamed": (lambda X: X.rename(columns={"iron": "copper"}), ["iron", "copper"]),
    "other order": (lambda X: X[X.columns[::-1]], ["order"]),
    "infinite": (lambda X: X.assign(iron=np.inf), ["'iron'", "infinite"]),
    "text for a number": (lambda X: X.assign(iron="much"), ["'iron'", "must hold numbers", "much"]),
    "a number as text": (lambda X: X.assign(iron="3"), ["'iron'", "must hold numbers", "'3'"]),
    "an identifier": (lambda X: X.assign(iron=2**53 + 1), ["'iron'", r"beyond 2\*\*53", "identifier"]),
    "date": (lambda X: X.assign(iron=pd.Timestamp("2020-02-02")), ["'iron'", "dates or times", "number first"]),
    "list": (lambda X: X.assign(iron=[[1, 2]] * len(X)), ["'iron'", "must hold numbers"]),
    "list for text": (lambda X: X.assign(city=[["Ghent"]] * len(X)), ["'city'"]),
    "number for text": (lambda X: X.assign(city=7), ["'city'", "'Ghent', 'Lille'", "7", "not text"]),
    "text for a boolean": (lambda X: X.assign(smoker="False"), ["'smoker'", r"\[False, True\]", "'False'"]),
    "another text for a boolean": (lambda X: X.assign(smoker="no"), ["'smoker'", r"\[False, True\]", "'no'"]),
    "number for a boolean": (lambda X: X.assign(smoker=7), ["'smoker'", r"\[False, True\]", "7"]),
    "text for a nullable boolean": (lambda X: X.assign(tested="False"), ["'tested'", r"\[False, True\]", "'False'"]),
    "number for a nullable boolean": (lambda X: X.assign(tested=7), ["'tested'", r"\[False, True\]", "7"]),
    "array with text": (lambda X: X.to_numpy(), ["text|DataFrame"]),
    "array for categories": (lambda X: np.zeros(X.shape), ["DataFrame", "categories"]),
    "sparse": (lambda X: csr_matrix(np.zeros(X.shape)), ["sparse matrix", r"X\.toarray\(\)"]),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_tables_to_be_asked_about(fitted):
    X, _ = mixed(5)
    before, answers = joblib.hash(fitted), fitted.predict_proba(X)
    for name, (spoil, words) in BAD_QUERIES.items():
        for ask, call in ASKING.items():
            spoilt = spoil(X)
            case = f"{ask}, {name}"
            refused(lambda call=call, X=spoilt: call(fitted, X), *words, error=ValueError, case=case)
        assert joblib.hash(fitted) == before, name
    np.testing.assert_array_equal(fitted.predict_proba(X), answers)
    absent = X.astype({"smoker": object}).assign(smoker=None, tested=None)
    assert fitted.predict(absent).shape == (5,)


def test_arrays_to_be_asked_about(on_array):
    arrays: dict[str, tuple[Any, list[str]]] = {
        "too few columns": (np.zeros((3, 3)), ["3 features", "4"]),
        "infinite": (np.full((3, 4), np.inf), ["infinity"]),
        "text": (np.array([["a"] * 4]), ["text"]),
        "one row as a vector": (np.zeros(4), ["2D"]),
        "an identifier": (np.full((3, 4), 2**53), [r"beyond 2\*\*53"]),
    }
    for name, (array, words) in arrays.items():
        for ask, call in ASKING.items():
            refused(lambda c=call, X=array: c(on_array, X), *words, error=ValueError, case=f"{ask}, {name}")


def test_masked_arrays_hide_what_they_mask(on_array):
    X = np.random.default_rng(3).normal(size=(6, 4))
    hidden = np.arange(24).reshape(6, 4) % 3 == 0
    holes, masked = np.where(hidden, np.nan, X), np.ma.MaskedArray(X, mask=hidden)
    np.testing.assert_array_equal(on_array.predict_proba(masked), on_array.predict_proba(holes))
    np.testing.assert_array_equal(on_array.suggest(masked), on_array.suggest(holes))
    np.testing.assert_array_equal(on_array.acquire(masked).order, on_array.acquire(holes).order)


class PolarsFrame:
    """What askwise uses of a polars DataFrame, whose own conversion to pandas needs pyarrow."""

    def __init__(self, columns):
        self.data = columns

    def get_columns(self):
        return list(self.data)

    def to_dict(self, *, as_series=True):
        assert not as_series
        return dict(self.data)

    def to_pandas(self):
        raise ModuleNotFoundError("pyarrow is required")

    def __len__(self):
        return len(next(iter(self.data.values())))


def polars_frames(columns):
    """The same table as every kind of polars frame that there is on this machine."""
    frames = [PolarsFrame(columns)]
    with contextlib.suppress(ImportError):
        import polars  # type: ignore[import-not-found, unused-ignore]

        frames.append(polars.DataFrame(columns))
    return frames


def test_polars_frames_are_taken_without_pyarrow():
    X, y = mixed()
    X.loc[3, "iron"] = np.nan
    columns = {name: [None if pd.isna(cell) else cell for cell in X[name]] for name in X.columns}
    model = make_pipeline(
        ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder=SimpleImputer()), LogisticRegression()
    )
    X = X.astype({"tested": object})
    expected = selector(model, policy="random").fit(X, y)
    alone = ConditionalPredictor(model, random_state=0).fit(X, y).predict_proba(X)
    for frame in polars_frames(columns):
        found = selector(model, policy="random").fit(frame, y)
        assert found.features_ == list(X.columns)
        np.testing.assert_allclose(found.predict_proba(frame), expected.predict_proba(X), rtol=0, atol=1e-12)
        by_predictor = ConditionalPredictor(model, random_state=0).fit(frame, y).predict_proba(frame)
        np.testing.assert_allclose(by_predictor, alone, rtol=0, atol=1e-12)


def test_a_category_never_seen_is_refused_in_a_session_and_passed_on_in_a_batch(fitted):
    X, y = mixed()
    session = fitted.start(budget=3)
    refused(lambda: session.answer("city", "Paris"), "'city'", "'Ghent', 'Lille'", "'Paris'")
    assert session.known == {}
    assert session.left == 3
    refused(lambda: fitted.start({"city": "Paris"}), "'city'", "'Paris'")
    abroad = X[:3].assign(city="Paris")
    assert fitted.predict(abroad).shape == (3,)
    refused(lambda: session.answer("city", "Paris"), "'city'", "'Ghent', 'Lille'", "'Paris'")  # still
    # A model that refuses it says so itself.
    strict = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X[["city"]], y)
    owner = selector(strict).fit(X[["city"]], y)
    refused(lambda: owner.predict(abroad[["city"]]), "Paris", "unknown categories", error=ValueError)
    assert owner.predict(X[["city"]][:3]).shape == (3,)


# Prices and groups ----------------------------------------------------------------------------------------------------


def shared_prices(entry: Any):
    """Prices with one entry of shared savings, be it what it may."""
    return Prices([5] * 4, shared=[entry])


BAD_PRICES: list[tuple[Any, list[str]]] = [
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
    (Prices([5] * 4, shared=cast(Any, 5)), ["shared must be a list of pairs", "got 5"]),
    (pd.Series([1, 2], index=["iron", "iron"]), ["'iron'", "twice"]),
    (pd.Series([1, 2], index=["iron", "copper"]), ["no feature 'copper'"]),
    (pd.Series([1, 2]), ["each of the 4 features"]),
]


def test_prices_in_a_series_go_by_its_names():
    X, y = numbers()
    by_name = pd.Series({"scan": 9.0, "age": 0.0, "iron": 3.0})
    assert selector(costs=by_name, policy="random").fit(X, y).costs_.tolist() == [0, 3, 1, 9]
    in_order = pd.Series([4.0, 3.0, 2.0, 1.0])
    assert selector(costs=in_order, policy="random").fit(X, y).costs_.tolist() == [4, 3, 2, 1]


def test_a_budget_of_ten_prices_buys_ten_features():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 12))).add_prefix("x")
    price = 1234567.89
    owner = selector(costs=[price] * 12, policy="random", epistemic=None).fit(X, np.arange(30) % 2)
    assert (owner.acquire(X[:3], budget=10 * price).order >= 0).sum(axis=1).tolist() == [10] * 3
    assert (owner.acquire(X[:3], budget=9.99 * price).order >= 0).sum(axis=1).tolist() == [9] * 3
    session = owner.start(budget=10 * price)
    for i in range(10):
        session.answer(f"x{i}", 0.5)
    assert session.suggest() is None
    refused(lambda: session.answer("x11", 0.5), "'x11' costs", "left")


BAD_GROUPS: list[tuple[Any, list[str]]] = [
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
]


def test_prices_and_groups():
    X, y = numbers()
    for name, cases in {"costs": BAD_PRICES, "groups": BAD_GROUPS}.items():
        for value, words in cases:
            owner = selector(**{name: value})
            refused(lambda owner=owner: owner.fit(X, y), *words, case=repr(value))


def test_the_price_of_a_column_that_is_part_of_a_group():
    X, y = numbers()
    owner = selector(groups={"lab": ["iron", "sugar"]}, costs={"iron": 3})
    refused(lambda: owner.fit(X, y), "no feature 'iron'", "'age', 'lab', 'scan'")


# Money, masks, answers ------------------------------------------------------------------------------------------------


def test_budgets(fitted):
    X, y = mixed()
    nothing = X[:3].assign(scan=np.nan)
    budgets: list[Any] = [-1, -0.01, np.nan, "much", [1, 2], [[1.0]], {}]
    calls: list[Callable[[Any], Any]] = [
        lambda budget: fitted.acquire(X[:3], budget=budget),
        lambda budget: fitted.suggest(nothing, budget=budget),
        lambda budget: fitted.start(budget=budget),
        lambda budget: selector(budget=budget).fit(X, y),
    ]
    for budget, call in itertools.product(budgets, calls):
        refused(lambda b=budget, call=call: call(b), "budget must be", case=repr(budget))
    for given in (*([budget] for budget in budgets), [], "much", 3):
        refused(lambda b=given: fitted.evaluate(X[:3], y[:3], budgets=b), "budgets must be", case=repr(given))


def test_a_negative_budget_of_one_row(fitted):
    X, _ = mixed()
    refused(lambda: fitted.acquire(X[:3], budget=[1, -1, 1]), "budget must be >= 0")


BAD_MASKS: list[tuple[Any, list[str]]] = [
    (np.zeros((3, 7)), ["boolean", "float64"]),
    (np.zeros((3, 7), int), ["boolean", "int64"]),
    ([0, 1, 0, 1, 0, 0, 0], ["boolean"]),
    (["city"], ["boolean"]),
    (np.zeros((3, 4), bool), [r"shape \(3, 7\)", r"\(3, 4\)"]),
    (np.zeros((2, 7), bool), [r"shape \(3, 7\)", r"\(2, 7\)"]),
    (np.zeros(3, bool), [r"shape \(3, 7\)", r"\(3,\)"]),
    (True, [r"shape \(3, 7\)"]),
]


def test_masks(fitted):
    X = mixed()[0][:3]
    for mask, words in BAD_MASKS:
        refused(lambda m=mask: fitted.acquire(X, budget=1, known=m), "known", *words, case=repr(mask))
        refused(lambda m=mask: fitted.acquire(X, budget=1, available=m), "available", *words, case=repr(mask))
        refused(lambda m=mask: fitted.suggest(X, available=m), "available", *words, case=repr(mask))


def test_masks_of_predictors():
    X, y = numbers()
    predictor = ImputedPredictor(LogisticRegression()).fit(X, y)
    masks: list[Any] = [np.zeros((3, 4)), "all", np.zeros((3, 3), bool), np.zeros((4, 4), bool)]
    for mask in masks:
        refused(lambda m=mask: predictor.predict_proba(X[:3], m), "mask must", case=repr(mask))


def test_parameters_of_predictors():
    X, y = numbers()
    wrong: list[tuple[Any, list[str]]] = [
        (ImputedPredictor(any_model, "marginal", n_draws=0), ["ImputedPredictor: n_draws", "at least 1", "got 0"]),
        (ImputedPredictor(any_model, "marginal", n_draws=cast(Any, "a")), ["n_draws", "at least 1", "got 'a'"]),
        (ImputedPredictor(any_model, "median"), ["strategy must be one of", "'median'"]),
        (ConditionalPredictor(any_model, n_neighbors=cast(Any, "a")), ["ConditionalPredictor: n_neighbors", "got 'a'"]),
        (ConditionalPredictor(any_model, bandwidth=cast(Any, None)), ["bandwidth", "got None"]),
        (LocalPredictor(LogisticRegression(), max_models=cast(Any, "a")), ["LocalPredictor: max_models", "got 'a'"]),
    ]
    for predictor, words in wrong:
        refused(lambda p=predictor: p.fit(X, y), *words, case=repr(predictor))


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


BAD_MODELS: list[tuple[Any, list[str]]] = [
    (lambda X: np.full((len(X), 3), 1 / 3), ["shape", r"\[0, 1\]", ", 3\\)"]),
    (lambda X: np.full(len(X) + 1, 0.5), ["shape", r"\[0, 1\]"]),
    (lambda X: np.full((1, 2), 0.5) if len(X) > 1 else np.full((2, 2), 0.5), ["shape", r"\(rows, classes"]),
    (lambda X: np.full((len(X), 2), 3.0), ["sum to one", r"\[3.0, 3.0\]", "softmax"]),
    (lambda X: np.tile([1.5, -0.5], (len(X), 1)), [">= 0", r"\[1.5, -0.5\]"]),
]


def test_models_that_give_no_probabilities():
    X, y = numbers()
    for i, (model, words) in enumerate(BAD_MODELS):
        for given in (model, wrap(model, [0, 1])):
            refused(lambda m=given: selector(m).fit(X, y).predict(X), *words, case=f"model {i}")


def test_an_estimator_without_probabilities():
    X, y = numbers()
    for model in (Perceptron(), Perceptron().fit(X, y)):
        refused(lambda m=model: selector(m).fit(X, y), "Perceptron", "predict_proba", "CalibratedClassifierCV")


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


def test_a_table_without_rows_is_refused_by_every_method():
    X, y = numbers()
    fitted = selector(LogisticRegression()).fit(X, y)
    for method in (fitted.predict_proba, fitted.suggest, fitted.gains, fitted.uncertainty, fitted.acquire):
        refused(lambda method=method: method(X.head(0)), "X has no rows")


def test_masks_with_labels_in_another_order_are_refused():
    X, y = numbers()
    fitted = selector().fit(X, y)
    turned = pd.DataFrame(True, index=X.index, columns=COLUMNS[::-1])
    refused(lambda: fitted.suggest(X, available=turned), "available.*order.*'age'.*got.*'scan'")
    refused(lambda: fitted.acquire(X, known=turned), "known.*order")
    refused(lambda: fitted.acquire(X, known=turned.iloc[0]), "known.*order")
    assert fitted.acquire(X, known=turned[COLUMNS]).order.shape[1] == 0
    assert fitted.acquire(X, available=pd.Series([False] * 4)).order.shape[1] == 0


def test_groups_that_cannot_be_listed_twice_or_name_no_column_are_refused():
    X, y = numbers()
    refused(lambda: selector(groups={"panel": (c for c in COLUMNS[:2])}).fit(X, y), r"groups\['panel'\] must list")
    refused(lambda: selector(groups={"panel": [True, False]}).fit(X, y), "column True")


def test_options_of_policies_members_and_jobs_are_checked():
    X, y = numbers()
    text, entries, number = cast(Any, "a"), cast(Any, [1]), cast(Any, -1)
    for options, message in (
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"n_jobs": "a"}, "n_jobs must be"),
        ({"policy": Greedy(value=entries)}, "Greedy: value"),
        ({"policy": Static(text)}, "Static: relevance .* 4 features"),
        ({"policy": Static(entries)}, "Static: relevance .* 4 features"),
        ({"epistemic": AuxiliaryEnsemble(estimators=number)}, "estimators must be a list"),
    ):
        refused(lambda options=options: selector(**options).fit(X, y), message)
    pytest.importorskip("torch")
    refused(lambda: selector(policy=DQN(preset=entries)).fit(X, y), "DQN: preset")


def test_a_callable_that_returns_text_is_named():
    X, y = numbers()
    refused(lambda: selector(lambda rows: [["a", "b"]] * len(rows)).fit(X, y), "must return numbers; got .*'a'")


def test_after_a_fit_that_failed_no_parts_of_two_fits_answer_together():
    """The new columns with the old model would answer for columns in the wrong order."""
    X, y = numbers()
    fitted = selector(LogisticRegression()).fit(X, y)
    turned = X[COLUMNS[::-1]]
    with pytest.raises(InvalidInput, match="at least one member"):
        fitted.set_params(epistemic=AuxiliaryEnsemble(estimators=[])).fit(turned, y)
    with pytest.raises(NotFittedError):
        fitted.predict_proba(turned)


def test_wrong_lengths_are_told_by_the_name_of_the_parameter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    selector = DynamicFeatureSelector(LogisticRegression(), epistemic=None, calibration=None, policy="static")
    with pytest.raises(InvalidInput, match="y must hold one label per row of X: X has 40 rows and y 30 labels"):
        selector.fit(X, y[:30])
    for weights in (np.ones(30), np.ones((40, 1)), "heavy", ["a"] * 40):
        with pytest.raises(InvalidInput, match="sample_weight must hold one number per row of X, 40 in all"):
            selector.fit(X, y, sample_weight=weights)
    fitted = selector.fit(X, y, sample_weight=np.arange(40))
    with pytest.raises(InvalidInput, match="score needs one label per row, 40 in all"):
        fitted.score(X, y[:3])
    with pytest.raises(InvalidInput, match="score: sample_weight must hold 40 numbers, one per row"):
        fitted.score(X, y, sample_weight=np.ones(3))


def test_a_misspelt_option_is_told_the_nearest_name():
    X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    for name, given, meant in (
        ("policy", "gredy", "greedy"),
        ("adaptation", "polled", "pooled"),
        ("epistemic", "dropuot", "dropout"),
    ):
        with pytest.raises(InvalidInput, match=f"{name} must be one of .*Did you mean '{meant}'"):
            DynamicFeatureSelector(LogisticRegression()).set_params(**{name: given}).fit(X, y)
    with pytest.raises(InvalidInput, match=r"got 7\.$"):
        DynamicFeatureSelector(LogisticRegression()).set_params(policy=7).fit(X, y)
    with pytest.raises(InvalidInput, match=r"calibration must be .*Did you mean 'auto'"):
        DynamicFeatureSelector(LogisticRegression()).set_params(calibration="outo").fit(X, y)


def test_a_misspelt_option_is_found_by_mypy():
    """Each `type: ignore` here is an error of mypy, which checks the tests, where it finds nothing to ignore."""
    model = LogisticRegression()
    DynamicFeatureSelector(model, policy="gredy")  # type: ignore[arg-type]
    DynamicFeatureSelector(model, adaptation="polled")  # type: ignore[arg-type]
    DynamicFeatureSelector(model, epistemic="dropuot")  # type: ignore[arg-type]
    DynamicFeatureSelector(model, calibration="outo")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="policy must be one of"):
        DynamicFeatureSelector(model).fit(np.eye(4), [0, 1, 0, 1]).with_policy("gredy")  # type: ignore[arg-type]

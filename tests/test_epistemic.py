"""What every epistemic estimator promises, whichever model it stands around."""

import copy
import functools
import pickle
import warnings
from typing import Any, cast

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from askwise.epistemic import AuxiliaryEnsemble, BeliefModel, FeatureDistance, MCDropout, suitable_epistemic
from askwise.errors import InvalidInput
from askwise.model.final_layer import final_layer
from askwise.model.wrapped import ROWS_PER_CALL
from askwise.predict import (
    ConditionalPredictor,
    ImputedPredictor,
    LocalPredictor,
    MaskTrainedPredictor,
    ReparametrizedPredictor,
    wrap,
)
from askwise.table.rows import EncodedRows
from askwise.uncertainty import epistemic_divergence, mutual_information, smoothed, summarize
from tests.made import few_numbers as data
from tests.made import fitted, network


def some_masks(n, seed=5):
    """Subsets of every size, the empty and the full one included."""
    mask = np.random.default_rng(seed).random((n, 4)) < 0.5
    mask[0], mask[1] = False, True
    return mask


def module(*, dropout: float | None = 0.4) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        parts = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)]
        if dropout is not None:
            parts.insert(2, torch.nn.Dropout(dropout))
        return torch.nn.Sequential(*parts)


def function(X):
    cells = np.asarray(X, dtype=float)
    return softmax(np.column_stack([cells[:, 0] + cells[:, 1], cells[:, 2] ** 2, np.zeros(len(cells))]), axis=1)


def conditional(model):
    return ConditionalPredictor(model, n_neighbors=10, random_state=0)


def adapted(model):
    # Kept at every size, so that each member's own change shows.
    return ReparametrizedPredictor(model, "output", epochs=4, learning_rate=0.05, random_state=0)


def ensemble(**options):
    return AuxiliaryEnsemble(3, **{"random_state": 0, **options})


def given_members():
    return AuxiliaryEnsemble(estimators=[fitted(network(seed)) for seed in (1, 2)])


# name: the wrapped model, what answers on subsets, what stands around it
CASES: dict[str, tuple[Any, Any, Any]] = {
    "bootstrap, network": (lambda: fitted(network()), conditional, ensemble),
    "bootstrap, pipeline": (lambda: fitted(make_pipeline(StandardScaler(), network())), conditional, ensemble),
    "bootstrap, frozen": (lambda: FrozenEstimator(fitted(network())), conditional, ensemble),
    "bootstrap, frozen pipeline": (
        lambda: FrozenEstimator(fitted(make_pipeline(StandardScaler(), LogisticRegression()))),
        ImputedPredictor,
        ensemble,
    ),
    "bootstrap, regression": (lambda: fitted(LogisticRegression()), conditional, ensemble),
    "bootstrap, forest": (
        lambda: fitted(RandomForestClassifier(8, min_samples_leaf=3, random_state=0)),
        conditional,
        ensemble,
    ),
    "bootstrap, adapted": (lambda: fitted(LogisticRegression()), adapted, ensemble),
    "reseed, network": (lambda: fitted(network()), conditional, lambda: ensemble(resample="reseed")),
    "around the mean": (lambda: fitted(network()), ImputedPredictor, lambda: ensemble(center="mean")),
    "given": (lambda: fitted(network()), conditional, given_members),
    "dropout": (module, conditional, lambda: MCDropout(7, random_state=0)),
    "dropout, imputed": (module, ImputedPredictor, lambda: MCDropout(7, random_state=0)),
    "dropout, adapted": (module, adapted, lambda: MCDropout(7, random_state=0)),
    "distance, function": (lambda: function, conditional, FeatureDistance),
    "distance, network": (lambda: fitted(network()), conditional, FeatureDistance),
    "distance, torch": (lambda: module(dropout=None), ImputedPredictor, FeatureDistance),
    "distance, forest": (lambda: fitted(RandomForestClassifier(8, random_state=0)), ImputedPredictor, FeatureDistance),
}
WITH_MEMBERS = [name for name in CASES if not name.startswith("distance")]


class Around:
    """An estimator fitted around a predictor, asked about arrays and masks per column."""

    def __init__(self, estimator, predictor, fitted=False):
        self.fitted = estimator if fitted or estimator is None else estimator.fit(predictor)
        self.beliefs = BeliefModel(predictor, self.fitted)

    def assess(self, X, mask, leave_out=None, smooth_with=None):
        """The prediction and its uncertainties."""
        belief = self.beliefs.believe(EncodedRows(X).masked(mask), leave_out=leave_out)
        return belief.proba, self.beliefs.uncertainty(belief, smooth_with=smooth_with)

    def members(self, X, mask):
        return self.beliefs.believe(EncodedRows(X).masked(mask)).members


class Case:
    """One estimator around one fitted predictor, and some rows to ask about."""

    def __init__(self, name: str) -> None:
        make_model, make_predictor, self.make = CASES[name]
        self.name = name
        self.X, self.y = data()
        self.model = make_model()
        self.bytes_before = pickle.dumps(self.model)
        self.weights_before: Any = copy.deepcopy(getattr(self.model, "state_dict", dict)())
        self.predictor = make_predictor(self.model).fit(self.X, self.y)
        self.fitted = Around(self.make(), self.predictor)
        self.mask = some_masks(len(self.X))
        # The module answers in single precision.
        self.rounding = 1e-6 if isinstance(self.model, torch.nn.Module) else 1e-9

    def ask(self, rows=slice(None)):
        proba, found = self.fitted.assess(self.X[rows], self.mask[rows])
        return np.column_stack([proba, *found.as_dict().values()])


case_named = functools.cache(Case)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return case_named(request.param)


@pytest.fixture(scope="module", params=WITH_MEMBERS)
def members_case(request):
    return case_named(request.param)


def test_the_prediction_is_the_predictors_and_every_number_is_per_row(case):
    proba, found = case.fitted.assess(case.X, case.mask)
    assert_allclose(proba, case.predictor.predict_proba(case.X, case.mask), rtol=0, atol=case.rounding)
    for numbers in found.as_dict().values():
        assert numbers.shape == (90,)
    assert_array_equal(found.total, summarize(proba).total)
    assert_array_equal(found.confidence_gap, summarize(proba).confidence_gap)
    assert (found.epistemic >= 0).all()
    assert len(np.unique(found.epistemic.round(9))) > 20


def test_members_are_distributions_and_differ_from_each_other_and_from_the_model(members_case):
    """A clone of a frozen model would be the same model again, and e would be 0."""
    case = members_case
    members = case.fitted.members(case.X, case.mask)
    n_members = {"given": 2, "dropout": 7}.get(case.name.split(",")[0], 3)
    assert members.shape == (n_members, 90, 3)
    assert_allclose(members.sum(axis=2), 1, rtol=0, atol=1e-9)
    assert (members >= 0).all()
    everyone = [case.predictor.predict_proba(case.X, case.mask), *members]
    for i, one in enumerate(everyone):
        for other in everyone[:i]:
            assert np.abs(one - other).max() > 1e-3
    assert case.fitted.assess(case.X, case.mask)[1].epistemic.mean() > 1e-5


def test_assess_is_the_prediction_and_its_uncertainties(members_case):
    case = members_case
    proba, found = case.fitted.assess(case.X, case.mask)
    members = case.fitted.members(case.X, case.mask)
    expected = summarize(proba, members).as_dict()
    if case.name == "around the mean":
        expected["epistemic"] = mutual_information(members)
    for name, numbers in found.as_dict().items():
        assert_array_equal(numbers, expected[name])
    assert np.isfinite(found.epistemic).all() or "forest" in case.name


@pytest.mark.parametrize("name", ["distance, function", "distance, network"])
def test_without_members_there_is_nothing_to_say_of_them(name):
    case = case_named(name)
    found = case.fitted.assess(case.X, case.mask)[1]
    for numbers in (found.aleatoric, found.mutual_information, found.variance):
        assert np.isnan(numbers).all()
    assert np.isfinite(found.epistemic).all()


def test_without_an_estimator_the_numbers_of_members_are_unknown():
    X, y = data()
    predictor = ImputedPredictor(fitted(LogisticRegression())).fit(X, y)
    proba, found = Around(None, predictor).assess(X, some_masks(90))
    assert_array_equal(proba, predictor.predict_proba(X, some_masks(90)))
    assert np.isfinite(found.total).all()
    for numbers in (found.epistemic, found.aleatoric, found.mutual_information, found.variance):
        assert np.isnan(numbers).all()


def test_same_seed_same_numbers_and_nothing_else_is_touched(case):
    """Neither the input nor global random states; and, as everywhere in scikit-learn, `fit` returns the estimator."""
    X, mask, mine = case.X.copy(), case.mask.copy(), case.make()
    before = joblib.hash(np.random.get_state())  # noqa: NPY002 - the very thing that must not be used
    torch_before = torch.random.get_rng_state()
    assert mine.fit(case.predictor) is mine
    found = Around(mine, case.predictor, fitted=True).assess(X, mask)
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), torch_before)
    assert_array_equal(X, case.X)
    assert_array_equal(mask, case.mask)
    expected = case.fitted.assess(case.X, case.mask)
    assert_array_equal(found[0], expected[0])
    for name, numbers in found[1].as_dict().items():
        assert_array_equal(numbers, expected[1].as_dict()[name])


@pytest.mark.parametrize("name", ["bootstrap, network", "reseed, network", "dropout", "bootstrap, regression"])
def test_another_seed_other_members(name):
    case = case_named(name)
    other = Around(case.make().set_params(random_state=1), case.predictor)
    assert np.abs(other.members(case.X, case.mask) - case.fitted.members(case.X, case.mask)).max() > 1e-3


def test_a_row_has_its_own_numbers_whoever_stands_beside_it(case):
    together = case.ask()
    order = np.random.default_rng(2).permutation(len(case.X))
    assert_allclose(case.ask(order), together[order], rtol=0, atol=case.rounding)
    for r in range(3):
        assert_allclose(case.ask([r])[0], together[r], rtol=0, atol=case.rounding)


def test_hidden_cells_do_not_matter(case):
    expected = case.fitted.assess(case.X, case.mask)
    for filler in (1e6, np.nan):
        proba, found = case.fitted.assess(np.where(case.mask, case.X, filler), case.mask)
        assert_array_equal(proba, expected[0])
        assert_array_equal(found.epistemic, expected[1].epistemic)


def test_the_wrapped_model_is_left_as_it_was(case):
    case.ask()
    if isinstance(case.model, torch.nn.Module):
        for name, tensor in case.model.state_dict().items():
            assert torch.equal(tensor, case.weights_before[name])
        for part in case.model.modules():
            assert part.training
            assert not part._forward_hooks
            assert not part._forward_pre_hooks
        assert all(parameter.grad is None for parameter in case.model.parameters())
    else:
        assert pickle.dumps(case.model) == case.bytes_before


def test_every_part_of_a_module_keeps_its_own_mode():
    X, y = data()
    mixed = module()
    mixed[0].eval()
    mixed[2].eval()
    modes = [part.training for part in mixed.modules()]
    predictor = ImputedPredictor(mixed).fit(X, y)
    for estimator in (MCDropout(3), FeatureDistance()):
        Around(estimator, predictor).assess(X, some_masks(90))
        assert [part.training for part in mixed.modules()] == modes


def test_a_fitted_estimator_can_be_pickled(case):
    again = pickle.loads(pickle.dumps(case.fitted))
    assert_array_equal(again.assess(case.X, case.mask)[1].epistemic, case.fitted.assess(case.X, case.mask)[1].epistemic)


@pytest.mark.parametrize("make_predictor", [ImputedPredictor, conditional, adapted])
@pytest.mark.parametrize("make_model", [LogisticRegression, network])
def test_members_that_are_the_model_leave_nothing_uncertain(make_model, make_predictor):
    """Up to rounding: members are asked in batched products, the model by scikit-learn."""
    X, y = data()
    model = fitted(make_model())
    predictor = make_predictor(model).fit(X, y)
    found = Around(AuxiliaryEnsemble(estimators=[model, model]), predictor).assess(X, some_masks(90))[1]
    for numbers in (found.epistemic, found.mutual_information, found.variance):
        assert_allclose(numbers, 0, rtol=0, atol=1e-12)
    assert_allclose(found.aleatoric, found.total, rtol=0, atol=1e-12)


def test_only_the_given_members_are_asked():
    X, y = data()
    model, far = fitted(LogisticRegression()), fitted(LogisticRegression(C=1e-4))
    predictor = ImputedPredictor(model).fit(X, y)
    full = np.ones(X.shape, dtype=bool)
    found = Around(AuxiliaryEnsemble(9, estimators=[model, far]), predictor).assess(X, full)[1]
    members = np.stack([model.predict_proba(X), far.predict_proba(X)])
    assert_allclose(found.epistemic, epistemic_divergence(members, model.predict_proba(X)), rtol=1e-9, atol=1e-12)


def test_around_the_mean_epistemic_is_the_mutual_information():
    X, y = data()
    predictor = conditional(fitted(network())).fit(X, y)
    mask = some_masks(90)
    primary = Around(ensemble(), predictor).assess(X, mask)[1]
    mean = Around(ensemble(center="mean"), predictor).assess(X, mask)[1]
    assert_array_equal(mean.epistemic, primary.mutual_information)
    assert (primary.epistemic >= mean.epistemic - 1e-12).all()  # the mean is the nearest center
    assert primary.epistemic.sum() > 1.05 * mean.epistemic.sum()
    assert_array_equal(mean.total, primary.total)


def test_what_members_are_compared_with_can_be_smoothed():
    X, y = data()
    predictor = conditional(fitted(LogisticRegression())).fit(X, y)
    around = Around(ensemble(), predictor)
    mask, prior = some_masks(90), np.array([0.2, 0.3, 0.5])
    proba, found = around.assess(X, mask, smooth_with=prior)
    assert_array_equal(proba, around.assess(X, mask)[0])
    expected = epistemic_divergence(around.members(X, mask), smoothed(proba, prior))
    assert_array_equal(found.epistemic, expected)


@pytest.mark.parametrize("name", ["bootstrap, network", "dropout", "bootstrap, adapted", "distance, function"])
def test_a_training_row_is_left_out_of_its_own_prediction(name):
    case = case_named(name)
    rows = np.arange(30)
    proba = case.fitted.assess(case.X[rows], case.mask[rows], leave_out=rows)[0]
    expected = case.predictor.proba(EncodedRows(case.X[rows]).masked(case.mask[rows]), rows)
    assert_allclose(proba, expected, rtol=0, atol=case.rounding)


def test_members_are_asked_with_the_completions_of_another_predictor():
    X, y = data()
    model = fitted(network())
    many, few = ConditionalPredictor(model, 30, random_state=0), ConditionalPredictor(model, 3, random_state=0)
    around = Around(ensemble(), many.fit(X, y))
    mask = some_masks(90)
    moved = Around(around.fitted, few.fit(X, y), fitted=True)
    anew = Around(ensemble(), few)
    assert_array_equal(moved.members(X, mask), anew.members(X, mask))
    assert np.abs(moved.members(X, mask) - around.members(X, mask)).max() > 1e-3


# The members of an ensemble


@pytest.mark.parametrize("resample", ["bootstrap", "reseed"])
def test_members_are_models_like_the_wrapped_one(resample):
    X, y = data()
    model = fitted(network(seed=3, activation="tanh", alpha=0.5))
    members = Around(ensemble(resample=resample), conditional(model).fit(X, y)).fitted.estimators_
    assert len(members) == 3
    for member in members:
        assert type(member) is MLPClassifier
        ours, theirs = member.get_params(), model.get_params()
        assert ours.pop("random_state") != theirs.pop("random_state")
        assert ours == theirs
    assert len({member.random_state for member in members}) == 3


def test_reseeded_members_see_all_rows_and_bootstrapped_ones_a_sample_of_them():
    X, y = data()
    seen = []

    class Watching(LogisticRegression):
        def fit(self, X, y):
            seen.append(X[:, 0].copy())
            return super().fit(X, y)

    predictor = ImputedPredictor(fitted(Watching())).fit(X, y)
    seen.clear()
    Around(ensemble(resample="reseed"), predictor)
    for column in seen:
        assert_array_equal(np.sort(column), np.sort(X[:, 0]))
    seen.clear()
    Around(ensemble(resample="bootstrap"), predictor)
    for column in seen:
        assert len(column) == len(X)
        assert 0.5 < len(np.unique(column)) / len(X) < 0.75
        assert set(column) <= set(X[:, 0])


def test_a_rare_class_is_known_to_every_member():
    X, y = data()
    y = np.array(["often", "sometimes", "now and then"])[y]
    y[7] = "once"
    model = LogisticRegression().fit(X, y)
    members = Around(AuxiliaryEnsemble(12, random_state=0), ImputedPredictor(model).fit(X, y)).fitted.estimators_
    for member in members:
        assert_array_equal(member.classes_, model.classes_)


def test_members_of_a_pipeline_share_its_preparation_and_it_is_not_fitted_again():
    X, y = data()
    pipeline = fitted(make_pipeline(StandardScaler(), LogisticRegression()))
    mean = pipeline[0].mean_.copy()
    members = Around(ensemble(), ImputedPredictor(pipeline).fit(X, y)).fitted.estimators_
    for member in members:
        assert member[0] is pipeline[0]
        assert np.abs(member[-1].coef_ - pipeline[-1].coef_).max() > 1e-3
    assert_array_equal(pipeline[0].mean_, mean)


def test_members_are_trained_in_parallel_to_the_same_numbers():
    X, y = data()
    predictor = conditional(fitted(LogisticRegression())).fit(X, y)
    mask = some_masks(90)
    one = Around(ensemble(), predictor).members(X, mask)
    with joblib.parallel_config(backend="threading"):
        two = Around(ensemble(n_jobs=2), predictor).members(X, mask)
    assert_array_equal(one, two)


def test_members_around_an_adapted_model_have_their_own_adaptation():
    X, y = data()
    predictor = adapted(fitted(LogisticRegression(C=50))).fit(X, y)
    around = Around(ensemble(), predictor)
    mask = some_masks(90)
    assert predictor.kept_.any()
    for member, found in zip(around.fitted.estimators_, around.members(X, mask), strict=True):
        imputed = ImputedPredictor(member).fit(X, y).predict_proba(X, mask)
        borrowed = predictor.adapter_.proba(np.log(imputed), mask)
        assert np.abs(found - imputed).max() > 1e-3
        assert np.abs(found - borrowed).max() > 1e-3


@pytest.mark.parametrize(
    "make_predictor",
    [lambda model: MaskTrainedPredictor(model, epochs=2, width=8, random_state=0), LocalPredictor],
    ids=["trained under masks", "one model per subset"],
)
def test_members_of_predictors_that_train_models_of_their_own_differ_too(make_predictor):
    """What answers is not the wrapped model but one trained beside it: members need other rows or seeds there too."""
    X, y = data()
    predictor = make_predictor(fitted(LogisticRegression())).fit(X, y)
    mask = np.zeros(X.shape, dtype=bool)
    mask[:, :2] = True
    found = Around(ensemble(), predictor).assess(X, mask)[1]
    assert found.epistemic.mean() > 1e-5
    assert found.mutual_information.mean() > 1e-6


class Oversampler(BaseEstimator):
    """A step as imbalanced-learn has them: it changes the training rows, and is skipped in predictions."""

    def fit_resample(self, X, y):
        often = np.bincount(y).max()
        rows = np.concatenate([np.resize(np.flatnonzero(y == c), often) for c in np.unique(y)])
        return X[rows], y[rows]


class ResamplingPipeline(Pipeline):
    """The part of imbalanced-learn's Pipeline that matters here."""

    def fit(self, X, y):
        for _, step in self.steps[:-1]:
            if hasattr(step, "fit_resample"):
                X, y = step.fit_resample(X, y)
            else:
                X = step.fit_transform(X, y)
        self.steps[-1][1].fit(X, y)
        return self

    def predict_proba(self, X):
        for _, step in self.steps[:-1]:
            X = X if hasattr(step, "fit_resample") else step.transform(X)
        return self.steps[-1][1].predict_proba(X)


def test_members_of_a_pipeline_that_resamples_are_trained_with_all_its_steps():
    X, y = data(n=200)
    y = (X[:, 0] > 1.3).astype(int)  # one row in ten
    steps = [("scale", StandardScaler()), ("sample", Oversampler()), ("last", LogisticRegression())]
    model = ResamplingPipeline(steps).fit(X, y)
    predictor = conditional(model).fit(X, y)
    assert suitable_epistemic(predictor) == "ensemble"
    around = Around(ensemble(), predictor)
    full = np.ones(X.shape, dtype=bool)
    for member, found in zip(around.fitted.estimators_, around.members(X, full), strict=True):
        assert type(member) is ResamplingPipeline
        assert_allclose(found, member.predict_proba(X), rtol=0, atol=1e-12)
        assert found[:, 1].mean() > 1.5 * y.mean()  # balanced, as the wrapped model is
    assert final_layer(predictor.model_, EncodedRows(X[:5])).weight.shape == (4, 2)


class Uncloneable(LogisticRegression):
    """As CatBoost with `cat_features`: its constructor changes a parameter."""

    def __init__(self, cat_features=()):
        super().__init__()
        self.cat_features = list(cat_features)


def test_a_model_that_cannot_be_cloned_has_no_ensemble():
    X, y = data()
    for model in (fitted(Uncloneable((0,))), fitted(make_pipeline(StandardScaler(), Uncloneable((0,))))):
        predictor = conditional(model).fit(X, y)
        assert suitable_epistemic(predictor) == "distance"
        with pytest.raises(InvalidInput, match=r'clone can copy.*"distance"'):
            ensemble().fit(predictor)
    with pytest.raises(InvalidInput, match=r"Uncloneable is not fitted and cannot be cloned.*Fit it first"):
        conditional(Uncloneable((0,))).fit(X, y)


def test_members_that_are_torch_modules_or_functions():
    """What cannot be trained here is given: as it is, or wrapped with its classes."""
    X, y = data()
    primary, other = module(dropout=None), module(dropout=None)
    with torch.no_grad():
        other[0].weight.mul_(2.0)
    predictor = ImputedPredictor(primary).fit(X, y)
    mask = some_masks(90)
    wrapped = Around(AuxiliaryEnsemble(estimators=[wrap(primary, [0, 1, 2]), wrap(other, [0, 1, 2])]), predictor)
    assert wrapped.assess(X, mask)[1].epistemic.mean() > 1e-4
    bare = Around(AuxiliaryEnsemble(estimators=[primary, other]), predictor)
    assert_array_equal(bare.members(X, mask), wrapped.members(X, mask))
    both = Around(AuxiliaryEnsemble(estimators=[function, other]), predictor)
    full = np.ones(X.shape, dtype=bool)
    assert_allclose(both.members(X, full)[0], function(X), rtol=0, atol=1e-12)


# Preparations


def test_a_preparation_may_give_a_sparse_matrix():
    """One-hot columns of text, as scikit-learn makes them by default."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"letter": rng.choice(list("abcdefgh"), 120), "other": rng.choice(list("uvwxyz"), 120)})
    y = (table["letter"] < "d").astype(int).to_numpy()
    for classifier in (LogisticRegression(), network()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make_pipeline(OneHotEncoder(), classifier).fit(table, y)
        predictor = conditional(model).fit(table, y)
        around = Around(ensemble(), predictor)
        values = predictor.schema_.encode(table).values
        members = around.members(values, np.ones(values.shape, dtype=bool))
        expected = np.stack([member.predict_proba(table) for member in around.fitted.estimators_])
        assert_allclose(members, expected, rtol=0, atol=1e-12)
        far = Around(FeatureDistance(), predictor).assess(values, np.ones(values.shape, dtype=bool))[1]
        assert np.isfinite(far.epistemic).all()


def test_a_pipeline_of_one_step_is_its_step():
    X, y = data()
    model = fitted(make_pipeline(LogisticRegression()))
    predictor = conditional(model).fit(X, y)
    bare = conditional(model[-1]).fit(X, y)
    mask = some_masks(90)
    for make in (ensemble, FeatureDistance):
        found = Around(make(), predictor).assess(X, mask)[1].epistemic
        assert_allclose(found, Around(make(), bare).assess(X, mask)[1].epistemic, rtol=1e-9)


# Dropout


def test_every_member_under_dropout_is_one_thinned_network_for_all_rows():
    X, y = data()
    net = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))
    around = Around(MCDropout(12, random_state=0), ImputedPredictor(net).fit(X, y))
    members = around.members(X, np.ones(X.shape, dtype=bool))
    weight, bias = (part.detach().double().numpy() for part in net[1].parameters())
    found = []
    for member in members:
        fits = []
        for number in range(16):
            kept = np.array([number >> j & 1 for j in range(4)], dtype=float)
            thinned = softmax((X * kept / 0.5) @ weight.T + bias, axis=1)
            fits.append(np.allclose(thinned, member, atol=1e-5))
        assert sum(fits) == 1
        found.append(fits.index(True))
    assert len(set(found)) > 4


def test_members_under_dropout_are_the_same_at_every_step():
    """A member is one network through a whole acquisition: asked again, and about other subsets first."""
    X, y = data()
    around = Around(MCDropout(5, random_state=0), conditional(module()).fit(X, y))
    mask = some_masks(90)
    first = around.members(X[:4], mask[:4])
    around.members(X, some_masks(90, seed=9))
    assert_array_equal(around.members(X[:4], mask[:4]), first)


def test_channels_are_dropped_whole():
    X, y = data()
    net = torch.nn.Sequential(
        torch.nn.Unflatten(1, (2, 2)), torch.nn.Dropout1d(0.5), torch.nn.Flatten(), torch.nn.Linear(4, 3)
    )
    around = Around(MCDropout(12, random_state=0), ImputedPredictor(net).fit(X, y))
    weight, bias = (part.detach().double().numpy() for part in net[3].parameters())
    thinned = [
        softmax((X * np.repeat(kept, 2) / 0.5) @ weight.T + bias, axis=1) for kept in ([0, 0], [0, 1], [1, 0], [1, 1])
    ]
    for member in around.members(X, np.ones(X.shape, dtype=bool)):
        assert min(np.abs(member - one).max() for one in thinned) < 1e-5


def test_dropout_asks_the_module_about_a_bounded_number_of_rows_at_once():
    X, y = data()
    sizes = []

    class Watching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.last = torch.nn.Dropout(0.5), torch.nn.Linear(4, 3)

        def forward(self, rows):
            sizes.append(len(rows))
            return self.last(self.drop(rows))

    around = Around(MCDropout(20, random_state=0), ImputedPredictor(Watching()).fit(X, y))
    many = np.resize(X, (8000, 4))
    full = np.ones(many.shape, dtype=bool)
    members = around.members(many, full)
    assert max(sizes) <= ROWS_PER_CALL
    assert_allclose(members[:, :90], around.members(X, full[:90]), rtol=0, atol=1e-6)
    assert_allclose(members[:, -90:], around.members(many[-90:], full[:90]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["output", "last-layer", "low-rank"])
def test_members_under_dropout_have_the_adaptation_of_the_module(kind):
    """Without training they are the plain members; with it, the change applied to the thinned network."""
    X, y = data()
    net, mask = module(), some_masks(90)
    plain = Around(MCDropout(4, random_state=0), ImputedPredictor(net).fit(X, y)).members(X, mask)
    options: dict[str, Any] = {"learning_rate": 0.05, "random_state": 0}
    untrained = ReparametrizedPredictor(net, kind, epochs=0, **options).fit(X, y)
    trained = ReparametrizedPredictor(net, kind, epochs=5, **options).fit(X, y)
    for predictor in (untrained, trained):
        predictor.kept_ = np.ones(5, dtype=bool)
    members = Around(MCDropout(4, random_state=0), untrained).members(X, mask)
    assert_allclose(members, plain, rtol=0, atol=1e-5)
    members = Around(MCDropout(4, random_state=0), trained).members(X, mask)
    assert np.abs(members - plain).max() > 1e-3
    if kind == "output":
        for found, before in zip(members, plain, strict=True):
            assert_allclose(found, trained.adapter_.proba(np.log(before), mask), rtol=0, atol=1e-5)


def test_a_dropout_layer_that_is_used_twice_drops_other_units_the_second_time():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.last = torch.nn.Dropout(0.5), torch.nn.Linear(4, 3)

        def forward(self, rows):
            return self.last(self.drop(self.drop(rows)))

    X, y = data()
    net = Twice()
    twice = Around(MCDropout(40, random_state=0), ImputedPredictor(net).fit(X, y))
    members = twice.members(X, np.ones(X.shape, dtype=bool))
    bias = softmax(net.last.bias.detach().double().numpy())
    # All four inputs are dropped with probability (3/4)^4 = 0.32; of one mask, 1/16.
    assert 0.15 < np.mean([np.allclose(member, bias, atol=1e-5) for member in members]) < 0.55


# Distance


def test_distance_is_to_the_nearest_training_rows_in_units_of_the_usual_one():
    """Of a model that says the same of all rows only the scaled inputs are left."""
    X, y = data()
    predictor = ImputedPredictor(wrap(lambda X: np.tile([0.2, 0.3, 0.5], (len(X), 1)), [0, 1, 2])).fit(X, y)
    around = Around(FeatureDistance(n_neighbors=4, random_state=0), predictor)
    rng = np.random.default_rng(4)
    asked, mask = 2 * rng.normal(size=(30, 4)), rng.random((30, 4)) < 0.6
    scaled = (X - X.mean(axis=0)) / X.std(axis=0) / 2
    usual = np.median(NearestNeighbors(n_neighbors=4).fit(scaled).kneighbors()[0].mean(axis=1))
    completed = (np.where(mask, asked, X.mean(axis=0)) - X.mean(axis=0)) / X.std(axis=0) / 2
    expected = np.sort(np.linalg.norm(completed[:, None] - scaled, axis=2), axis=1)[:, :4].mean(axis=1) / usual
    assert_allclose(around.assess(asked, mask)[1].epistemic, expected, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("distance")])
def test_what_lies_far_from_the_training_rows_is_far(name):
    case = case_named(name)
    full = np.ones((90, 4), dtype=bool)
    near = case.fitted.assess(case.X, full)[1].epistemic
    far = case.fitted.assess(case.X + 30.0, full)[1].epistemic
    assert np.median(near) < 1.5
    assert np.median(far) > 3 * np.median(near)


def test_distance_reads_what_the_last_layer_sees():
    X, y = data()
    model = fitted(network())
    around = Around(FeatureDistance(n_neighbors=3), ImputedPredictor(model).fit(X, y))
    hidden = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    usual = np.median(NearestNeighbors(n_neighbors=3).fit(hidden).kneighbors()[0].mean(axis=1))
    asked = X[:9] + 0.3
    seen = np.maximum(asked @ model.coefs_[0] + model.intercepts_[0], 0)
    expected = np.sort(np.linalg.norm(seen[:, None] - hidden, axis=2), axis=1)[:, :3].mean(axis=1) / usual
    assert_allclose(around.assess(asked, np.ones((9, 4), dtype=bool))[1].epistemic, expected, rtol=1e-9)


def test_a_training_row_that_is_left_out_is_not_its_own_neighbor():
    """Met as if it were new, the usual training row is at the usual distance, which is the unit."""
    X, y = data()
    around = Around(FeatureDistance(n_neighbors=4), ImputedPredictor(fitted(network())).fit(X, y))
    full, rows = np.ones(X.shape, dtype=bool), np.arange(len(X))
    assert_allclose(np.median(around.assess(X, full, leave_out=rows)[1].epistemic), 1.0, rtol=1e-9)
    assert np.median(around.assess(X, full)[1].epistemic) < 1.0


def test_distance_with_fewer_rows_than_neighbors_or_identical_rows():
    X, y = data(12)
    few = Around(FeatureDistance(n_neighbors=50, max_rows=8, random_state=0), ImputedPredictor(function).fit(X, y))
    assert np.isfinite(few.assess(X, some_masks(12))[1].epistemic).all()
    same = np.tile(X[:1], (12, 1))
    around = Around(FeatureDistance(), ImputedPredictor(wrap(function, [0, 1, 2])).fit(same, y))
    found = around.assess(np.vstack([same[:1], X[:1] + 1]), np.ones((2, 4), dtype=bool))[1].epistemic
    assert found[0] == 0
    assert 0 < found[1] < np.inf


# What is refused, and what is taken by itself


def predictor_around(model):
    return ImputedPredictor(model).fit(*data())


@pytest.mark.parametrize(
    ("make", "model", "message"),
    [
        (MCDropout, lambda: module(dropout=None), r'needs dropout layers.*"distance".*AuxiliaryEnsemble\(estimators='),
        (MCDropout, lambda: module(dropout=0.0), 'needs dropout layers.*"distance"'),
        (MCDropout, lambda: fitted(LogisticRegression()), 'torch.nn.Module.*got LogisticRegression.*"ensemble".*"dist'),
        (MCDropout, lambda: function, 'needs a torch.nn.Module.*"distance"'),
        (
            AuxiliaryEnsemble,
            lambda: function,
            r'callable or a torch module.*"distance".*Ensemble\(estimators=\[...\]\)',
        ),
        (AuxiliaryEnsemble, module, r'callable or a torch module.*"distance".*"dropout".*estimators='),
        (lambda: AuxiliaryEnsemble(0), LogisticRegression, "n_members must be a whole number of at least 1; got 0"),
        (lambda: AuxiliaryEnsemble(cast(Any, "a")), LogisticRegression, "n_members must be a whole number .*got 'a'"),
        (
            lambda: AuxiliaryEnsemble(n_jobs=cast(Any, "a")),
            LogisticRegression,
            "n_jobs must be a whole number other than 0 or None; got 'a'",
        ),
        (lambda: AuxiliaryEnsemble(estimators=[]), LogisticRegression, "at least one member"),
        (lambda: AuxiliaryEnsemble(resample="jackknife"), LogisticRegression, "resample must be one of .* got 'jackk"),
        (lambda: AuxiliaryEnsemble(center="median"), LogisticRegression, "center must be one of .* got 'median'"),
        (lambda: MCDropout(0), module, "n_samples must be a whole number of at least 1; got 0"),
        (lambda: MCDropout(cast(Any, "a")), module, "n_samples must be a whole number .*got 'a'"),
        (lambda: FeatureDistance(0), LogisticRegression, "n_neighbors must be a whole number of at least 1; got 0"),
    ],
)
def test_what_is_refused_says_what_to_do_instead(make, model, message):
    with pytest.raises(InvalidInput, match=message):
        Around(make(), predictor_around(model()))


def test_members_must_know_the_classes_of_the_model():
    X, y = data()
    other = LogisticRegression().fit(X, y > 0)
    with pytest.raises(InvalidInput, match=r"must have the classes \[0, 1, 2\]; got \[False, True\]"):
        Around(AuxiliaryEnsemble(estimators=[other]), predictor_around(fitted(LogisticRegression())))


@pytest.mark.parametrize("member", [LogisticRegression(), 3], ids=["not fitted", "no model"])
def test_members_that_are_given_must_be_fitted_classifiers(member):
    """A clone of the estimator (as cross-validation makes) has lost their fit, unless they are frozen."""
    predictor = predictor_around(fitted(LogisticRegression()))
    with pytest.raises(InvalidInput, match=r"estimators .*fitted.*FrozenEstimator"):
        Around(AuxiliaryEnsemble(estimators=[member]), predictor)


def test_dropout_needs_answers_that_come_from_the_module():
    X, y = data()
    predictor = MaskTrainedPredictor(module(), epochs=1, width=4, random_state=0).fit(X, y)
    assert suitable_epistemic(predictor) == "distance"
    with pytest.raises(InvalidInput, match=r'"conditional", "mean", "output", .*got MaskTrainedPredictor'):
        MCDropout().fit(predictor)


def test_an_ensemble_needs_complete_rows_of_every_class():
    X, y = data()
    model = fitted(LogisticRegression())
    holes = X.copy()
    holes[y == 2, 0] = np.nan
    predictor = conditional(model).fit(holes, y)
    with pytest.raises(InvalidInput, match=r'every class.*"distance"'):
        Around(AuxiliaryEnsemble(), predictor)
    assert suitable_epistemic(predictor) == "distance"


class Foreign:
    """No scikit-learn estimator, but it knows its classes."""

    classes_ = np.arange(3)

    def predict_proba(self, X):
        return function(X)


@pytest.mark.parametrize(
    ("model", "make_predictor", "expected"),
    [
        (LogisticRegression, conditional, "ensemble"),
        (lambda: make_pipeline(StandardScaler(), LogisticRegression()), conditional, "ensemble"),
        (lambda: FrozenEstimator(fitted(LogisticRegression())), ImputedPredictor, "ensemble"),
        (lambda: RandomForestClassifier(3), ImputedPredictor, "ensemble"),
        (LogisticRegression, lambda model: ReparametrizedPredictor(model, epochs=0), "ensemble"),
        (lambda: function, conditional, "distance"),
        (Foreign, conditional, "distance"),
        (module, conditional, "dropout"),
        (lambda: FrozenEstimator(wrap(module(), [0, 1, 2])), ImputedPredictor, "dropout"),
        (lambda: module(dropout=None), conditional, "distance"),
        (lambda: module(dropout=0.0), conditional, "distance"),
        (module, lambda model: ReparametrizedPredictor(model, epochs=0), "dropout"),
    ],
)
def test_what_auto_takes(model, make_predictor, expected):
    X, y = data()
    predictor = make_predictor(model()).fit(X, y)
    assert suitable_epistemic(predictor) == expected
    kinds: dict[str, Any] = {"ensemble": ensemble, "dropout": MCDropout, "distance": FeatureDistance}
    found = Around(kinds[expected](), predictor).assess(X, some_masks(90))[1]
    assert not np.isnan(found.epistemic).any()

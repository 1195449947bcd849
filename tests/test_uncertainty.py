"""Entropies and divergences, by hand and by their properties."""

import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import askwise.uncertainty
from askwise.errors import InvalidInput
from askwise.uncertainty import (
    Uncertainty,
    aleatoric,
    confidence_gap,
    ensemble_variance,
    entropy,
    epistemic_divergence,
    kl_divergence,
    mutual_information,
    summarize,
)

OF_MEMBERS = [aleatoric, mutual_information, ensemble_variance]
FROM_MEMBERS = ("aleatoric", "mutual_information", "epistemic", "variance")


def random_members(seed=0, k=4, n=6, n_classes=3):
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=(k, n))


def test_doctests():
    result = doctest.testmod(askwise.uncertainty)
    assert result.attempted >= 9
    assert result.failed == 0


# Closed forms.


def test_uniform_distribution():
    for n_classes in (1, 2, 7):
        uniform = np.full(n_classes, 1 / n_classes)
        assert entropy(uniform) == pytest.approx(np.log(n_classes)), n_classes
        assert confidence_gap(uniform) == pytest.approx(1 - 1 / n_classes), n_classes


def test_certainty_has_no_uncertainty():
    proba = np.eye(3)
    np.testing.assert_array_equal(entropy(proba), 0.0)
    np.testing.assert_array_equal(confidence_gap(proba), 0.0)
    assert not np.signbit(entropy(np.ones((2, 1)))).any()


def test_kl_divergence_by_hand():
    assert kl_divergence([0.5, 0.5], [0.25, 0.75]) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3))


def test_kl_divergence_from_uniform_is_the_missing_entropy():
    proba = random_members()[0]
    np.testing.assert_allclose(kl_divergence(proba, np.full(3, 1 / 3)), np.log(3) - entropy(proba))


def test_kl_divergence_with_zeros():
    assert kl_divergence([1.0, 0.0], [0.5, 0.5]) == pytest.approx(np.log(2))
    assert kl_divergence([1.0, 0.0], [1.0, 0.0]) == 0
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf


def test_ensemble_variance_by_hand():
    # Classes vary by 0.2, 0.1 and 0.1 around their means: (0.04 + 0.01 + 0.01) / 3.
    members = [[[0.7, 0.2, 0.1]], [[0.3, 0.4, 0.3]]]
    np.testing.assert_allclose(ensemble_variance(members), [0.02])


def test_ensemble_variance_is_largest_for_opposite_certainties():
    assert ensemble_variance([[[1.0, 0.0]], [[0.0, 1.0]]])[0] == 0.25
    assert (ensemble_variance(random_members(n=200)) < 0.25).all()


def test_members_that_agree_are_not_in_doubt_about_the_model():
    members = np.repeat(random_members(k=1), 7, axis=0)
    np.testing.assert_allclose(mutual_information(members), 0.0, atol=1e-15)
    np.testing.assert_allclose(ensemble_variance(members), 0.0, atol=1e-30)
    np.testing.assert_allclose(aleatoric(members), entropy(members[0]))


def test_aleatoric_and_mutual_information_add_up_to_the_entropy_of_the_mean():
    members = random_members()
    total = aleatoric(members) + mutual_information(members)
    np.testing.assert_allclose(total, entropy(members.mean(axis=0)))


@settings(max_examples=40, deadline=None)
@given(arrays(float, (3, 4, 3), elements=st.floats(0.01, 1)), st.sampled_from([np.float32, np.float64]))
def test_rounding_makes_nothing_negative(weights, dtype):
    members = (weights / weights.sum(axis=-1, keepdims=True)).astype(dtype)
    alike = np.repeat(members[:1], 3, axis=0)
    for values in (members, alike):
        assert all((measure(values) >= 0).all() for measure in OF_MEMBERS)
        assert (epistemic_divergence(values, np.nextafter(values[0], 1)) >= 0).all()
        assert (confidence_gap(values) >= 0).all()


def test_what_is_no_distribution_is_not_made_to_look_like_one():
    assert entropy([2.0, -1.0]) == -np.inf
    assert kl_divergence([0.4, 0.4], [0.5, 0.5]) < -0.1


# Shapes.


def test_leading_axes():
    proba = random_members()  # (4, 6, 3)
    assert entropy(proba).shape == confidence_gap(proba).shape == (4, 6)
    assert entropy(proba[0, 0]).shape == ()
    assert kl_divergence(proba, proba[0]).shape == (4, 6)
    np.testing.assert_array_equal(kl_divergence(proba, proba[0])[2], kl_divergence(proba[2], proba[0]))


def test_rows_do_not_depend_on_each_other():
    members = random_members()
    proba = members[0]
    for measure in OF_MEMBERS:
        np.testing.assert_array_equal(measure(members[:, 2:3]), measure(members)[2:3])
    alone = epistemic_divergence(members[:, 2:3], proba[2:3])
    np.testing.assert_array_equal(alone, epistemic_divergence(members, proba)[2:3])


def test_no_rows_give_no_numbers():
    members = np.empty((4, 0, 3))
    for values in summarize(members[0], members).as_dict().values():
        assert values.shape == (0,)


def test_lists_and_integers_are_taken():
    assert entropy([[1, 0], [0, 1]]).tolist() == [0.0, 0.0]


def test_members_of_another_shape_are_refused():
    shapes: list[tuple[int, ...]] = [(3,), (6, 3), (2, 4, 6, 3), (0, 6, 3)]
    for measure, shape in itertools.product(OF_MEMBERS, shapes):
        with pytest.raises(InvalidInput, match=r"members must have shape \(k, n, C\)"):
            measure(np.full(shape, 0.5))


def test_different_classes_are_refused():
    with pytest.raises(InvalidInput, match="same classes"):
        kl_divergence([[0.5, 0.5]], [[1.0]])


def test_a_primary_prediction_for_other_rows_is_refused():
    shapes: list[tuple[int, ...]] = [(1, 3), (3,), (6, 1), (4, 6, 3)]
    for shape in shapes:
        with pytest.raises(InvalidInput, match="one primary prediction for each row"):
            epistemic_divergence(random_members(), np.full(shape, 1 / 3))


def test_nan_stays_nan_and_stays_in_its_row():
    members = random_members()
    proba = members.mean(axis=0)
    members[1, 2] = proba[2] = np.nan
    for name, values in summarize(proba, members).as_dict().items():
        if name != "novelty":  # which was not asked
            assert np.isnan(values).tolist() == [False, False, True, False, False, False], name


# All at once.


def test_summary_with_members():
    members = random_members()
    proba = members[0]
    summary = summarize(proba, members[1:])
    np.testing.assert_array_equal(summary.total, entropy(proba))
    np.testing.assert_array_equal(summary.confidence_gap, confidence_gap(proba))
    np.testing.assert_array_equal(summary.aleatoric, aleatoric(members[1:]))
    np.testing.assert_array_equal(summary.mutual_information, mutual_information(members[1:]))
    np.testing.assert_array_equal(summary.epistemic, epistemic_divergence(members[1:], proba))
    np.testing.assert_array_equal(summary.variance, ensemble_variance(members[1:]))


def test_without_members_what_they_would_tell_is_unknown():
    summary = summarize([[0.5, 0.5], [1.0, 0.0]]).as_dict()
    for name in (*FROM_MEMBERS, "novelty"):
        assert summary[name].shape == (2,)
        assert np.isnan(summary[name]).all()
    assert summary["confidence_gap"].tolist() == [0.5, 0.0]


def test_blocks_and_steps_are_put_together():
    proba = random_members()[0]
    whole = summarize(proba)
    both = Uncertainty.concatenated([summarize(proba[:2]), summarize(proba[2:])])
    np.testing.assert_array_equal(both.total, whole.total)
    assert Uncertainty.stacked([whole, whole, whole]).total.shape == (6, 3)
    changed = whole.replaced(np.arange(6) == 4, summarize([[1.0, 0.0, 0.0]]))
    assert changed.total.tolist() == [*whole.total[:4], 0.0, whole.total[5]]
    assert whole.total[4] > 0


def test_summary_names_and_immutability():
    summary = summarize([[0.5, 0.5]])
    assert isinstance(summary, Uncertainty)
    assert list(summary.as_dict()) == ["total", *FROM_MEMBERS, "confidence_gap", "novelty"]
    with pytest.raises(AttributeError):
        summary.total = np.zeros(1)  # type: ignore[misc]

"""What the paper proves or prints about its uncertainties, checked on distributions set by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from askwise.uncertainty import entropy, epistemic_divergence, kl_divergence, mutual_information


def normalized(weights):
    """Distributions from weights; a row of zeros becomes the uniform one."""
    weights = np.where(weights.sum(axis=-1, keepdims=True) == 0, 1.0, weights)
    return weights / weights.sum(axis=-1, keepdims=True)


@st.composite
def ensembles(draw):
    """Members (k, n, C), zeros among their probabilities, and primary predictions (n, C) without zeros."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(2, 5)))
    weight = st.just(0.0) | st.floats(1e-6, 1.0)
    members = draw(arrays(float, shape, elements=weight))
    proba = draw(arrays(float, shape[1:], elements=st.floats(1e-6, 1.0)))
    return normalized(members), normalized(proba)


def bernoulli(theta):
    """One row per parameter: (..., 2)."""
    theta = np.asarray(theta, dtype=float)
    return np.stack([1 - theta, theta], axis=-1)


@given(ensembles())
def test_epistemic_divergence_is_mutual_information_plus_the_gap_of_the_mean(ensemble):
    """Eq. 19: e = EU + D(mean || q)."""
    members, proba = ensemble
    gap = kl_divergence(members.mean(axis=0), proba)
    e = epistemic_divergence(members, proba)
    np.testing.assert_allclose(e, mutual_information(members) + gap, atol=1e-9)


@given(ensembles())
def test_mutual_information_is_the_mean_divergence_from_the_mean(ensemble):
    """Eq. 17, its two forms, and the bound ln C of Appendix A."""
    members, _ = ensemble
    information = mutual_information(members)
    around_mean = kl_divergence(members, members.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(information, around_mean, atol=1e-9)
    assert (information >= 0).all()
    assert (information <= np.log(members.shape[-1]) + 1e-9).all()


@given(ensembles())
def test_epistemic_divergence_is_zero_when_the_members_coincide_with_the_primary_model(ensemble):
    """Appendix A: Q a Dirac measure at theta."""
    _, proba = ensemble
    assert (epistemic_divergence(np.stack([proba] * 5), proba) == 0).all()


def test_epistemic_divergence_is_not_zero_when_one_member_differs():
    proba = bernoulli([0.3])
    members = np.stack([proba, proba, bernoulli([0.31])])
    assert epistemic_divergence(members, proba)[0] > 0


def test_epistemic_divergence_sees_a_primary_model_that_left_the_consensus():
    """Appendix A: members that agree carry no EU, and e is unbounded as q leaves them."""
    members = np.stack([bernoulli([0.9] * 4)] * 3)
    e = epistemic_divergence(members, bernoulli([0.5, 0.1, 1e-9, 0.0]))
    np.testing.assert_allclose(mutual_information(members), 0.0, atol=1e-12)
    assert (np.diff(e) > 0).all()
    assert np.isinf(e[-1])


def test_two_point_bernoulli_ensemble():
    """Fig. 4: theta is 0 or 1 with probability 1/2 each; EU is ln 2, the largest there is for two classes."""
    members = bernoulli([[0.0], [1.0]])
    np.testing.assert_allclose(mutual_information(members), np.log(2))


def test_uniform_bernoulli_ensemble():
    """Fig. 4: theta uniform on [0, 1]; EU is ln 2 - 1/2, for the mean entropy is 1/2."""
    members = bernoulli(midpoints()[:, np.newaxis])
    np.testing.assert_allclose(mutual_information(members), np.log(2) - 0.5, atol=1e-6)


def test_curves_over_the_primary_model():
    """Fig. 4: against q = Bernoulli(phi) both ensembles, whose mean is 1/2, add D(1/2 || phi) to their EU."""
    phi = np.array([0.01, 0.25, 0.5, 0.8, 0.99])
    gap = -0.5 * np.log(4 * phi * (1 - phi))
    two_point = epistemic_divergence(bernoulli([[0.0] * 5, [1.0] * 5]), bernoulli(phi))
    uniform = epistemic_divergence(bernoulli(np.tile(midpoints()[:, np.newaxis], 5)), bernoulli(phi))
    np.testing.assert_allclose(two_point, np.log(2) + gap)
    np.testing.assert_allclose(uniform, np.log(2) - 0.5 + gap, atol=1e-6)


def midpoints(n=4000):
    return (np.arange(n) + 0.5) / n


# Appendix B. A table p(x1, x2, x3, y) with S = {1} and i = 2, so that x3 stays unknown after the purchase.


class Table:
    """The conditionals of a random joint table, each with four axes, of size 1 where they do not matter."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.joint = rng.dirichlet(np.ones(3 * 4 * 2 * 3)).reshape(3, 4, 2, 3)
        self.y_given_x = normalized(self.joint)
        self.y_given_s = normalized(self.joint.sum(axis=(1, 2), keepdims=True))
        self.y_given_si = normalized(self.joint.sum(axis=2, keepdims=True))
        x = self.joint.sum(axis=3)
        self.rest_given_s = x / x.sum(axis=(1, 2), keepdims=True)  # p(x2, x3 | x1): (3, 4, 2)

    def information(self):
        """I(x_i; y | x_S) for each x_S, as the divergence of p(x_i, y | x_S) from independence: (3,)."""
        both = self.joint.sum(axis=2)
        both = both / both.sum(axis=(1, 2), keepdims=True)
        independent = both.sum(axis=2, keepdims=True) * both.sum(axis=1, keepdims=True)
        return kl_divergence(both.reshape(3, -1), independent.reshape(3, -1))

    def mean_given_s(self, values):
        """Mean over p(x | x_S): (3, 4, 2) to (3,)."""
        return (self.rest_given_s * values).sum(axis=(1, 2))


def discrepancy_reduction(reference, table):
    """Delta u_i for each x: u(x_S) - u(x_S + x_i), against a reference prediction p(y | x)."""
    return kl_divergence(reference, table.y_given_s) - kl_divergence(reference, table.y_given_si)


def another_model(seed):
    """A prediction p(y | x) that is not the conditional of the table."""
    return np.random.default_rng([seed, 1]).dirichlet(np.ones(3), size=(3, 4, 2))


SEEDS = range(5)


def test_lemma_1():
    for seed in SEEDS:
        table = Table(seed)
        log_ratio = np.log(table.y_given_si / table.y_given_s)
        for reference in (table.y_given_x, another_model(seed)):
            expected = (reference * log_ratio).sum(axis=-1)
            found = discrepancy_reduction(reference, table)
            np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=f"seed {seed}")


def test_lemma_2():
    # The paper averages over p(x_i | x_S), but p(y | x) depends on the rest of x too: p(x | x_S) is meant.
    for seed in SEEDS:
        table, reference = Table(seed), another_model(seed)
        log_ratio = np.log(table.y_given_si / table.y_given_s)
        difference = table.information() - table.mean_given_s(discrepancy_reduction(reference, table))
        expected = table.mean_given_s(((table.y_given_si - reference) * log_ratio).sum(axis=-1))
        np.testing.assert_allclose(difference, expected, atol=1e-12, err_msg=f"seed {seed}")
        assert np.abs(difference).max() > 1e-3, f"seed {seed}"


def test_expected_reduction_is_mutual_information_when_the_reference_is_the_true_conditional():
    """Lemma 2, continued: averaged over p(x | x_S) its right-hand side is 0 for the table's own p(y | x)."""
    for seed in SEEDS:
        table = Table(seed)
        expected_reduction = table.mean_given_s(discrepancy_reduction(table.y_given_x, table))
        np.testing.assert_allclose(expected_reduction, table.information(), atol=1e-12, err_msg=f"seed {seed}")


def test_mutual_information_is_the_expected_fall_of_entropy():
    """Eq. 14 with x_i in the place of Theta."""
    for seed in SEEDS:
        table = Table(seed)
        fall = entropy(table.y_given_s) - entropy(table.y_given_si)
        np.testing.assert_allclose(table.mean_given_s(fall), table.information(), atol=1e-12, err_msg=f"seed {seed}")

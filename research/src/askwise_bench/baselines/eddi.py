"""EDDI: buy the feature most informative about the label under a generative model of partly observed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from askwise.networks import import_torch
from askwise.parameters import POSITIVE, WIDTHS, Choice, Number, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.table.rows import EncodedRows
from askwise_bench.baselines.base import Answer, Baseline, ScoredPolicy
from askwise_bench.baselines.partial_vae import Cells, PartialVAE, gaussian_divergence, train_partial_vae

CODES_AT_ONCE = 20_000


@dataclass(kw_only=True, eq=False, repr=False)
class EDDI(Baseline):
    r"""Efficient dynamic discovery of high-value information (Ma et al., ICML 2019), their PNP variant.

    A partial variational autoencoder models rows and labels together: :math:`q(z \mid x_S)` from the set of observed
    cells, :math:`p(x, y \mid z)` for all of them. The next feature is the one with the largest information reward,

    .. math:: R(i, x_S) = E\, KL(q(z \mid x_i, x_S) \| q(z \mid x_S))
              - E\, KL(q(z \mid y, x_i, x_S) \| q(z \mid y, x_S)), \quad x_i, y \sim p(x_i, y \mid x_S),

    per price, and :math:`p(y \mid x_S)` is the mean of :math:`p(y \mid z)` over draws of z.

    Deviations: 1. Numbers are standardized and decoded without bounds (theirs: squeezed into [0, 1]); a category is
    a softmax over its levels and enters the set as the level that was seen; so is the label. 2. The bound counts
    all cells that a training row has, not only those left in the set (`reconstruct="observed"` is theirs): it is a
    bound on the likelihood of the row for every encoder, and it teaches the encoder what the hidden cells are.
    3. Sizes of the random subsets are uniform (theirs: each cell is dropped by a rate of its own). 4. The sampled
    x_i include the decoder's noise (their program uses its means). 5. The draws are made once in `fit` and used
    for all rows, so a row's answer depends on no other row. 6. Prices divide the reward. 7. The likelihood
    of the label is weighted. In the original, where a label is a number in [0, 1] with a standard deviation of 0.14,
    a wrong one costs 25 nats; an unweighted softmax lets the encoder leave the label out. 8. Divergences are those of
    the paper (their program divides squares by a standard deviation where the formula has a variance). 9. Smaller
    encoder and fewer steps than their program (500 and 200 units, 30,000 steps).

    Parameters
    ----------
    latent, code
        Dimensions of z and of the code of a set.
    encoder, decoder
        Widths of the hidden ReLU layers from code to z, and from z to cells.
    noise
        Standard deviation of a scaled number given z.
    label_weight
        Weight of the label's likelihood in the bound.
    reconstruct
        Cells that the bound counts: ``"all"`` that a row has, or those ``"observed"`` in the random subset.
    samples
        Draws of z, and of the cells, behind each reward and each prediction.
    steps, batch_size, learning_rate
        Steps of Adam, and its settings.
    costs, groups, random_state, progress
        As in `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import EDDI
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = EDDI(steps=20, samples=5, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    latent: int = within(Whole(1), 10)
    code: int = within(Whole(1), 20)
    encoder: Sequence[int] = within(WIDTHS, (200, 100))
    decoder: Sequence[int] = within(WIDTHS, (50, 100))
    noise: float = within(Number(1e-6), 0.5)
    label_weight: float = within(Number(0), 10.0)
    reconstruct: str = within(Choice(("all", "observed")), "all")
    samples: int = within(Whole(1), 50)
    steps: int = within(Whole(0), 2000)
    batch_size: int = within(Whole(1), 100)
    learning_rate: float = within(POSITIVE, 1e-3)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        import_torch("EDDI", "DynamicFeatureSelector")
        cells = Cells(rows, self.schema_, len(self.classes_))
        self.vae_ = train_partial_vae(cells, rows, y, rng, self)
        self.reward_ = InformationReward(self.vae_, self.samples, rng)
        return self._predictor(self.reward_.predict), ScoredPolicy(self.reward_)


class InformationReward:
    """R(i, x_S) of all features and p(y | x_S), by the same draws for every row.

    Since the code of a set is a sum over its cells, the code of S and i is that of S plus what i adds.

    Parameters
    ----------
    vae
        The trained autoencoder.
    samples, rng
        Number of draws, and their generator.
    """

    def __init__(self, vae: PartialVAE, samples: int, rng: np.random.Generator) -> None:
        cells, schema = vae.cells, vae.cells.schema
        self.vae = vae
        self.of_z = rng.standard_normal((samples, vae.latent))
        self.of_numbers = rng.standard_normal((samples, cells.n_cells))
        self.of_levels = rng.gumbel(size=(samples, cells.n_cells))
        owner = schema.owner[cells.column[: -cells.n_classes]]
        self.owned = (owner == np.arange(len(schema.features))[:, None]).astype(float)  # (M, cells of features)

    def predict(self, rows: EncodedRows) -> np.ndarray:
        """p(y | x_S) for rows (n, D) and the mask per column, (n, C)."""
        return _in_chunks(self._predict, rows, CODES_AT_ONCE // len(self.of_z))

    def __call__(self, rows: EncodedRows, mask: np.ndarray) -> np.ndarray:
        """R(i, x_S) for rows (n, D) and the features known (n, M), (n, M)."""
        return _in_chunks(self._rewards, rows, CODES_AT_ONCE // (len(self.of_z) * mask.shape[1]))

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        code = self.vae.code(*self.vae.cells(rows))
        return np.asarray(self.vae.label_proba(self._completions(code)).mean(axis=1))

    def _rewards(self, rows: EncodedRows) -> np.ndarray:
        cells, n_classes = self.vae.cells, self.vae.cells.n_classes
        known = self.vae.code(*cells(rows))  # (n, K)
        drawn = cells.draw(self._completions(known), self.vae.noise, self.of_numbers, self.of_levels)  # (n, m, P)
        added = self.vae.elements(drawn) * np.where(cells.is_number, 1.0, drawn)[..., None]  # (n, m, P, K)
        of_label = added[:, :, -n_classes:].sum(axis=2)  # (n, m, K)
        of_features = self.owned @ added[:, :, :-n_classes]  # (n, m, M, K)
        about_all = self._divergence(known[:, None], of_features)
        about_the_rest = self._divergence(known[:, None] + of_label, of_features)
        return np.asarray((about_all - about_the_rest).mean(axis=1))

    def _completions(self, code: np.ndarray) -> np.ndarray:
        """Decoder outputs for the cells at each draw of z, (n, K) -> (n, m, P)."""
        mean, log_variance = self.vae.posterior(code[:, None])
        return self.vae.decode(mean + np.exp(log_variance / 2) * self.of_z)

    def _divergence(self, code: np.ndarray, added: np.ndarray) -> np.ndarray:
        """How far q(z) moves when features are added to a code, (n, m, M)."""
        before = self.vae.posterior(code[:, :, None])
        return gaussian_divergence(self.vae.posterior(code[:, :, None] + added), before)


def _in_chunks(function: Answer, rows: EncodedRows, n_at_once: int) -> np.ndarray:
    """`function` on some rows at a time, to bound the memory."""
    starts = range(0, len(rows), max(1, n_at_once))
    return np.concatenate([function(rows.take(slice(s, s + max(1, n_at_once)))) for s in starts])

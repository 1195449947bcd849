"""One generator per `random_state`; numpy's global one is never used."""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.errors import InvalidInput

LARGEST_SEED = 2**31 - 1


def generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a `Generator`, a `RandomState`, or None for a fresh one.

    >>> generator(0).integers(10) == generator(0).integers(10)
    np.True_
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(LARGEST_SEED))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"random_state must be a seed >= 0, a numpy generator or None; got {random_state!r}."
        ) from None


def seed_from(rng: np.random.Generator) -> int:
    """A seed for objects that only accept integers."""
    return int(rng.integers(LARGEST_SEED))

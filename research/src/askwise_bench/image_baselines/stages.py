"""The methods of the paper's image experiments (Table 4), with its stages of training: 100 epochs each."""

from __future__ import annotations

from typing import Any

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.images.dropout import PatchDropout
from askwise.images.grid import PatchGrid
from askwise.images.predictors import PatchNetwork
from askwise.images.value import PatchValueNetwork
from askwise.policy.greedy import Greedy
from askwise.selector import DynamicFeatureSelector
from askwise_bench.image_baselines.baselines import PatchDIME, PatchGDFS, PatchVIP
from askwise_bench.image_baselines.two_networks import PatchBaseline

# Epochs of (pretraining under masks, adapter, policy); the baselines: (pretraining, none, joint).
STAGES: dict[str, dict[str, tuple[int, int, int]]] = {
    "CNN": {"paper": (0, 0, 100), "quick": (0, 0, 4)},
    "ReCNN": {"paper": (0, 60, 40), "quick": (0, 6, 4)},
    "AdCNN": {"paper": (40, 0, 60), "quick": (6, 0, 4)},
    "AdReCNN": {"paper": (40, 40, 20), "quick": (6, 4, 4)},
    "DIME": {"paper": (25, 0, 75), "quick": (4, 0, 6)},
    "VIP": {"paper": (0, 0, 100), "quick": (0, 0, 10)},
    "GDFS": {"paper": (25, 0, 75), "quick": (4, 0, 6)},
}
METHODS = tuple(STAGES)
BASELINES: dict[str, type[PatchBaseline]] = {"DIME": PatchDIME, "VIP": PatchVIP, "GDFS": PatchGDFS}
PROFILES = ("paper", "quick")
QUICK_STATES = 4000


def method(
    name: str,
    network: Any,
    grid: PatchGrid | None = None,
    *,
    profile: str = "quick",
    random_state: Any = None,
    progress: bool | str = False,
) -> FeatureAcquirer:
    """A method of the paper around a trained network, ready to be fitted on images.

    Parameters
    ----------
    name
        One of `METHODS`.
    network
        A trained torch classifier of images; it is never changed; methods that train it further use a copy.
    grid
        The patches; None = the paper's 4 x 4.
    profile
        ``"paper"``: the paper's epochs, batches of 64, Adam at 1e-3 for pretraining and adapters and at 1e-4 for
        policy networks, new masks in every epoch, an L1 penalty of 0.1, and 30 dropout samples. ``"quick"``: a tenth of
        the epochs for two cores, with higher rates and no L1 penalty.
    random_state, progress
        Seed, and progress bars.
    """
    if name not in METHODS or profile not in PROFILES:
        raise InvalidInput(
            f"method: name must be one of {METHODS} and profile one of {PROFILES}; got {name!r} and {profile!r}."
        )
    grid = PatchGrid(4, 4) if grid is None else grid
    pretrain, adapter, policy = STAGES[name][profile]
    paper = profile == "paper"
    common: dict[str, Any] = {"random_state": random_state, "progress": progress}
    if name in BASELINES:
        rate = 1e-4 if paper else 1e-3
        return BASELINES[name](
            network, groups=grid, pretrain_epochs=pretrain, epochs=policy, policy_learning_rate=rate, **common
        )
    predictor = PatchNetwork(
        pretrain_epochs=pretrain,
        adapter_epochs=adapter,
        refresh=1 if paper else 2,
        cosine=not paper,
        **common,
    )
    return DynamicFeatureSelector(
        network,
        groups=grid,
        adaptation=predictor,
        epistemic=PatchDropout(30, random_state=random_state),
        policy=Greedy(paper_value(policy) if paper else quick_value(policy), price_rule="per price"),
        **common,
    )


def paper_value(epochs: int) -> PatchValueNetwork:
    """Appendix G: new states in every epoch, Adam at 1e-4, L1 0.1; all patches of a state are candidates."""
    return PatchValueNetwork(
        l1=0.1, rounds=epochs, on_policy=0.0, n_candidates=None, epochs=1, keep=False, learning_rate=1e-4
    )


def quick_value(epochs: int) -> PatchValueNetwork:
    """A few thousand states in every epoch with four candidates each; earlier states are trained on again."""
    return PatchValueNetwork(rounds=epochs, n_states=QUICK_STATES, epochs=6, n_candidates=4)

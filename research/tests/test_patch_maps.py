"""Maps of photographs, patch by patch, and the last stage that is trained on them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from askwise_bench.image_networks import last_stage, patch_stages  # noqa: E402
from askwise_bench.patch_maps import KeptMaps, patches_through  # noqa: E402


@pytest.fixture(scope="module")
def stages():
    torch.manual_seed(0)
    return patch_stages(pretrained=False)


@pytest.fixture(scope="module")
def photographs():
    return np.random.default_rng(0).integers(0, 256, size=(3, 3, 128, 128), dtype=np.uint8)


def test_a_cell_of_the_map_says_nothing_about_other_patches(stages, photographs):
    image, other = photographs[0], photographs[0].copy()
    other[:, 32:64, 96:128] = photographs[1][:, 32:64, 96:128]
    found, changed = (patches_through(stages, each) for each in (image, other))
    assert found.shape == (192, 4, 4)
    np.testing.assert_array_equal(np.argwhere((found != changed).any(axis=0)), [[1, 3]])
    alone = torch.as_tensor(image[None, :, 32:64, 96:128].astype(np.float32))
    with torch.no_grad():
        np.testing.assert_allclose(
            stages(alone)[0, :, 0, 0], found[:, 1, 3], rtol=1e-3, atol=1e-3 * np.abs(found).max()
        )


def test_maps_are_computed_once_and_what_was_done_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("askwise_bench.patch_maps.SAVED_EVERY", 2)
    asked, broken = [], {7}

    def image(row):
        if row in broken:
            raise KeyboardInterrupt
        asked.append(row)
        return np.full((3, 8, 8), row, dtype=np.uint8)

    def mean():  # of the three colors of each patch
        return lambda patches: patches.mean(dim=(2, 3), keepdim=True)

    kept = KeptMaps(tmp_path / "maps" / "made.npy", 10)
    with pytest.raises(KeyboardInterrupt):
        kept.of(np.array([5, 1, 3, 8, 7]), image, mean)
    assert asked == [1, 3, 5]
    broken.clear()
    asked.clear()
    again = KeptMaps(tmp_path / "maps" / "made.npy", 10).of(np.array([8, 7, 1]), image, mean)
    assert asked == [7, 8]  # the block of 5 had not ended, but 1 is on disk
    assert again.shape == (3, 3, 4, 4)
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again[:, 0, 0, 0], [8, 7, 1])


def test_all_of_the_last_stage_is_trained():
    network = last_stage(10, pretrained=False)
    assert sum(part.numel() for part in network.parameters() if part.requires_grad) == 1_030_410
    assert network.train()(torch.zeros(2, 192, 4, 4)).shape == (2, 10)
    assert not any(part.requires_grad for part in patch_stages(pretrained=False).parameters())

"""A pose space small enough for tests: random weights, real bodies."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.language.encoder import open_encoder
from jigdoll.posespace.dataset import Dataset, creature_takes, dataset_of, spread_of
from jigdoll.posespace.model import NetConfig, PoseNet
from jigdoll.posespace.rigged import Body, body_of
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.windows import Units
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import species_named

TINY = NetConfig(width=64, layers=2, heads=1, hidden=64)


def bare_anatomy(species: str) -> Anatomy:
    """A zoo species without skin: quick to make."""
    from jigdoll.posespace.dataset import bare_asset

    return anatomy_of(bare_asset(species, build_skeleton(species_named(species))))


@pytest.fixture(scope="session")
def fox() -> Body:
    return body_of(bare_anatomy("fox"))


@pytest.fixture(scope="session")
def person() -> Body:
    return body_of(bare_anatomy("human"))


@pytest.fixture(scope="session")
def data() -> Dataset:
    return dataset_of(creature_takes(4))


@pytest.fixture(scope="session")
def units(data: Dataset) -> Units:
    mean, spread = spread_of(data)
    return Units(torch.from_numpy(mean).float(), torch.from_numpy(spread).float())


@pytest.fixture(scope="session")
def space(units: Units) -> PoseSpace:
    generator = torch.Generator().manual_seed(0)
    net = PoseNet(TINY)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.05 * torch.randn(parameter.shape, generator=generator))
    return PoseSpace(net.eval().requires_grad_(False), units, open_encoder(), {"net": vars(TINY)})


@pytest.fixture(scope="session")
def vectors(data: Dataset) -> dict[str, np.ndarray]:
    return {text: np.full(192, 0.07, np.float32) for clip in data.clips for text in clip.texts}


@pytest.fixture
def cache(tmp_path: Path, data: Dataset) -> Path:
    from jigdoll.posespace.dataset import save_clips

    save_clips(tmp_path / "zoo.npz", data)
    return tmp_path

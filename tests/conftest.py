"""What every test shares."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def assets_dir() -> Path:
    """Real characters and mocap that nobody on this project made; a plain clone has none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "assets"
    if not folder.is_dir():
        pytest.skip(f"the real files are not here: {folder.name} is missing beside the repository")
    return folder


@pytest.fixture(scope="session")
def corpus_dir() -> Path:
    """Several hundred artists' characters and clips; a plain clone has none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip(f"the real files are not here: {folder.name} is missing beside the repository")
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of tiny video pipelines, saved once."""
    from tiny_pipelines import save_tiny_pipeline

    root = tmp_path_factory.mktemp("pipelines")
    return cache(lambda name: save_tiny_pipeline(name, root / name))

"""What every test shares."""

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

"""One file that a kill cannot break, keyed by content."""

import json
import math
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.checkpoint import fingerprint, read_checkpoint, write_checkpoint
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.types import Motion, Pose
from stand_ins import two_link_arm


@dataclass(frozen=True)
class Settings:
    rate: float = 0.1
    name: str = "a"


def clip() -> Motion:
    return Motion(Pose(torch.zeros(3, 3), torch.tensor([1.0, 0, 0, 0]).expand(3, 2, 4)), 24.0, "walk")


def test_what_is_written_comes_back_bit_for_bit(tmp_path: Path) -> None:
    content = {
        "theta": torch.randn(3, 4),
        "random": torch.arange(5, dtype=torch.uint8),
        "nested": [{"scalar": torch.tensor(2.5, dtype=torch.float64)}, "word", None, True, math.inf],
        7: {"keys": "may be numbers"},
    }
    file = tmp_path / "folder" / "run.npz"
    assert read_checkpoint(file, key="k") is None
    write_checkpoint(file, content, key="k")
    back = read_checkpoint(file, key="k")
    assert torch.equal(back["theta"], content["theta"]) and torch.equal(back["random"], content["random"])
    assert torch.equal(back["nested"][0]["scalar"], content["nested"][0]["scalar"])
    assert back["nested"][0]["scalar"].dtype == torch.float64
    assert back["nested"][1:] == content["nested"][1:] and back[7] == content[7]


def test_another_key_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    write_checkpoint(file, {"a": 1}, key="mine")
    before = file.read_bytes()
    with pytest.raises(JigdollError, match=r"run\.npz belongs to another run"):
        read_checkpoint(file, key="yours")
    assert file.read_bytes() == before


def test_what_is_no_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    write_checkpoint(file, {"a": torch.zeros(100)}, key="k")
    whole = file.read_bytes()
    np.savez(tmp_path / "other.npz", tree=np.frombuffer(json.dumps({"content": {"array": 9}}).encode(), np.uint8))
    for data in (b"", b"not a run", whole[: len(whole) // 2], (tmp_path / "other.npz").read_bytes()):
        file.write_bytes(data)
        with pytest.raises(FileFormatError, match="no run that can be read"):
            read_checkpoint(file, key="k")


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    np.savez(file, tree=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match="no run that can be read"):
        read_checkpoint(file, key="k")


def test_the_mark_is_of_the_content_and_not_of_names_or_lengths() -> None:
    asset, motion = two_link_arm(), clip()
    mark = fingerprint(asset.skeleton, motion, Settings())
    assert mark == fingerprint(two_link_arm().skeleton, clip(), Settings())
    assert asset.skeleton.children and mark == fingerprint(asset.skeleton, motion, Settings())  # what it keeps beside
    nudged = motion.pose.root.clone()
    nudged[1, 2] = 1e-7
    others = [
        (asset.skeleton, replace(motion, pose=replace(motion.pose, root=nudged)), Settings()),
        (asset.skeleton, replace(motion, fps=25.0), Settings()),
        (replace(asset.skeleton, limits=asset.skeleton.limits * 0.5), motion, Settings()),
        (asset.skeleton, motion, Settings(rate=0.2)),
        (asset.skeleton, motion, Settings(), None),
    ]
    assert len({mark, *(fingerprint(*other) for other in others)}) == 6
    assert fingerprint("ab", "c") != fingerprint("a", "bc") and fingerprint([1], 2) != fingerprint([1, 2])
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_what_has_no_content_to_mark_is_refused() -> None:
    with pytest.raises(TypeError, match="function"):
        fingerprint(lambda: 0)


@pytest.mark.parametrize("damage", ["an open bracket", "no array"])
def test_arrays_with_a_damaged_header_are_refused_by_name(damage: str, tmp_path: Path) -> None:
    """Both found by fuzzing: numpy reads headers with Python's tokenizer, and gives bytes for what is no array."""
    file = tmp_path / "run.npz"
    write_checkpoint(file, {"theta": torch.arange(3.0)}, key="key")
    with zipfile.ZipFile(file) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    if damage == "no array":
        members["tree.npy"] = b"{}"
    else:
        members["tree.npy"] = members["tree.npy"].replace(b",), }", b",  }", 1)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(FileFormatError, match="run"):
        read_checkpoint(file, key="key")

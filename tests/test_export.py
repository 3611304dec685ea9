"""Writing by suffix, and clips as the options want them."""

from pathlib import Path

import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.export import ExportOptions, prepare, save
from jigdoll.math.rotations import rotvec_to_quaternion
from jigdoll.types import Motion, Pose
from stand_ins import two_link_arm


def test_a_loop_stays_closed_when_the_rates_do_not_divide() -> None:
    arm = two_link_arm().skeleton
    t = torch.arange(130) / 120.0
    bent = rotvec_to_quaternion(torch.stack([t, 0 * t, 0 * t], -1))[:, None].expand(-1, len(arm), -1)
    clip = Motion(Pose(torch.stack([0 * t, 0.1 * t, t], -1), bent), 120.0, "bend")
    motion = prepare(clip, arm, ExportOptions(fps=24.0, in_place=True, loop=True))
    assert motion.fps == 24.0
    torch.testing.assert_close(motion.pose.root[-1], motion.pose.root[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(motion.pose.rotations[-1], motion.pose.rotations[0], atol=1e-5, rtol=0)


def test_an_unknown_suffix_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(JigdollError, match=r"cannot write \.max; known are"):
        save(tmp_path / "a.max", two_link_arm())
    with pytest.raises(JigdollError, match="exactly one clip"):
        save(tmp_path / "a.bvh", two_link_arm())
    assert not list(tmp_path.iterdir())

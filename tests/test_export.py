"""Resampling, taking the travel out, closing the loop."""

from pathlib import Path

import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.export import ExportOptions, prepare, save
from jigdoll.math.rotations import quaternion_to_rotvec, rotvec_to_quaternion
from jigdoll.motion import close_loop, in_place, resample
from jigdoll.types import Motion, Pose
from stand_ins import two_link_arm


def steady_turn(frames: int, fps: float) -> Motion:
    """One joint that turns by one radian a second about X and walks a metre a second along Z, with a bounce."""
    t = torch.arange(frames) / fps
    rotations = rotvec_to_quaternion(torch.stack([t, 0 * t, 0 * t], -1))[:, None]
    root = torch.stack([0 * t, 0.1 * torch.sin(6.28318530718 * t), t], -1)
    return Motion(Pose(root, rotations), fps, "turn")


@pytest.mark.parametrize("fps", [12.0, 24.0, 30.0, 60.0])
def test_a_steady_turn_is_the_same_at_every_rate(fps: float) -> None:
    again = resample(steady_turn(25, 24.0), fps)
    t = torch.arange(len(again)) / fps
    assert len(again) == int(1.0 * fps + 1e-4) + 1
    torch.testing.assert_close(quaternion_to_rotvec(again.pose.rotations)[:, 0, 0], t, atol=1e-5, rtol=0)
    torch.testing.assert_close(again.pose.root[:, 2], t, atol=1e-5, rtol=0)


def test_in_place_takes_the_travel_and_keeps_the_bounce() -> None:
    motion = steady_turn(25, 24.0)
    still = in_place(motion)
    torch.testing.assert_close(still.pose.root[:, 2], torch.zeros(25), atol=1e-6, rtol=0)
    torch.testing.assert_close(still.pose.root[:, 1], motion.pose.root[:, 1])


def test_a_closed_loop_ends_where_it_began_but_for_the_travel() -> None:
    motion = steady_turn(20, 24.0)  # ends in the middle of a bounce and a turn
    loop = close_loop(motion)
    torch.testing.assert_close(loop.pose.rotations[-1], loop.pose.rotations[0], atol=1e-6, rtol=0)
    assert float((loop.pose.root[-1] - loop.pose.root[0])[1]) == pytest.approx(0, abs=1e-6)
    assert float((loop.pose.root[-1] - loop.pose.root[0])[2]) == pytest.approx(19 / 24, abs=1e-5)
    torch.testing.assert_close(loop.pose.rotations[0], motion.pose.rotations[0])


def test_a_loop_stays_closed_when_the_rates_do_not_divide() -> None:
    motion = prepare(steady_turn(130, 120.0), ExportOptions(fps=24.0, in_place=True, loop=True))
    assert motion.fps == 24.0
    torch.testing.assert_close(motion.pose.root[-1], motion.pose.root[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(motion.pose.rotations[-1], motion.pose.rotations[0], atol=1e-5, rtol=0)


def test_a_rate_of_nothing_is_refused() -> None:
    for fps in (0.0, -1.0, float("nan")):
        with pytest.raises(JigdollError, match="frames per second"):
            resample(steady_turn(5, 24.0), fps)


def test_an_unknown_suffix_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(JigdollError, match=r"cannot write \.max; known are"):
        save(tmp_path / "a.max", two_link_arm())
    with pytest.raises(JigdollError, match="exactly one clip"):
        save(tmp_path / "a.bvh", two_link_arm())
    assert not list(tmp_path.iterdir())

"""From what was distilled to a clip: its rate and length, feet that stand, and what the prior says of it."""

import warnings
from dataclasses import replace

import torch

from jigdoll.distill.foot_lock import foot_lock
from jigdoll.distill.loop import Distilled
from jigdoll.distill.scene import Scene, render_window, sample_camera
from jigdoll.distill.trajectory import to_motion
from jigdoll.errors import PromptWarning
from jigdoll.kinematics import forward
from jigdoll.math.devices import to_device
from jigdoll.motion import check_rate, close_loop, resample, slice_motion
from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Motion, Pose


def finished(anatomy: Anatomy, distilled: Distilled, *, fps: float, loop: bool, name: str) -> Motion:
    """The distilled motion at the rate that is wanted, with feet that stand where they stand, closed if it loops.

    The paper's own recipe knows no standing feet, so they are put down only where the losses ask for contact.
    """
    check_rate(fps)
    if distilled.trajectory.basis == "frames":
        motion = resample(distilled.motion, fps)
    else:
        motion = to_motion(distilled.trajectory, distilled.theta, fps=fps)
    if distilled.plan.losses["contact"]:
        motion = foot_lock(anatomy, motion, loop=loop)
    return replace(close_loop(motion, anatomy.skeleton) if loop else motion, name=name)


def at_most(motion: Motion, seconds: float | None, *, loop: bool = False) -> Motion:
    """The motion cut to the length that was asked for: a prior sees its whole window at once, however short the wish.

    A loop cannot be cut; that it stays longer is said.
    """
    if seconds is None or motion.seconds <= seconds + 0.5 / motion.fps:
        return motion
    if loop:
        warnings.warn(
            f"a loop of {seconds:g} s was asked for and {motion.seconds:.2f} s are made: the prior sees that much at "
            "once, and a part of a loop is none",
            PromptWarning,
            stacklevel=3,
        )
        return motion
    return slice_motion(motion, slice(0, max(2, round(seconds * motion.fps) + 1)))


@torch.no_grad()
def preference(scene: Scene, motion: Motion) -> float:
    """How much better the prior explains the motion by the prompt than by its opposite, as a share of the error.

    The difference matters and not the error itself: a motion that hardly moves is the easiest to explain, by any text.
    Every motion is asked the same questions: same cameras, same noise.
    """
    generator = torch.Generator().manual_seed(0)
    guidance, prior = scene.plan.guidance, scene.prior
    low, high = guidance.level_low, guidance.level_high
    pose = to_device(_at_frames(motion, scene.plan.frames, scene.plan.fps).pose, prior.device)
    T_world_joint = forward(scene.trajectory.skeleton, pose)
    right = wrong = 0.0
    for share in (0.2, 0.4, 0.6, 0.8):
        level = low + share * (high - low)
        seen, reference_image = render_window(scene, T_world_joint, sample_camera(scene, generator))
        clean = prior.encode(seen)
        noisy = prior.noise(clean, level, generator)
        wanted, unwanted = prior.denoise(noisy, level, [scene.texts.wanted, scene.texts.unwanted], reference_image)
        right += float((wanted - clean).square().mean())
        wrong += float((unwanted - clean).square().mean())
    return (wrong - right) / max(wrong + right, 1e-12)


def _at_frames(motion: Motion, frames: int, fps: float) -> Motion:
    """The motion at another rate with this many frames; the last one is held where the clip is too short for that."""
    again = resample(motion, fps)
    index = torch.arange(frames).clamp_max(len(again) - 1)
    return replace(again, pose=Pose(again.pose.root[index], again.pose.rotations[index]))

"""Reference gaits: feet that stand still, legs in the right order, loops that close, on every built-in skeleton."""

import math
import warnings
from functools import lru_cache
from pathlib import Path

import pytest
import torch

from jigdoll.asset.load import load
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.kinematics import forward, make_skeleton, rest_transforms
from jigdoll.math.rotations import quaternion_to_compound, quaternion_to_matrix
from jigdoll.types import Motion, Skeleton
from jigdoll.zoo.gaits import Clip, actions, reference_clip, reference_motion
from jigdoll.zoo.gaits.anatomy import Anatomy, study
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import SPECIES, species_named

CORE = ("walk", "run", "jump", "idle", "turn_left", "turn_right")
HOPPERS = {"kangaroo"}
BUILDS = "fox cow elephant rabbit turtle crocodile dragon human penguin t_rex kangaroo ant spider".split()


@lru_cache(maxsize=64)
def skeleton_of(name: str) -> Skeleton:
    return build_skeleton(species_named(name))


@lru_cache(maxsize=512)
def clip_of(name: str, action: str, seed: int = 0) -> tuple[Anatomy, Clip, torch.Tensor]:
    """A looping clip of a species and where its joints go."""
    skeleton = skeleton_of(name)
    clip = reference_clip(skeleton, action, name=name, seconds=1.5, fps=30.0, loop=True, seed=seed)
    return study(skeleton), clip, forward(skeleton, clip.motion.pose)[..., :3, 3].double()


def ground_contacts(a: Anatomy, points: torch.Tensor, leg: int) -> list[tuple[torch.Tensor, float]]:
    """The ends of a foot that can touch the ground, each with its height at rest."""
    foot = a.legs[leg]
    return [(points[:, j], float(a.points[j, 1])) for j in (foot.toe, foot.tip) if j is not None]


@pytest.mark.parametrize("action", CORE)
@pytest.mark.parametrize("name", SPECIES)
def test_standing_feet_do_not_move_and_no_foot_cuts_into_the_ground(name: str, action: str) -> None:
    a, clip, points = clip_of(name, action)
    for leg, foot in enumerate(a.legs):
        stands = clip.stance[:, leg]
        both = stands[1:] & stands[:-1]
        assert bool(both.any())
        for track, height in ground_contacts(a, points, leg):
            up = (track[:, 1] - height) / a.body_length
            assert float(up.min()) > -1e-4
            # A flat foot first touches with its heel: its toe stands once it is down.
            down = both & (up[1:] < 1e-6) & (up[:-1] < 1e-6)
            assert foot.foot is not None or torch.equal(down, both)
            assert float(track.diff(dim=0).norm(dim=-1)[down].max()) < 1e-5 * a.body_length
        assert float(clip.gap[stands, leg].max()) < 1e-6 * a.body_length
    # Neither tails nor trunks nor noses go underground.
    assert float(points[..., 1].min()) > -1e-3 * a.body_length


@pytest.mark.parametrize("name", ["human", "robot", "penguin"])
def test_a_heel_that_touches_first_stays_where_it_touched(name: str) -> None:
    skeleton = skeleton_of(name)
    a = study(skeleton)
    clip = reference_clip(skeleton, "walk", name=name, seconds=1.0, fps=200.0)
    T = forward(skeleton, clip.motion.pose).double()
    for leg, foot in enumerate(a.legs):
        assert foot.foot is not None
        heel = T[:, foot.foot, :3, 3] + T[:, foot.foot, :3, :3] @ (foot.heel - a.points[foot.foot])
        toe_up = T[:, foot.toe, 1, 3] - float(a.points[foot.toe, 1]) > 1e-5 * a.body_length
        rolling = clip.stance[:, leg] & toe_up
        both = rolling[1:] & rolling[:-1]
        assert int(both.sum()) >= 3
        assert float(heel.diff(dim=0).norm(dim=-1)[both].max()) < 1e-5 * a.body_length
        assert float(heel[:, 1].min()) > float(foot.heel[1]) - 1e-5 * a.body_length


@pytest.mark.parametrize("name", SPECIES)
def test_feet_clear_the_ground_while_they_swing(name: str) -> None:
    for action in ("walk", "run"):
        a, clip, points = clip_of(name, action)
        for leg in range(len(a.legs)):
            lowest = torch.stack([track[:, 1] - height for track, height in ground_contacts(a, points, leg)]).amin(0)
            assert float(lowest[~clip.stance[:, leg]].max()) > 0.02 * a.leg_length


@pytest.mark.parametrize("name", [name for name in SPECIES if name not in HOPPERS])
def test_the_right_legs_repeat_the_left_ones_half_a_stride_later(name: str) -> None:
    skeleton = skeleton_of(name)
    a = study(skeleton)
    period = reference_clip(skeleton, "walk", name=name).period
    # Forty frames per stride, three strides: half a stride is twenty frames.
    clip = reference_clip(skeleton, "walk", name=name, seconds=3 * period, fps=40 / period, loop=True)
    points = forward(skeleton, clip.motion.pose)[..., :3, 3].double()
    for leg, foot in enumerate(a.legs):
        if foot.side == "left":
            other = next(i for i, f in enumerate(a.legs) if f.rank == foot.rank and f.side == "right")
            ahead = [points[:, a.legs[i].toe, 2] - points[:, 0, 2] for i in (leg, other)]
            assert torch.allclose(ahead[0][:-20], ahead[1][20:], atol=2e-3 * a.body_length)
            assert float(torch.corrcoef(torch.stack(ahead))[0, 1]) < -0.5
            # A touchdown that falls on a frame may be counted to either side of it.
            assert float((clip.stance[:-20, leg] != clip.stance[20:, other]).float().mean()) < 0.06


@pytest.mark.parametrize("name", SPECIES)
def test_left_and_right_legs_jump_as_one(name: str) -> None:
    a, clip, points = clip_of(name, "jump")
    for foot in a.legs:
        if foot.side == "left":
            mirror = points[:, a.pair(foot).toe] * points.new_tensor([-1.0, 1.0, 1.0])
            assert torch.allclose(points[:, foot.toe], mirror, atol=1e-5 * a.body_length)
    # There is a flight, and it rises.
    flying = ~clip.stance.any(1)
    assert 0.1 < float(flying.float().mean()) < 0.5
    assert float(clip.motion.pose.root[flying, 1].max()) > 0.1 * a.leg_length


@pytest.mark.parametrize("name", SPECIES)
@pytest.mark.parametrize("action", CORE)
def test_a_loop_ends_in_the_pose_it_began_with(name: str, action: str) -> None:
    _, clip, _ = clip_of(name, action)
    R = quaternion_to_matrix(clip.motion.pose.rotations)
    assert torch.allclose(R[0, 1:], R[-1, 1:], atol=1e-5)
    if not action.startswith("turn"):
        assert torch.allclose(R[0, 0], R[-1, 0], atol=1e-5)
        assert abs(float(clip.motion.pose.root[-1, 1] - clip.motion.pose.root[0, 1])) < 1e-5


@pytest.mark.parametrize("name", SPECIES)
def test_walking_leads_ahead_and_running_faster(name: str) -> None:
    distance = {}
    for action in ("walk", "run", "idle"):
        a, clip, _ = clip_of(name, action)
        moved = clip.motion.pose.root[-1] - clip.motion.pose.root[0]
        distance[action] = float(moved[2])
        assert abs(float(moved[0])) < 1e-3 * a.leg_length
        assert math.isclose(distance[action], 1.5 * clip.speed, rel_tol=1e-3, abs_tol=1e-4 * a.leg_length)
    assert distance["run"] > 1.2 * distance["walk"] > 0 and abs(distance["idle"]) < 1e-4


@pytest.mark.parametrize("name", SPECIES)
def test_turns_lead_to_their_side(name: str) -> None:
    a, left, points = clip_of(name, "turn_left")
    _, _, others = clip_of(name, "turn_right")
    # The character's left is +X, and a body that turned left faces it.
    end = quaternion_to_matrix(left.motion.pose.rotations[-1, 0])
    start = quaternion_to_matrix(left.motion.pose.rotations[0, 0])
    assert float((end @ start.T)[0, 2]) > 0.2
    middle = 0.5 * (points[:, 0] + points[:, a.chest])
    assert float(middle[-1, 0] - middle[0, 0]) > 0.01 * a.leg_length
    other = 0.5 * (others[:, 0] + others[:, a.chest])
    assert float(other[-1, 0] - other[0, 0]) < -0.01 * a.leg_length


@pytest.mark.parametrize("name", SPECIES)
def test_joints_stay_within_their_limits(name: str) -> None:
    """Toes of sprawled legs turn in place under a leg that swings round, further than a toe's limits say: left out."""
    skeleton = skeleton_of(name)
    for action in ("walk", "run", "jump", "idle"):
        a, clip, _ = clip_of(name, action)
        rotations = clip.motion.pose.rotations
        angles = quaternion_to_compound(rotations, skeleton.axes.expand(len(rotations), -1, -1, -1))
        over = torch.maximum(skeleton.limits[..., 0] - angles, angles - skeleton.limits[..., 1]).amax((0, 2))
        feet = {joint for leg in a.legs if leg.sprawled for joint in (leg.toe, leg.joints[-2], leg.foot)}
        worst = max((float(over[j]), skeleton.names[j]) for j in range(1, len(skeleton)) if j not in feet)
        assert worst[0] < math.radians(6.0), f"{action}: {worst[1]} by {math.degrees(worst[0]):.0f} degrees"


@pytest.mark.parametrize("name", ["fox", "horse", "human", "ostrich", "spider"])
def test_no_joint_jumps_from_frame_to_frame(name: str) -> None:
    skeleton = skeleton_of(name)
    for action in CORE:
        clip = reference_clip(skeleton, action, name=name, seconds=1.0, fps=120.0)
        R = quaternion_to_matrix(clip.motion.pose.rotations[:, 1:])
        turned = torch.acos(
            (((R[1:].transpose(-1, -2) @ R[:-1]).diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-1, 1)
        )
        # 60 rad/s would be a leg that folds right up within three frames of film.
        assert float(turned.max()) < 60.0 / 120.0
        q = clip.motion.pose.rotations
        assert float((q[1:] * q[:-1]).sum(-1).min()) > 0.9


def test_the_same_seed_gives_the_same_clip_and_another_seed_another_one() -> None:
    skeleton = skeleton_of("fox")

    def walk(seed: int) -> Motion:
        return reference_motion(skeleton, "walk", name="fox", seed=seed)

    assert torch.equal(walk(3).pose.rotations, walk(3).pose.rotations) and torch.equal(
        walk(3).pose.root, walk(3).pose.root
    )
    clips = [reference_clip(skeleton, "walk", name="fox", seed=seed) for seed in range(6)]
    periods = torch.tensor([clip.period for clip in clips])
    speeds = torch.tensor([clip.speed for clip in clips])
    assert float(periods.std() / periods.mean()) > 0.04 and float(speeds.std() / speeds.mean()) > 0.05
    for i, one in enumerate(clips):
        for other in clips[:i]:
            assert not torch.allclose(one.motion.pose.rotations, other.motion.pose.rotations, atol=0.05)


@pytest.mark.parametrize("name", ["fox", "human", "kangaroo", "rabbit"])
@pytest.mark.parametrize("seed", [1, 2])
def test_varied_gaits_keep_their_feet_still_too(name: str, seed: int) -> None:
    for action in ("walk", "run", "jump"):
        test_a, clip, points = clip_of(name, action, seed)
        for leg, foot in enumerate(test_a.legs):
            both = clip.stance[1:, leg] & clip.stance[:-1, leg]
            down = both & (points[1:, foot.toe, 1] - float(test_a.points[foot.toe, 1]) < 1e-6 * test_a.body_length)
            down = down & (points[:-1, foot.toe, 1] - float(test_a.points[foot.toe, 1]) < 1e-6 * test_a.body_length)
            assert float(points[:, foot.toe].diff(dim=0).norm(dim=-1)[down].max()) < 1e-5 * test_a.body_length


def test_a_speed_that_is_asked_for_is_kept() -> None:
    skeleton = skeleton_of("human")
    for speed in (0.6, 1.2, 1.8):
        motion = reference_motion(skeleton, "walk", name="human", speed=speed, seconds=2.0)
        assert math.isclose(float(motion.pose.root[-1, 2] - motion.pose.root[0, 2]), 2 * speed, rel_tol=0.02)


def test_an_action_that_a_body_cannot_do_is_refused_with_what_it_can() -> None:
    with pytest.raises(JigdollError, match="fox cannot fly; it can walk, run, jump, idle"):
        reference_motion(skeleton_of("fox"), "fly", name="fox")
    with pytest.raises(JigdollError, match="positive length"):
        reference_motion(skeleton_of("fox"), "walk", seconds=0.0)
    one = make_skeleton(("root",), (-1,), torch.eye(4)[None])
    with pytest.raises(JigdollError, match="pairs of legs"):
        reference_motion(one, "walk")


@pytest.mark.parametrize("name", BUILDS)
def test_every_action_of_every_build_keeps_its_feet_still_and_its_rotations_finite(name: str) -> None:
    skeleton = skeleton_of(name)
    a, doable = study(skeleton), actions(skeleton, name=name)
    assert doable[: len(CORE)] == CORE and len(doable) == len(set(doable)) >= 8
    for action in doable[len(CORE) :]:
        clip = reference_clip(skeleton, action, name=name, seconds=1.0, fps=16.0, seed=5)
        motion, pose = clip.motion, clip.motion.pose
        assert len(motion) == 17 and motion.name == action and pose.offsets is None and pose.scales is None
        assert torch.allclose(pose.rotations.norm(dim=-1), torch.ones(()), atol=1e-5) and bool(
            pose.root.isfinite().all()
        )
        points = forward(skeleton, pose)[..., :3, 3].double()
        assert float(points[..., 1].min()) > -2e-3 * a.body_length
        for leg, foot in enumerate(a.legs):
            up = points[:, foot.toe, 1] - float(a.points[foot.toe, 1])
            down = clip.stance[:, leg] & (up < 1e-6 * a.body_length)
            both = down[1:] & down[:-1]
            slid = points[:, foot.toe].diff(dim=0).norm(dim=-1)[both]
            assert float(up.min()) > -1e-4 * a.body_length
            assert not len(slid) or float(slid.max()) < 1e-5 * a.body_length


@pytest.mark.parametrize("name", ["human", "dog", "spider", "ostrich"])
def test_extended_actions_look_different_from_a_walk(name: str) -> None:
    skeleton = skeleton_of(name)
    L = study(skeleton).leg_length
    clips = {
        action: reference_clip(skeleton, action, name=name, seconds=2.0, fps=16.0)
        for action in ("walk", "creep", "march", "stomp", "dance", "limp")
    }
    root = {action: clip.motion.pose.root for action, clip in clips.items()}
    assert float(root["creep"][:, 1].mean()) < float(root["walk"][:, 1].mean()) - 0.03 * L
    assert clips["creep"].speed < 0.6 * clips["walk"].speed
    for action in ("stomp", "dance"):
        assert float((root[action][-1] - root[action][0]).norm()) < 0.3 * L

    def lift(action: str) -> float:
        a = study(skeleton)
        points = forward(skeleton, clips[action].motion.pose)[..., :3, 3]
        return max(float(points[:, leg.toe, 1].max()) - float(a.points[leg.toe, 1]) for leg in a.legs)

    assert lift("march") > 1.2 * lift("walk") and lift("stomp") > 1.2 * lift("walk")
    # The spared leg, left and last, stands for less of the time than the one across.
    share = clips["limp"].stance.float().mean(0)
    a = study(skeleton)
    lame = max(i for i, leg in enumerate(a.legs) if leg.side == "left")
    sound = max(i for i, leg in enumerate(a.legs) if leg.side == "right")
    assert float(share[lame]) < float(share[sound]) - 0.05


def test_winged_bodies_flap_and_the_dragon_flies_off_the_ground() -> None:
    assert {"flap", "fly"} <= set(actions(skeleton_of("dragon"), name="dragon"))
    assert "fly" not in actions(skeleton_of("penguin"), name="penguin")
    a, clip, points = clip_of("dragon", "fly")
    assert float(points[..., 1].min()) > 0.05 * a.leg_length and not bool(clip.stance.any())
    tip = study(skeleton_of("dragon")).wings[0].joints[-1]
    _, flap, flapped = clip_of("dragon", "flap")
    assert float(flapped[:, tip, 1].max() - flapped[:, tip, 1].min()) > 0.5 * a.leg_length and bool(flap.stance.all())


@pytest.mark.parametrize("name", ["dog", "human"])
def test_a_gait_does_not_depend_on_how_joint_frames_are_turned(name: str) -> None:
    plain = skeleton_of(name)
    g = torch.Generator().manual_seed(0)
    Q = torch.linalg.qr(torch.randn(len(plain), 3, 3, generator=g))[0]
    Q = Q * torch.linalg.det(Q)[:, None, None]
    world = rest_transforms(plain).clone()
    world[:, :3, :3] = Q
    local = torch.stack(
        [w if p < 0 else torch.linalg.inv(world[p]) @ w for w, p in zip(world, plain.parents, strict=True)]
    )
    turned = Skeleton(plain.names, plain.parents, local, Q.transpose(-1, -2) @ plain.axes, plain.limits)
    for action in ("walk", "jump"):
        a, b = (reference_motion(s, action, name=name) for s in (plain, turned))
        places = [forward(s, m.pose)[..., :3, 3] for s, m in ((plain, a), (turned, b))]
        assert torch.allclose(*places, atol=1e-4)


@pytest.mark.parametrize("file", ["khronos/Fox.glb", "khronos/CesiumMan.glb", "mesh2motion/horse-animations.glb"])
def test_the_rigs_of_artists_walk_without_skating_too(assets_dir: Path, file: str) -> None:
    skeleton = _skeleton_in(assets_dir / "rigged" / file)
    a = study(skeleton)
    clip = reference_clip(skeleton, "walk", seconds=1.0, fps=30.0)
    points = forward(skeleton, clip.motion.pose)[..., :3, 3].double()
    for leg, foot in enumerate(a.legs):
        up = points[:, foot.toe, 1] - float(a.points[foot.toe, 1])
        down = clip.stance[:, leg] & (up < 1e-6 * a.body_length)
        both = down[1:] & down[:-1]
        assert int(both.sum()) > 5 and float(up.min()) > -1e-4 * a.body_length
        assert float(points[:, foot.toe].diff(dim=0).norm(dim=-1)[both].max()) < 1e-5 * a.body_length


def test_a_rig_whose_feet_hang_on_controls_is_refused(assets_dir: Path) -> None:
    with pytest.raises(JigdollError, match="end above the ground"):
        reference_motion(_skeleton_in(assets_dir / "rigged/quaternius/animals_pack/Wolf.glb"), "walk")


def _skeleton_in(path: Path) -> Skeleton:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return load(path).skeleton

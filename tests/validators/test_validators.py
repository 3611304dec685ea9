"""What is wrong with a pose: closed forms on a body of tubes, finite differences, real gaits."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import axis_angle_to_quaternion, quaternion_multiply, rotvec_to_quaternion
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Weights
from jigdoll.validators import VALIDATORS, ValidatedBody, check, faults, findings, penalty, pose_body, prepare
from jigdoll.validators.balance import acceleration, balance, outside_support
from jigdoll.validators.skin import capsule_overlap, depth_below_ground
from jigdoll.zoo.assemble import make
from jigdoll.zoo.gaits import reference_motion

RADIUS = 0.05


def _joints(hips: float, knees: float) -> list[tuple[str, str | None, tuple[float, float, float]]]:
    """Names, parents and places of a little man; knees and elbows are bent a little."""
    joints: list[tuple[str, str | None, tuple[float, float, float]]] = [
        ("pelvis", None, (0, 1.0, 0)),
        ("spine", "pelvis", (0, 1.2, 0)),
        ("chest", "spine", (0, 1.4, 0)),
        ("head", "chest", (0, 1.65, 0)),
        ("head_tip", "head", (0, 1.85, 0)),
    ]
    for side, s in (("left", 1.0), ("right", -1.0)):
        joints += [
            (f"{side}_shoulder", "chest", (0.2 * s, 1.45, 0)),
            (f"{side}_elbow", f"{side}_shoulder", (0.5 * s, 1.45, -0.02)),
            (f"{side}_wrist", f"{side}_elbow", (0.8 * s, 1.45, 0.04)),
            (f"{side}_hand_tip", f"{side}_wrist", (0.95 * s, 1.45, 0.06)),
            (f"{side}_hip", "pelvis", (hips * s, 0.95, 0)),
            (f"{side}_knee", f"{side}_hip", (hips * s, 0.5, knees)),
            (f"{side}_ankle", f"{side}_knee", (hips * s, 0.08, 0)),
            (f"{side}_toe", f"{side}_ankle", (hips * s, 0.05, 0.12)),
            (f"{side}_toe_tip", f"{side}_toe", (hips * s, 0.05, 0.2)),
        ]
    return joints


def tube_man(bleed: float = 0.0, hips: float = 0.15, knees: float = 0.04) -> RiggedAsset:
    """Tubes of one radius around all bones; the ring at a joint follows the parent by `bleed`."""
    joints_of = _joints(hips, knees)
    names = tuple(name for name, _, _ in joints_of)
    parents = tuple(-1 if parent is None else names.index(parent) for _, parent, _ in joints_of)
    places = torch.tensor([place for _, _, place in joints_of])
    T = torch.eye(4).repeat(len(names), 1, 1)
    T[:, :3, 3] = places
    T[1:, :3, 3] -= places[list(parents[1:])]
    turn = torch.arange(8) * (math.pi / 4)
    vertices, faces, joints, values = [], [], [], []
    for child, parent in enumerate(parents):
        if parent < 0 or (parent == 0 and "hip" in names[child]):
            continue
        way = places[child] - places[parent]
        across = torch.linalg.cross(way, torch.tensor([0.3, 0.2, 0.9]))
        across = across / across.norm()
        other = torch.linalg.cross(way / way.norm(), across)
        ring = RADIUS * (torch.cos(turn)[:, None] * across + torch.sin(turn)[:, None] * other)
        start = sum(len(v) for v in vertices)
        for place in (0.0, 0.25, 0.5, 0.75, 1.0):
            vertices.append(places[parent] + place * way + ring)
            above = max(parents[parent], 0)
            share = bleed if place == 0 else 0.0
            joints += [[parent, above]] * 8
            values += [[1 - share, share]] * 8
        for k in range(4):
            for i in range(8):
                a, b = start + 8 * k + i, start + 8 * k + (i + 1) % 8
                faces += [[a, b, a + 8], [b, b + 8, a + 8]]
    points = torch.cat(vertices)
    mesh = Mesh(points, torch.tensor(faces), torch.full_like(points, 0.5))
    return RiggedAsset(
        "tubes", mesh, make_skeleton(names, parents, T), Weights(torch.tensor(joints), torch.tensor(values))
    )


@pytest.fixture(scope="module")
def anatomy() -> Anatomy:
    return anatomy_of(reparent(tube_man()).asset)


@pytest.fixture(scope="module")
def body(anatomy: Anatomy) -> ValidatedBody:
    return prepare(anatomy, dtype=torch.float64)


def rest(body: ValidatedBody, frames: int = 1) -> Pose:
    return rest_pose(body.skeleton, frames=frames)


def turned(body: ValidatedBody, joint: str, axis: Tensor, angle: float) -> Pose:
    pose, at = rest(body), body.skeleton.index(joint)
    pose.rotations[:, at] = axis_angle_to_quaternion(axis, torch.tensor(angle, dtype=torch.float64))
    return pose


def value(body: ValidatedBody, pose: Pose | Motion, name: str, joint: str) -> float:
    return float(faults(body, pose_body(body, pose))[name][0, body.skeleton.index(joint)])


def test_nothing_is_wrong_at_rest(body: ValidatedBody) -> None:
    for name, values in faults(body, pose_body(body, rest(body))).items():
        assert float(values.abs().max()) < 1e-5, name


def test_the_flesh_of_a_tube_is_as_thick_as_the_tube(body: ValidatedBody) -> None:
    arm = body.bone_joints == body.skeleton.index("left_elbow")
    torch.testing.assert_close(body.radii[arm], torch.full_like(body.radii[arm], RADIUS), atol=1e-6, rtol=0)


def test_a_hand_in_the_belly_is_as_deep_in_it_as_the_tubes_overlap(body: ValidatedBody) -> None:
    pose = rest(body)
    offsets = torch.zeros_like(pose.rotations[..., :3])
    # The forearm is put along x through the trunk at half the height between spine and chest.
    offsets[0, body.skeleton.index("left_elbow")] = torch.tensor([-0.65, -0.1504, -0.005], dtype=torch.float64)
    pose = replace(pose, offsets=offsets)
    posed = pose_body(body, pose)
    skin = posed.skin[0, : body.spread][body.owners[: body.spread] == body.skeleton.index("left_elbow")]
    gaps = (skin[:, [0, 2]]).norm(dim=-1)[(skin[:, 1] > 1.0) & (skin[:, 1] < 1.65)]
    expected = (RADIUS - gaps).clamp_min(0).max() / body.length
    assert float(expected) > 0.2 * RADIUS / body.length
    assert value(body, pose, "self_contact", "left_elbow") == pytest.approx(float(expected), abs=1e-6)


def test_legs_that_touch_at_rest_may_touch_so_far_and_no_further() -> None:
    body = prepare(anatomy_of(reparent(tube_man(hips=0.04)).asset), dtype=torch.float64)
    # The innermost skin of one shin is 8 cm - 5 cm from the other shin's bone, so 2 cm deep in it.
    assert float(body.inside_rest[body.strangers].max()) == pytest.approx(0.02, abs=2e-3)
    assert float(check(body, rest(body))["self_contact"].max()) < 1e-6
    offsets = torch.zeros(1, len(body.skeleton), 3, dtype=torch.float64)
    offsets[0, body.skeleton.index("left_knee"), 0] = -0.01
    closer = replace(rest(body), offsets=offsets)
    assert float(check(body, closer)["self_contact"].max()) == pytest.approx(0.01 / body.length, rel=0.05)


@pytest.mark.parametrize("joint", ["left_knee", "right_knee", "left_elbow", "right_elbow"])
def test_a_hinge_is_hyperextended_by_what_it_opens_beyond_straight(body: ValidatedBody, joint: str) -> None:
    at = body.skeleton.index(joint)
    place = body.hinges[:, 1].tolist().index(at)
    parent, _, child = body.hinges[place].tolist()
    P = torch.linalg.inv(body.T_joint_rest)[:, :3, 3]
    before, after = P[at] - P[parent], P[child] - P[at]
    fold = math.acos(float(before @ after / before.norm() / after.norm()))
    axis = body.skeleton.axes[at, :, 0]
    assert value(body, turned(body, joint, axis, -fold - 0.3), "hyperextension", joint) == pytest.approx(0.3, abs=1e-5)
    assert value(body, turned(body, joint, axis, 1.8), "hyperextension", joint) == 0


def test_a_knee_that_is_straight_at_rest_folds_the_way_its_own_clips_fold_it() -> None:
    asset = tube_man(knees=0.0)
    bird = rest_pose(asset.skeleton, frames=6)  # a bird's knee: the shin swings forwards
    at = [asset.skeleton.index(f"{side}_knee") for side in ("left", "right")]
    bird.rotations[:, at] = rotvec_to_quaternion(torch.tensor([-0.8, 0.0, 0.0])).expand(6, 2, 4)
    plain = prepare(anatomy_of(reparent(asset).asset))
    with_clip = prepare(anatomy_of(reparent(replace(asset, clips={"walk": Motion(bird, 24.0, "walk")})).asset))
    assert value(plain, bird, "hyperextension", "left_knee") == pytest.approx(0.8, abs=1e-4)
    assert value(with_clip, bird, "hyperextension", "left_knee") == 0


def test_a_twist_counts_beyond_its_limit_whatever_the_swing(body: ValidatedBody) -> None:
    at = body.skeleton.index("spine")
    high = float(body.skeleton.limits[at, 2, 1])
    twist = turned(body, "spine", body.skeleton.axes[at, :, 2], high + 0.4)
    assert value(body, twist, "twist", "spine") == pytest.approx(0.4, abs=1e-6)
    bend = turned(body, "spine", body.skeleton.axes[at, :, 0], 0.7)
    both = replace(twist, rotations=quaternion_multiply(bend.rotations, twist.rotations))
    assert value(body, both, "twist", "spine") == pytest.approx(0.4, abs=1e-6)
    assert value(body, bend, "twist", "spine") == 0


def test_limits_count_what_is_beyond_them(body: ValidatedBody) -> None:
    at = body.skeleton.index("head")
    high = float(body.skeleton.limits[at, 0, 1])
    pose = turned(body, "head", body.skeleton.axes[at, :, 0], high + 0.25)
    assert value(body, pose, "limits", "head") == pytest.approx(0.25, abs=1e-6)
    inside = turned(body, "head", body.skeleton.axes[at, :, 0], high - 0.05)
    assert float(check(body, inside)["limits"]) < 1e-6
    about = turned(body, "pelvis", body.skeleton.axes[0, :, 0], 3.0)
    assert float(check(body, about)["limits"]) < 1e-6


def test_skin_that_grows_by_a_factor_is_stretched_by_its_logarithm() -> None:
    body = prepare(anatomy_of(reparent(tube_man(0.5)).asset), dtype=torch.float64)
    scales = torch.ones(1, len(body.skeleton), 3, dtype=torch.float64)
    scales[:, 0] = 1.7
    values = faults(body, pose_body(body, replace(rest(body), scales=scales)))["stretch"]
    with_edges = torch.unique(body.edge_joints)
    assert len(with_edges) > 8
    torch.testing.assert_close(
        values[0, with_edges], torch.full((len(with_edges),), math.log(1.7)).double(), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("angle", [0.5, 2.0, 3.0])
def test_a_twisted_sweet_collapses_by_the_cosine_of_half_the_angle(angle: float) -> None:
    body = prepare(anatomy_of(reparent(tube_man(0.5)).asset), dtype=torch.float64)
    at = body.skeleton.index("left_elbow")
    assert bool((body.waist_joints == at).any())
    # The ring stands square to the lower arm, so a turn about that bone twists it in its own plane.
    pose = turned(body, "left_elbow", body.skeleton.axes[at, :, 2], angle)
    assert value(body, pose, "collapse", "left_elbow") == pytest.approx(1 - math.cos(angle / 2), abs=1e-5)


def test_a_body_that_sinks_is_as_deep_in_the_ground(body: ValidatedBody) -> None:
    pose = rest(body)
    lowest = float(body.points[: body.spread, 1].min())
    pose.root[:, 1] = -lowest - 0.1
    assert float(check(body, pose)["ground"]) == pytest.approx(0.1 / body.length, rel=1e-6)
    torch.testing.assert_close(depth_below_ground(torch.tensor([-2.0, 0.0, 3.0])), torch.tensor([2.0, 0.0, 0.0]))


def test_capsules_overlap_by_what_their_axes_are_too_near() -> None:
    one = torch.tensor([[0.0, 0, 0], [1, 0, 0]])
    other = torch.tensor([[0.5, 0.3, -1], [0.5, 0.3, 1]])
    assert float(capsule_overlap(one, other, torch.tensor(0.5))) == pytest.approx(0.2, abs=1e-6)
    assert float(capsule_overlap(one, other, torch.tensor(0.2))) == 0


def test_weight_outside_the_feet_is_as_far_out_as_the_hull_is_away(body: ValidatedBody) -> None:
    posed = pose_body(body, rest(body, 3))
    soles = posed.T_world_joint[:, body.sole_joints] @ torch.nn.functional.pad(body.soles, (0, 1), value=1.0)[..., None]
    edge = float(soles[0, :, 0, 0].max())
    points = torch.tensor([[0.0, 0.05], [edge + 0.2, 0.05], [edge - 0.01, 0.05]], dtype=torch.float64)
    found = outside_support(body, posed, points)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.2, 0.0]).double(), atol=1e-6, rtol=0)


def test_a_steady_push_moves_the_weight_by_height_times_push_over_gravity(body: ValidatedBody) -> None:
    time = torch.arange(40, dtype=torch.float64) / 30
    push = torch.tensor([0.0, 0.0, 6.0], dtype=torch.float64)
    places = 0.5 * time[:, None] ** 2 * push
    torch.testing.assert_close(acceleration(places, 30.0), push.expand(40, 3), atol=1e-8, rtol=0)
    pose = replace(rest(body, 40), root=places)
    posed = pose_body(body, Motion(pose, 30.0))
    center = (posed.skin * body.masses[:, None]).sum(1)
    carried = center[:, [0, 2]] - center[:, 1:2] * push[[0, 2]] / GRAVITY
    expected = outside_support(body, posed, carried) / body.length
    assert float(expected.min()) > 0.2
    torch.testing.assert_close(balance(body, posed)[:, 0], expected, atol=1e-6, rtol=0)
    assert float(check(body, pose)["balance"].max()) == 0  # unrelated poses: nobody pushes


def test_in_the_air_nobody_owes_balance(body: ValidatedBody) -> None:
    time = torch.arange(30, dtype=torch.float64) / 30
    up = 1.0 + 3.0 * time - 0.5 * GRAVITY * time.square()
    root = torch.stack([torch.zeros_like(up), up, 4 * time.square()], 1)
    assert float(check(body, Motion(replace(rest(body, 30), root=root), 30.0))["balance"].max()) == 0


@pytest.mark.parametrize("row", VALIDATORS, ids=lambda row: row.name)
def test_gradients_agree_with_finite_differences(row) -> None:
    body = prepare(anatomy_of(reparent(tube_man(0.5)).asset), dtype=torch.float64)
    generator = torch.Generator().manual_seed(5)
    standing = row.name in ("ground", "balance")  # with its feet on the ground, and leaning
    turns = (0.1 if standing else 0.9) * torch.randn(6, len(body.skeleton), 3, generator=generator).double()
    turns[:, 0, 0] += 0.5 if standing else 0.0
    root = torch.tensor([0.0, -0.3, 0.0]).double() + 0.02 * torch.randn(6, 3, generator=generator).double()

    def total(turns: Tensor, root: Tensor) -> Tensor:
        motion = Motion(Pose(root, rotvec_to_quaternion(turns)), 3.0)
        return row.find(body, pose_body(body, motion)).square().sum()

    turns.requires_grad_()
    root.requires_grad_()
    found = torch.autograd.grad(total(turns, root), (turns, root), allow_unused=True)
    ways = [torch.randn(x.shape, generator=generator).double() for x in (turns, root)]
    slope = sum(float((g * w).sum()) for g, w in zip(found, ways, strict=True) if g is not None)
    step = 1e-6
    with torch.no_grad():
        there, back = (total(turns + s * step * ways[0], root + s * step * ways[1]) for s in (1, -1))
    assert abs(slope) > 1e-6
    assert slope == pytest.approx(float(there - back) / (2 * step), rel=2e-4)


@pytest.mark.parametrize("species", ["human", "fox", "spider"])
def test_a_walk_is_right_and_the_same_walk_with_shaken_joints_is_not(species: str) -> None:
    asset = make(species)
    work = reparent(asset)
    body = prepare(anatomy_of(work.asset))
    walk = to_reparented(work, reference_motion(asset, "walk", fps=24.0, seconds=1.0))
    assert findings(body, walk) == ()
    assert float(penalty(check(body, walk)).max()) == 0
    turn = 0.9 * torch.randn(*walk.pose.rotations.shape[:2], 3, generator=torch.Generator().manual_seed(0))
    pose = replace(walk.pose, rotations=quaternion_multiply(walk.pose.rotations, rotvec_to_quaternion(turn)))
    found = findings(body, replace(walk, pose=pose))
    assert {"limits", "twist", "self_contact"} <= {finding.name for finding in found}
    assert all(finding.joint in body.skeleton.names and 0 < finding.share <= 1 for finding in found)
    assert float(penalty(faults(body, pose_body(body, pose))).min()) > 1


def test_motion_without_a_skin_is_checked_by_its_joints(anatomy: Anatomy) -> None:
    none = torch.zeros(0, 3)
    bare = replace(
        anatomy.asset,
        mesh=Mesh(none, none.long(), none),
        weights=Weights(torch.zeros(0, 1).long(), torch.zeros(0, 1)),
    )
    body = prepare(anatomy_of(bare), dtype=torch.float64)
    sunk = rest(body)
    sunk.root[:, 1] = -0.05 - 0.2
    assert float(check(body, sunk)["ground"]) == pytest.approx(0.2 / body.length, rel=1e-6)
    assert float(check(body, sunk)["self_contact"]) == 0


def test_every_validator_has_a_name_of_its_own_a_sentence_and_a_tolerance() -> None:
    assert len({row.name for row in VALIDATORS}) == len(VALIDATORS)
    for row in VALIDATORS:
        assert row.sentence.endswith(".") and row.sentence[0].isupper() and row.tolerance > 0 and row.unit
        assert row.find.__name__ == row.name

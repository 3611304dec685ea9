"""Automatic rigging: bodies put together from capsules whose bones are known, and bad input."""

import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh

from jigdoll.asset.orientation import guess_frame
from jigdoll.errors import FileFormatError, JigdollError, RepairWarning, RigError
from jigdoll.kinematics import rest_transforms
from jigdoll.rig.autorig import AutoRig, autorig, find_curve, find_frame, find_skeleton
from jigdoll.rig.autorig.markers import read_markers, write_markers
from jigdoll.types import Mesh

Point = tuple[float, float, float]


def bare_mesh(shape: trimesh.Trimesh) -> Mesh:
    vertices = torch.tensor(np.asarray(shape.vertices), dtype=torch.float32)
    return Mesh(vertices, torch.tensor(np.asarray(shape.faces)), torch.full((len(vertices), 3), 0.5))


def capsules(*bones: tuple[Point, Point, float]) -> trimesh.Trimesh:
    """Overlapping closed pieces, as real meshes are: one capsule per bone (start, end, radius)."""
    parts = []
    for start, end, radius in bones:
        a, b = np.array(start, dtype=float), np.array(end, dtype=float)
        part = trimesh.creation.capsule(height=float(np.linalg.norm(b - a)), radius=radius, count=(12, 12))
        part.apply_transform(trimesh.geometry.align_vectors([0, 0, 1], (b - a) / np.linalg.norm(b - a)))
        lowest = a - (part.vertices[:, :3] @ ((b - a) / np.linalg.norm(b - a))).min() * (b - a) / np.linalg.norm(b - a)
        part.apply_translation(lowest - radius * (b - a) / np.linalg.norm(b - a))
        parts.append(part)
    return trimesh.util.concatenate(parts)


def both_sides(*bones: tuple[Point, Point, float]) -> list[tuple[Point, Point, float]]:
    flip = [((-a[0], a[1], a[2]), (-b[0], b[1], b[2]), r) for a, b, r in bones]
    return [*bones, *flip]


def leg(x: float, z: float) -> list[tuple[Point, Point, float]]:
    """A straight leg 0.6 m long with a foot that points ahead."""
    return both_sides(((x, 0.6, z), (x, 0.06, z), 0.05), ((x, 0.05, z), (x, 0.05, z + 0.14), 0.05))


DOG_BONES = [
    ((0, 0.65, -0.4), (0, 0.65, 0.4), 0.16),
    ((0, 0.7, 0.45), (0, 0.95, 0.62), 0.08),
    ((0, 0.95, 0.62), (0, 0.9, 0.85), 0.09),
    ((0, 0.72, -0.5), (0, 0.85, -0.95), 0.035),
    *leg(0.13, -0.38),
    *leg(0.13, 0.36),
]
MAN_BONES = [
    ((0, 0.9, 0), (0, 1.35, 0), 0.14),
    ((0, 1.4, 0), (0, 1.6, 0.0), 0.06),
    ((0, 1.65, 0.01), (0, 1.7, 0.01), 0.11),
    *both_sides(
        ((0.1, 0.85, 0), (0.12, 0.46, 0.02), 0.07),
        ((0.12, 0.46, 0.02), (0.12, 0.08, 0.0), 0.055),
        ((0.12, 0.05, -0.03), (0.12, 0.05, 0.18), 0.05),
        ((0.15, 1.38, 0), (0.45, 1.1, -0.02), 0.05),
        ((0.45, 1.1, -0.02), (0.68, 0.88, 0.06), 0.04),
    ),
]
DOG, MAN = capsules(*DOG_BONES), capsules(*MAN_BONES)


@pytest.fixture(scope="module")
def dog() -> AutoRig:
    return autorig(bare_mesh(DOG))


@pytest.fixture(scope="module")
def man() -> AutoRig:
    return autorig(bare_mesh(MAN))


def point(rig: AutoRig, name: str) -> np.ndarray:
    return rest_transforms(rig.skeleton)[rig.skeleton.index(name), :3, 3].numpy()


def kinds(rig: AutoRig) -> Counter[str]:
    return Counter(limb.kind for limb in rig.limbs if limb.kind != "spine")


def test_a_dog_of_capsules_has_four_legs_a_head_and_a_tail(dog: AutoRig) -> None:
    assert dog.plan.template == "quadruped"
    assert kinds(dog) == {"leg": 4, "head": 1, "tail": 1}


def test_a_man_of_capsules_has_two_legs_two_arms_and_a_head(man: AutoRig) -> None:
    assert man.plan.template == "biped"
    assert kinds(man) == {"leg": 2, "arm": 2, "head": 1}


def test_joints_of_the_dog_lie_where_its_capsules_begin_and_end(dog: AutoRig) -> None:
    # Truth is the axis of each capsule; 5 % of the body's 2 m is 0.1 m.
    truth = {
        "left_hind_hip": (0.13, 0.62, -0.38),
        "right_front_hip": (-0.13, 0.62, 0.36),
        "left_front_toe_tip": (0.13, 0.05, 0.52),
        "head": (0, 0.95, 0.62),
        "head_tip": (0, 0.9, 0.94),
        "tail_tip": (0, 0.85, -0.98),
        "pelvis": (0, 0.68, -0.4),
    }
    for name, place in truth.items():
        assert np.linalg.norm(point(dog, name) - place) < 0.1, name


def test_knees_and_elbows_of_the_man_lie_at_his_bends(man: AutoRig) -> None:
    for name, place in {
        "left_knee": (0.12, 0.46, 0.02),
        "right_ankle": (-0.12, 0.07, 0.0),
        "left_elbow": (0.45, 1.1, -0.02),
        "left_hand_tip": (0.70, 0.86, 0.07),
        "head_tip": (0, 1.8, 0.01),
    }.items():
        assert np.linalg.norm(point(man, name) - place) < 0.09, name


def test_bones_of_limbs_run_inside_the_flesh(dog: AutoRig, man: AutoRig) -> None:
    for rig, bones in ((dog, DOG_BONES), (man, MAN_BONES)):
        for limb in rig.limbs:
            if limb.kind in ("leg", "arm"):
                chain = np.stack([point(rig, rig.skeleton.names[j]) for j in limb.joints[:-1]])
                between = np.concatenate([np.linspace(a, b, 9) for a, b in pairwise(chain)])
                # A point is in a capsule where its distance from the axis is below the radius.
                inside = np.max([radius - from_segment(between, a, b) for a, b, radius in bones], axis=0)
                assert inside.min() > 0


def from_segment(points: np.ndarray, start: Point, end: Point) -> np.ndarray:
    a, bone = np.array(start), np.array(end) - np.array(start)
    share = np.clip((points - a) @ bone / (bone @ bone), 0, 1)
    return np.linalg.norm(points - a - share[:, None] * bone, axis=1)


def test_a_symmetric_body_gets_a_symmetric_skeleton(dog: AutoRig) -> None:
    for name in dog.skeleton.names:
        if name.startswith("left_"):
            other = point(dog, name.replace("left_", "right_"))
            np.testing.assert_allclose(point(dog, name) * (-1, 1, 1), other, atol=1e-5)


def test_in_the_middle_of_a_step_each_leg_keeps_its_own_joints() -> None:
    upper = [bone for bone in MAN_BONES if min(bone[0][1], bone[1][1]) > 0.86]
    step = [
        bone
        for x, swing in ((0.11, 0.35), (-0.11, -0.35))
        for bone in (
            ((x, 0.85, 0.0), (x, 0.09, swing), 0.06),
            ((x, 0.05, swing - 0.02), (x, 0.05, swing + 0.18), 0.05),
        )
    ]
    rig = autorig(bare_mesh(capsules(*upper, *step)), up=(0, 1, 0), forward=(0, 0, 1))
    assert kinds(rig)["leg"] == 2
    assert np.linalg.norm(point(rig, "left_toe_tip") - (0.11, 0.05, 0.55)) < 0.08
    assert np.linalg.norm(point(rig, "right_toe_tip") - (-0.11, 0.05, -0.15)) < 0.08
    for side, x, swing in (("left", 0.11, 0.35), ("right", -0.11, -0.35)):
        ankle = point(rig, f"{side}_ankle")
        assert from_segment(ankle[None], (x, 0.85, 0.0), (x, 0.09, swing))[0] < 0.06


def test_a_mesh_of_many_faces_is_decimated_and_gets_the_same_skeleton(dog: AutoRig) -> None:
    fine = DOG.subdivide().subdivide()
    assert len(fine.faces) > 50_000
    rig = autorig(bare_mesh(fine))
    assert rig.skeleton.names == dog.skeleton.names
    for name in dog.skeleton.names:
        assert np.linalg.norm(point(rig, name) - point(dog, name)) < 0.06, name


def test_the_rig_follows_the_mesh_when_the_mesh_is_turned_and_scaled(dog: AutoRig) -> None:
    # Z up, facing -Y, in centimetres: (x, y, z) -> 100 (x, -z, y).
    turn = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], dtype=float)
    shape = DOG.copy()
    shape.vertices = 100 * shape.vertices @ turn.T
    turned = autorig(bare_mesh(shape))
    np.testing.assert_allclose(turned.frame.up, [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(turned.frame.forward, [0, -1, 0], atol=1e-6)
    assert turned.skeleton.names == dog.skeleton.names
    for name in dog.skeleton.names:
        np.testing.assert_allclose(point(turned, name), 100 * turn @ point(dog, name), atol=3.0)


def test_the_steps_can_be_taken_one_by_one_and_corrected(dog: AutoRig) -> None:
    mesh = bare_mesh(DOG)
    backwards = find_frame(mesh, up=[0, 1, 0], forward=[0, 0, -1])
    np.testing.assert_allclose(backwards.forward, [0, 0, -1])
    solid, curve = find_curve(mesh, backwards)
    rig = find_skeleton(backwards, solid, curve, mesh=mesh, template="quadruped")
    # What was the tail is now in front: left and right, front and hind have changed places.
    assert point(rig, "left_front_toe")[0] < 0 and point(rig, "left_front_toe")[2] < 0


def test_a_number_of_joints_is_met_exactly_and_too_few_are_refused(dog: AutoRig) -> None:
    mesh = bare_mesh(DOG)
    parts = (dog.frame, dog.solid, dog.curve)
    least = len(find_skeleton(*parts, mesh=mesh, joints=24).skeleton)
    for count in (least, len(dog.skeleton), 50):
        rig = find_skeleton(*parts, mesh=mesh, joints=count)
        assert len(rig.skeleton) == count and least <= 24
        assert kinds(rig) == kinds(dog)
    with pytest.raises(RigError, match="too few"):
        find_skeleton(*parts, mesh=mesh, joints=5)


def test_a_marker_pins_its_joint_and_the_mirrored_one(dog: AutoRig) -> None:
    place = (0.2, 0.33, -0.31)
    rig = find_skeleton(dog.frame, dog.solid, dog.curve, mesh=bare_mesh(DOG), markers={"left_hind_knee": place})
    np.testing.assert_allclose(point(rig, "left_hind_knee"), place, atol=1e-6)
    np.testing.assert_allclose(point(rig, "right_hind_knee"), np.array(place) * (-1, 1, 1), atol=1e-3)
    np.testing.assert_allclose(point(rig, "left_hind_ankle"), point(dog, "left_hind_ankle"), atol=1e-6)
    with pytest.raises(RigError, match="no such joint"):
        find_skeleton(dog.frame, dog.solid, dog.curve, mesh=bare_mesh(DOG), markers={"left_wheel": place})


def test_markers_survive_a_file_and_bad_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "markers.json"
    write_markers(file, {"head": (0.0, 1.25, -0.5), "left_knee": (0.1, 0.2, 0.3)})
    assert read_markers(file) == {"head": (0.0, 1.25, -0.5), "left_knee": (0.1, 0.2, 0.3)}
    for content in ("[1, 2]", "{", '{"head": [1, 2]}', '{"head": [1, 2, NaN]}', '{"head": "up"}'):
        file.write_text(content)
        with pytest.raises(FileFormatError, match="markers"):
            read_markers(file)
    with pytest.raises(FileFormatError, match="no such file"):
        read_markers(tmp_path / "none.json")


def test_an_unknown_template_is_refused_with_the_known_ones(dog: AutoRig) -> None:
    with pytest.raises(RigError, match="'mermaid'; the templates are biped, bird"):
        find_skeleton(dog.frame, dog.solid, dog.curve, mesh=bare_mesh(DOG), template="mermaid")


@pytest.mark.parametrize("legs", [3, 4])
def test_six_and_eight_legs_are_counted(legs: int) -> None:
    bones = []
    for z in np.linspace(-0.22, 0.22, legs):
        bones += both_sides(
            ((0.05, 0.25, 0.5 * z), (0.3, 0.42, 1.6 * z), 0.022), ((0.3, 0.42, 1.6 * z), (0.5, 0.02, 2.4 * z), 0.022)
        )
    shape = capsules(((0, 0.25, -0.12), (0, 0.25, 0.15), 0.1), ((0, 0.28, -0.3), (0, 0.3, -0.5), 0.13), *bones)
    rig = autorig(bare_mesh(shape))
    assert kinds(rig)["leg"] == 2 * legs
    assert rig.plan.template == {3: "hexapod", 4: "octopod"}[legs]


def test_a_snake_has_no_limbs_but_a_head_and_a_tail() -> None:
    t = np.linspace(0, 1, 9)
    line = [(0.0, 0.1, float(2 * s)) for s in t]
    bones = [(a, b, 0.04 + 0.06 * s) for (a, b), s in zip(pairwise(line), t, strict=False)]
    rig = autorig(bare_mesh(capsules(*bones)), up=(0, 1, 0), forward=(0, 0, 1))
    assert rig.plan.template == "serpent"
    assert kinds(rig) == {"head": 1, "tail": 1}
    assert point(rig, "head_tip")[2] > 1.9 and point(rig, "tail_tip")[2] < 0.1


@pytest.mark.parametrize("name", ["sphere", "box"])
def test_a_shape_without_limbs_gets_a_generic_skeleton(name: str) -> None:
    shape = trimesh.creation.icosphere(3) if name == "sphere" else trimesh.creation.box((1, 1, 1))
    rig = autorig(bare_mesh(shape))
    assert rig.plan.template == "generic"
    assert all(joint == "pelvis" or joint.startswith("limb_") for joint in rig.skeleton.names)


def test_an_open_mesh_in_pieces_is_rigged_all_the_same(dog: AutoRig) -> None:
    # Every eleventh face is gone: nothing is watertight, and the outside can leak in.
    torn = trimesh.Trimesh(DOG.vertices, DOG.faces[np.arange(len(DOG.faces)) % 11 != 0], process=False)
    rig = autorig(bare_mesh(torn))
    assert kinds(rig) == kinds(dog)
    for name in dog.skeleton.names:
        if "hip" in name or "toe" in name:
            assert np.linalg.norm(point(rig, name) - point(dog, name)) < 0.12, name


def test_a_loose_part_far_away_is_tied_to_the_body_with_a_warning() -> None:
    far = trimesh.creation.icosphere(2, radius=0.12)
    far.apply_translation((0, 1.6, 0))
    with pytest.warns(RepairWarning, match="tied to the body"):
        autorig(bare_mesh(trimesh.util.concatenate([DOG, far])))


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (np.zeros((0, 3)), np.zeros((0, 3), int), "no faces"),
        (np.random.default_rng(0).random((50, 3)), np.zeros((0, 3), int), "point cloud"),
        (np.eye(3), [[0, 1, 2]], "enclose nothing"),
        (np.full((4, 3), np.nan), [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], "NaN"),
        (np.eye(3), [[0, 1, 7]] * 4, "does not have"),
        (np.zeros((4, 3)), [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], "flat"),
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]], [[0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 3]], "flat"),
    ],
)
def test_what_has_no_inside_is_refused(vertices: np.ndarray, faces: np.ndarray, message: str) -> None:
    points = torch.tensor(np.asarray(vertices), dtype=torch.float32)
    mesh = Mesh(points, torch.tensor(np.asarray(faces), dtype=torch.long), torch.zeros(len(points), 3))
    with pytest.raises(RigError, match=message):
        autorig(mesh)


def test_forward_along_up_is_refused() -> None:
    mesh = bare_mesh(MAN)
    with pytest.raises(JigdollError, match="right angle"):
        guess_frame(mesh.vertices, mesh.faces, up=[0, 1, 0], forward=[0, 1, 0])


def test_joint_names_tell_forward_where_the_shape_does_not() -> None:
    # A box is the same from all sides; with +Y up and the left hand at -Z it faces left x up = +X.
    box = bare_mesh(trimesh.creation.box((1, 1, 1)))
    names = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
    places = torch.tensor([[0, 0.5, 0], [0, 0, -0.5], [0, 0, 0.5], [0, -0.5, -0.1], [0, -0.5, 0.1]])
    guess = guess_frame(box.vertices, box.faces, joint_names=names, joint_positions=places)
    np.testing.assert_allclose(guess.up, [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(guess.forward, [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(guess.left, [0, 0, -1], atol=1e-6)


def test_progress_is_told_in_words_and_ends_at_one() -> None:
    told: list[tuple[str, float]] = []
    autorig(bare_mesh(MAN), progress=lambda share, step: told.append((step, share)))
    assert told[-1][1] == 1.0 and "2 legs" in told[-1][0]
    assert [share for _, share in told] == sorted(share for _, share in told)


@pytest.mark.parametrize(
    ("file", "want"),
    [
        ("unrigged/mesh2motion/model-horse.glb", {"leg": 4, "head": 1, "tail": 1}),
        ("unrigged/mesh2motion/model-bird.glb", {"leg": 2, "wing": 2, "head": 1, "tail": 1}),
        ("unrigged/odedstein/spot_low_resolution.obj", {"leg": 4, "head": 1, "tail": 1}),
        ("unrigged/odedstein/penguin.obj", {"leg": 2, "wing": 2, "head": 1, "tail": 1}),
    ],
)
def test_real_animals_have_the_right_limbs(assets_dir: Path, file: str, want: dict[str, int]) -> None:
    from jigdoll.asset.load import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        rig = autorig(load(assets_dir / file).mesh)
    # Flippers may pass for arms.
    found = Counter("wing" if limb.kind == "arm" else limb.kind for limb in rig.limbs if limb.kind != "spine")
    assert found == want
    assert rig.frame.up[1] > 0.999 and rig.frame.forward[2] > 0.999


def test_leg_joints_of_the_horse_lie_near_the_artists(assets_dir: Path) -> None:
    from jigdoll.asset.load import load

    mesh = load(assets_dir / "unrigged/mesh2motion/model-horse.glb").mesh
    artist = load(assets_dir / "rigged/mesh2motion/horse-animations.glb")
    rig = autorig(mesh)
    # The same vertices in the same order: scale and shift bring the artist's joints to the bare mesh.
    a, b = mesh.vertices, artist.mesh.vertices
    joints = rest_transforms(artist.skeleton)[:, :3, 3]
    joints = (joints - b.mean(0)) * ((a - a.mean(0)).norm() / (b - b.mean(0)).norm()) + a.mean(0)
    legs = [
        j
        for j, name in enumerate(artist.skeleton.names)
        if any(part in name for part in ("leg_upper", "leg_lower", "leg_ankle", "leg_foot", "humerus"))
    ]
    assert len(legs) == 18
    mine = rest_transforms(rig.skeleton)[:, :3, 3]
    near = torch.cdist(joints[legs], mine).min(1).values / (a.max(0).values - a.min(0).values).max()
    assert float(near.mean()) < 0.04


def test_a_rig_is_described_in_one_line(dog: AutoRig) -> None:
    assert dog.summary == f"quadruped: 4 legs, a head, a tail; {len(dog.skeleton)} joints"

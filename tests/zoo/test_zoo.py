"""The built-in characters: closed surfaces, sound rigs, weights that bend well."""

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import trimesh

from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, rest_pose, rest_transforms
from jigdoll.math.rotations import compound_to_quaternion
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Pose, RiggedAsset, Skeleton
from jigdoll.zoo.implicit import Shape, distance, field_at
from jigdoll.zoo.polygonize import Lens, polygonize
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import species_named
from jigdoll.zoo.variation import Build, apply_build, sample_build

every_species = pytest.mark.parametrize("name", zoo.SPECIES)


@cache
def character(name: str) -> RiggedAsset:
    return zoo.make(name)


def surface(asset: RiggedAsset, vertices: torch.Tensor | None = None) -> trimesh.Trimesh:
    points = asset.mesh.vertices if vertices is None else vertices
    return trimesh.Trimesh(points.numpy(), asset.mesh.faces.numpy(), process=False)


def bent(skeleton: Skeleton, joints: list[int], angle: float) -> Pose:
    angles = torch.zeros(len(skeleton), 3)
    angles[joints, 0] = angle
    return Pose(rest_pose(skeleton).root, compound_to_quaternion(angles, skeleton.axes))


def test_there_are_29_species_with_distinct_names() -> None:
    assert len(zoo.SPECIES) == len(set(zoo.SPECIES)) == 29
    assert all(name.replace("_", "").isalpha() and name == name.lower() for name in zoo.SPECIES)


@every_species
def test_the_surface_is_one_closed_piece_with_its_outside_out(name: str) -> None:
    mesh = surface(character(name))
    assert mesh.is_watertight and mesh.is_winding_consistent and mesh.body_count == 1
    assert mesh.volume > 0
    assert 3000 <= len(mesh.vertices) <= 15000


@every_species
def test_triangles_are_well_shaped(name: str) -> None:
    smallest = np.degrees(surface(character(name)).face_angles.min(axis=1))
    assert np.mean(smallest < 15) < 0.02
    assert np.median(smallest) > 35


@every_species
def test_it_stands_on_the_ground_with_every_foot(name: str) -> None:
    asset = character(name)
    heights = asset.mesh.vertices[:, 1]
    assert float(heights.min()) == pytest.approx(0.0, abs=1e-4 * float(heights.max()))
    dense = asset.weights.dense(len(asset.skeleton))
    for joint, joint_name in enumerate(asset.skeleton.names):
        if joint_name.endswith("_toe"):
            assert float(heights[dense[:, joint] > 0.5].min()) < 0.003 * float(heights.max()), joint_name


@every_species
def test_weights_are_sparse_and_sum_to_one(name: str) -> None:
    asset = character(name)
    values = asset.weights.values
    assert values.shape[1] <= 4
    assert bool((values >= 0).all())
    torch.testing.assert_close(values.sum(1), torch.ones(len(values)), atol=1e-6, rtol=0)


@every_species
def test_tips_carry_no_weight_and_every_other_joint_some(name: str) -> None:
    asset = character(name)
    carried = asset.weights.dense(len(asset.skeleton)).sum(0)
    for joint, joint_name in enumerate(asset.skeleton.names):
        assert (float(carried[joint]) > 1) == (not joint_name.endswith("_tip")), joint_name


@every_species
def test_no_limb_moves_the_other_side(name: str) -> None:
    asset = character(name)
    dense = asset.weights.dense(len(asset.skeleton))
    x = asset.mesh.vertices[:, 0]
    across = 0.02 * float(x.max() - x.min())
    left = [i for i, joint in enumerate(asset.skeleton.names) if joint.startswith("left_")]
    right = [i for i, joint in enumerate(asset.skeleton.names) if joint.startswith("right_")]
    assert float(dense[x < -across][:, left].max()) < 0.01
    assert float(dense[x > across][:, right].max()) < 0.01


@every_species
def test_the_skeleton_mirrors_left_and_right(name: str) -> None:
    skeleton = build_skeleton(species_named(name))
    points = rest_transforms(skeleton)[:, :3, 3]
    flip = torch.tensor([-1.0, 1.0, 1.0])
    for joint, joint_name in enumerate(skeleton.names):
        twin = skeleton.index(joint_name.replace("left_", "right_")) if joint_name.startswith("left_") else None
        if twin is None:
            if not joint_name.startswith("right_"):
                assert float(points[joint, 0]) == 0.0
            continue
        torch.testing.assert_close(points[twin], points[joint] * flip, atol=1e-6, rtol=0)
        # A rotation about axis a mirrors to one about -a reflected: bends keep their angle, the others reverse it.
        torch.testing.assert_close(skeleton.axes[twin][:, 0], -skeleton.axes[joint][:, 0] * flip, atol=1e-5, rtol=0)
        torch.testing.assert_close(skeleton.axes[twin][:, 2], skeleton.axes[joint][:, 2] * flip, atol=1e-5, rtol=0)
        torch.testing.assert_close(skeleton.limits[twin, 0], skeleton.limits[joint, 0])
        torch.testing.assert_close(skeleton.limits[twin, 1:], -skeleton.limits[joint, 1:].flip(-1))


@every_species
def test_compound_axes_are_rotations_and_limits_contain_rest(name: str) -> None:
    skeleton = build_skeleton(species_named(name))
    identity = torch.eye(3).expand(len(skeleton), 3, 3)
    torch.testing.assert_close(skeleton.axes.transpose(1, 2) @ skeleton.axes, identity, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.linalg.det(skeleton.axes), torch.ones(len(skeleton)), atol=1e-5, rtol=0)
    assert bool((skeleton.limits[..., 0] <= 0).all()) and bool((skeleton.limits[..., 1] >= 0).all())
    assert torch.equal(skeleton.T_parent_joint[:, :3, :3], identity)


@every_species
def test_a_positive_bend_folds_knees_and_elbows_and_their_limit_stops_them_straight(name: str) -> None:
    skeleton = build_skeleton(species_named(name))
    points = rest_transforms(skeleton)[:, :3, 3]
    for joint, joint_name in enumerate(skeleton.names):
        if not joint_name.endswith(("_knee", "_elbow")):
            continue
        parent, child = skeleton.parents[joint], skeleton.parents.index(joint)
        rest = torch.linalg.norm(points[child] - points[parent])
        folded = forward(skeleton, bent(skeleton, [joint], 0.4))[:, :3, 3]
        assert float(torch.linalg.norm(folded[child] - folded[parent])) < float(rest), joint_name
        straight = forward(skeleton, bent(skeleton, [joint], float(skeleton.limits[joint, 0, 0])))[:, :3, 3]
        upper, lower = straight[joint] - straight[parent], straight[child] - straight[joint]
        cosine = torch.dot(upper, lower) / (upper.norm() * lower.norm())
        assert float(cosine) > 0.999, joint_name


@every_species
def test_bending_every_knee_by_45_degrees_keeps_the_volume(name: str) -> None:
    asset = character(name)
    knees = [i for i, joint in enumerate(asset.skeleton.names) if joint.endswith("_knee")]
    moved = deform_mesh(asset, bent(asset.skeleton, knees, np.pi / 4))
    assert surface(asset, moved).volume == pytest.approx(surface(asset).volume, rel=0.10)


@every_species
def test_a_bent_knee_does_not_collapse(name: str) -> None:
    # The part of the leg around the knee (one knee's share of the mesh) keeps its area, and so its girth.
    asset = character(name)
    knee = next(i for i, joint in enumerate(asset.skeleton.names) if joint.endswith("_knee"))
    near = asset.weights.dense(len(asset.skeleton))[:, knee] > 0.05
    faces = asset.mesh.faces[near[asset.mesh.faces].all(1)]
    moved = deform_mesh(asset, bent(asset.skeleton, [knee], np.pi / 4))

    def area(vertices: torch.Tensor) -> float:
        a, b, c = (vertices[faces[:, i]] for i in range(3))
        return float(torch.linalg.norm(torch.linalg.cross(b - a, c - a), dim=-1).sum() / 2)

    assert area(moved) == pytest.approx(area(asset.mesh.vertices), rel=0.15)


@every_species
def test_colours_are_painted_within_range(name: str) -> None:
    colors = character(name).mesh.colors
    assert float(colors.min()) >= 0 and float(colors.max()) <= 1
    assert float(colors.std(0).max()) > 0.05


def test_the_same_seed_makes_the_same_character_and_another_seed_another() -> None:
    first, again, other = (zoo.make("rabbit", seed=seed) for seed in (7, 7, 8))
    assert torch.equal(first.mesh.vertices, again.mesh.vertices)
    assert torch.equal(first.mesh.colors, again.mesh.colors)
    assert torch.equal(first.weights.values, again.weights.values)
    assert torch.equal(character("rabbit").mesh.vertices, zoo.make("rabbit").mesh.vertices)
    assert not torch.equal(first.skeleton.T_parent_joint, other.skeleton.T_parent_joint)
    assert first.skeleton.names == other.skeleton.names == character("rabbit").skeleton.names
    difference = (first.mesh.colors.mean(0) - other.mesh.colors.mean(0)).abs().max()
    assert float(difference) > 0.01


def test_a_build_of_ones_changes_nothing() -> None:
    for name in zoo.SPECIES:
        plan, same = species_named(name), apply_build(species_named(name), Build())
        torch.testing.assert_close(
            build_skeleton(same).T_parent_joint, build_skeleton(plan).T_parent_joint, atol=1e-6, rtol=0
        )


def test_longer_legs_raise_the_body_by_their_growth() -> None:
    plan = species_named("human")
    taller = apply_build(plan, Build(leg_length=1.2))
    # The hip at height y rises by 0.2 y, and everything above it rises with it.
    rise = 0.2 * plan.legs[0][0][1]
    assert taller.spine[0][0] - plan.spine[0][0] == pytest.approx(rise)
    assert taller.neck[-1][0] - plan.neck[-1][0] == pytest.approx(rise)
    assert taller.legs[0][3][1] == plan.legs[0][3][1]


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_random_creatures_are_sound(family: str) -> None:
    asset = zoo.random_creature(torch.Generator().manual_seed(3), family=family)
    mesh = surface(asset)
    assert mesh.is_watertight and mesh.body_count == 1 and mesh.volume > 0
    assert species_named(asset.name).family == family
    assert bool((asset.skeleton.limits[..., 0] <= 0).all()) and bool((asset.skeleton.limits[..., 1] >= 0).all())
    assert float(asset.mesh.vertices[:, 1].min()) == pytest.approx(0.0, abs=0.01 * float(mesh.extents[1]))
    # However thin a leg and coarse the grid, no foot is lost.
    carried = asset.weights.dense(len(asset.skeleton)).sum(0)
    assert all(float(carried[i]) > 0.5 for i, name in enumerate(asset.skeleton.names) if name.endswith("_toe"))


def test_random_creatures_differ_widely_and_repeat_by_seed() -> None:
    def heights(seed: int) -> list[float]:
        generator = torch.Generator().manual_seed(seed)
        builds = [sample_build(generator, spread=2.5) for _ in range(50)]
        return [build.leg_length for build in builds]

    assert heights(1) == heights(1) != heights(2)
    assert max(heights(1)) / min(heights(1)) > 1.4
    one, two = (zoo.random_creature(torch.Generator().manual_seed(5)) for _ in range(2))
    assert one.name == two.name and torch.equal(one.mesh.vertices, two.mesh.vertices)


def test_an_unknown_species_is_refused_with_close_names() -> None:
    with pytest.raises(JigdollError, match="fox"):
        zoo.make("foks")
    with pytest.raises(JigdollError, match="t_rex"):
        zoo.make("T-Rex")
    with pytest.raises(JigdollError, match="quadruped"):
        zoo.random_creature(torch.Generator(), family="fish")


def test_listing_the_zoo_imports_no_numerics() -> None:
    code = (
        "import sys, jigdoll.zoo as z; z.SPECIES; print([m for m in ('skimage', 'scipy', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def capsule(a: tuple[float, float, float], length: float, radii: tuple[float, float]) -> Shape:
    return Shape("cone", np.array(a), np.eye(3), np.ones(3), length, radii, 0.0, ("head",), "coat")


def test_the_distance_to_a_rounded_cone_is_exact() -> None:
    # The surface of revolution of the lens between spheres r1 at 0 and r2 at L is the envelope of all spheres between.
    shape = capsule((0.0, 0.0, 0.0), 1.0, (0.4, 0.1))
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.5, 2.0, (300, 3))
    along = np.linspace(0, 1, 20001)
    reach = np.hypot(np.hypot(points[:, 0], points[:, 1])[:, None], points[:, 2:] - along)
    outside = (reach - (0.4 - 0.3 * along)).min(1)
    np.testing.assert_allclose(distance(shape, points), outside, atol=1e-6)


def test_a_polygonised_ball_has_the_volume_of_a_ball() -> None:
    shape = capsule((0.0, 1.0, 0.0), 0.0, (0.5, 0.5))
    lens = Lens(np.array([0.0, 1.2, 0.4]), 0.4, 0.5)
    points, faces, normals = polygonize([shape], lens, vertices=4000)
    mesh = trimesh.Trimesh(points, faces, process=False)
    assert mesh.is_watertight
    # V = 4/3 pi r^3, and every vertex lies on the sphere with the radius as its normal.
    assert mesh.volume == pytest.approx(4 / 3 * np.pi * 0.5**3, rel=0.005)
    np.testing.assert_allclose(np.linalg.norm(points - [0, 1, 0], axis=1), 0.5, atol=1e-4)
    np.testing.assert_allclose(normals, (points - [0, 1, 0]) / 0.5, atol=0.02)


def test_a_lens_shrinks_cells_at_its_centre_and_leaves_those_far_away() -> None:
    lens = Lens(np.array([0.0, 1.0, 0.0]), 0.5, 0.4)
    near = np.array([[0.0, 1.0 + 1e-4, 0.0]])
    np.testing.assert_allclose(lens.to_world(near), [[0.0, 1.0 + 0.4e-4, 0.0]], atol=1e-8)
    far = np.array([[0.0, 50.0, 0.0], [0.0, 51.0, 0.0]])
    np.testing.assert_allclose(np.diff(lens.to_world(far), axis=0), [[0.0, 1.0, 0.0]], atol=1e-6)


def test_a_carving_shape_leaves_nothing_inside_itself() -> None:
    body = capsule((0.0, 1.0, 0.0), 0.0, (0.5, 0.5))
    hole = replace(capsule((0.0, 1.5, 0.0), 0.0, (0.2, 0.2)), carve=True)
    points = np.array([[0.0, 1.4, 0.0], [0.0, 1.0, 0.0], [0.0, 1.29, 0.0]])
    np.testing.assert_allclose(field_at([body, hole], points), [0.1, -0.3, -0.01], atol=1e-6)

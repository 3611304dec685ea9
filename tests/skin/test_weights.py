"""Heat weights on shapes whose answer is known, on dirty meshes, and on input that must be refused."""

import numpy as np
import pytest
import torch
import trimesh
from torch import Tensor

from jigdoll.asset.load import load
from jigdoll.errors import RepairWarning, RigError
from jigdoll.kinematics import make_skeleton
from jigdoll.math.transforms import translation
from jigdoll.skin.rays import Rays
from jigdoll.skin.surface import surface_of
from jigdoll.skin.weights import PAPER, REFINED, HeatOptions, heat_weights, prune, solve_spd
from jigdoll.types import Mesh, Skeleton, Weights


def mesh_of(vertices: np.ndarray, faces: np.ndarray) -> Mesh:
    v = torch.tensor(np.asarray(vertices), dtype=torch.float32)
    return Mesh(v, torch.tensor(np.asarray(faces), dtype=torch.int64), torch.full((len(v), 3), 0.5))


def tube(*, sections: int = 24, rings: int = 41, length: float = 2.0, radius: float = 0.2) -> Mesh:
    """A closed cylinder along +X from x = 0."""
    x, angle = np.linspace(0, length, rings), np.arange(sections) * 2 * np.pi / sections
    side = np.stack(
        [np.repeat(x, sections), radius * np.tile(np.cos(angle), rings), radius * np.tile(np.sin(angle), rings)], 1
    )
    ring, spoke = np.meshgrid(np.arange(rings - 1), np.arange(sections), indexing="ij")
    a, b = ring * sections + spoke, ring * sections + (spoke + 1) % sections
    quads = np.stack([a, b, b + sections, a, b + sections, a + sections], -1).reshape(-1, 3)
    spokes, last = np.arange(sections), len(side) - sections
    caps = [np.stack([np.full(sections, len(side)), np.roll(spokes, -1), spokes], 1)]
    caps.append(np.stack([np.full(sections, len(side) + 1), last + spokes, last + np.roll(spokes, -1)], 1))
    vertices = np.concatenate([side, [[0, 0, 0], [length, 0, 0]]])
    mesh = trimesh.Trimesh(vertices, np.concatenate([quads, *caps]), process=False)
    return mesh_of(mesh.vertices, mesh.faces if mesh.volume > 0 else mesh.faces[:, ::-1])


def chain(*places: tuple[float, float, float]) -> Skeleton:
    """Joints one after the other at world places."""
    at = torch.tensor(places)
    steps = torch.cat([at[:1], at[1:] - at[:-1]])
    return make_skeleton(tuple(f"joint_{i}" for i in range(len(at))), tuple(range(-1, len(at) - 1)), translation(steps))


ARM = chain((0.1, 0, 0), (1.0, 0, 0), (1.9, 0, 0))


def rows_sum_to_one(weights: Weights) -> bool:
    total = weights.values.sum(1)
    return bool((total - 1).abs().max() < 1e-5) and bool((weights.values >= 0).all())


def dense(weights: Weights, joints: int = 3) -> Tensor:
    return weights.dense(joints)


@pytest.mark.parametrize("options", [PAPER, REFINED, HeatOptions(next_visible=True)])
def test_each_half_of_a_tube_follows_its_own_bone_and_the_middle_both(options):
    mesh = tube()
    got = dense(heat_weights(mesh, ARM, options=options))
    x = mesh.vertices[:, 0]
    assert bool((got[x < 0.7, 0] > 0.95).all()) and bool((got[x > 1.3, 1] > 0.95).all())
    torch.testing.assert_close(got[(x - 1).abs() < 1e-3, 0], torch.full((24,), 0.5), atol=0.02, rtol=0)
    assert float(got[:, 2].abs().max()) == 0  # the tip joint moves nothing


def test_heat_falls_off_along_a_thin_tube_as_the_equation_says():
    # On a thin tube with d = r everywhere, -w'' + (c / r^2) w = (c / r^2) p with a step p at x = 1 has the solution
    # w = 1 - exp(-k |x - 1|) / 2 on the bone's own side, with k = sqrt(c) / r.
    radius, heat = 0.1, 3.0
    mesh = tube(radius=radius, rings=201, sections=16)
    got = dense(heat_weights(mesh, ARM, options=HeatOptions(heat=heat)))
    x = mesh.vertices[:, 0]
    side = (x > 0.3) & (x < 1.0)
    expected = 1 - 0.5 * torch.exp(-(heat**0.5) / radius * (1 - x[side]))
    # The ring at the joint is shared, the cotangents see a 16-gon, weights below a thousandth are pruned.
    assert float((got[side, 0] - expected).abs().max()) < 0.02


def test_weights_are_mirrored_on_a_mirrored_character():
    sphere = trimesh.creation.icosphere(subdivisions=3)
    mesh = mesh_of(sphere.vertices, sphere.faces)
    side = make_skeleton(
        ("root", "a", "a_tip", "b", "b_tip"),
        (-1, 0, 1, 0, 3),
        translation(torch.tensor([[0.0, 0, 0], [0.3, 0, 0], [0.3, 0, 0], [-0.3, 0, 0], [-0.3, 0, 0]])),
    )
    got = dense(heat_weights(mesh, side), 5)
    mirrored = torch.cdist(mesh.vertices * torch.tensor([-1.0, 1, 1]), mesh.vertices).argmin(1)
    torch.testing.assert_close(got[mirrored][:, [0, 3, 4, 1, 2]], got, atol=2e-3, rtol=0)


def test_a_leg_does_not_follow_the_bone_of_the_other_leg_through_the_air():
    # Two parallel legs with a hip bar; each leg's inner side is nearer to the other leg's surface than to its own foot.
    bar = trimesh.creation.box((0.9, 0.2, 0.2), trimesh.transformations.translation_matrix((0.0, 1.0, 0)))
    bar = bar.subdivide_to_size(0.08)
    left = trimesh.creation.box((0.2, 1.0, 0.2), trimesh.transformations.translation_matrix((0.15, 0.4, 0)))
    left = left.subdivide_to_size(0.08)
    right = left.copy()
    right.apply_translation((-0.3, 0, 0))
    both = trimesh.util.concatenate([bar, left, right])
    skeleton = make_skeleton(
        ("pelvis", "left_hip", "left_foot", "right_hip", "right_foot"),
        (-1, 0, 1, 0, 3),
        translation(torch.tensor([[0.0, 1.0, 0], [0.15, 0, 0], [0, -1.0, 0], [-0.15, 0, 0], [0, -1.0, 0]])),
    )
    got = dense(heat_weights(mesh_of(both.vertices, both.faces), skeleton), 5)
    low = torch.tensor(both.vertices[:, 1] < 0.5)
    on_left = torch.tensor(both.vertices[:, 0] > 0)
    assert float(got[low & on_left, 3].max()) == 0
    assert float(got[low & ~on_left, 1].max()) == 0
    assert float(got[low & on_left, 1].min()) > 0.9


def test_seams_are_welded_and_both_sides_get_the_same_weights():
    mesh = tube()
    split = mesh.vertices[mesh.faces.flatten()]
    faces = torch.arange(len(split)).reshape(-1, 3)
    torn = heat_weights(Mesh(split, faces, torch.ones(len(split), 3)), ARM)
    whole = heat_weights(mesh, ARM)
    torch.testing.assert_close(dense(torn), dense(whole)[mesh.faces.flatten()], atol=1e-5, rtol=0)


def test_degenerate_and_repeated_faces_and_loose_vertices_are_named_and_change_nothing():
    mesh = tube()
    loose = torch.tensor([[0.2, 0.0, 0.25]])
    faces = torch.cat([mesh.faces, torch.tensor([[3, 3, 5], [4, 5, 4]]), mesh.faces[:7].roll(1, 1)])
    vertices = torch.cat([mesh.vertices, loose])
    dirty = Mesh(vertices, faces, torch.ones(len(vertices), 3))
    with pytest.warns(RepairWarning, match="2 faces without area.*7 faces that repeat.*1 vertices without a face"):
        got = heat_weights(dirty, ARM)
    torch.testing.assert_close(dense(got)[:-1], dense(heat_weights(mesh, ARM)), atol=1e-5, rtol=0)
    assert float(dense(got)[-1, 0]) > 0.99


def test_open_borders_and_non_manifold_edges_are_accepted():
    mesh = tube()
    holes = mesh.faces[torch.arange(len(mesh.faces)) % 17 != 0]
    fin = torch.tensor([[5 * 24, 6 * 24, len(mesh.vertices)]])  # a third face on an edge
    vertices = torch.cat([mesh.vertices, torch.tensor([[0.27, 0.4, 0.0]])])
    got = dense(heat_weights(Mesh(vertices, torch.cat([holes, fin]), torch.ones(len(vertices), 3)), ARM))
    x = vertices[:, 0]
    assert bool((got[x < 0.7, 0] > 0.9).all()) and bool((got[x > 1.3, 1] > 0.9).all())


def test_a_part_that_sees_no_bone_follows_its_nearest_one():
    mesh = tube()
    ball = trimesh.creation.icosphere(subdivisions=1, radius=0.05)
    vertices = torch.cat([mesh.vertices, torch.tensor(ball.vertices + np.array([1.6, 0.5, 0.0]), dtype=torch.float32)])
    faces = torch.cat([mesh.faces, torch.tensor(ball.faces) + len(mesh.vertices)])
    with pytest.warns(RepairWarning, match="1 of 2 parts see no bone"):
        got = heat_weights(Mesh(vertices, faces, torch.ones(len(vertices), 3)), ARM)
    torch.testing.assert_close(dense(got)[len(mesh.vertices) :, 1], torch.ones(len(ball.vertices)))


def test_faces_that_point_inwards_are_turned_and_named():
    mesh = tube()
    with pytest.warns(RepairWarning, match="point inwards"):
        got = heat_weights(Mesh(mesh.vertices, mesh.faces.flip(1), mesh.colors), ARM)
    torch.testing.assert_close(dense(got), dense(heat_weights(mesh, ARM)), atol=1e-5, rtol=0)


def test_a_fine_mesh_is_weighed_on_a_coarse_copy_with_nearly_the_same_result():
    mesh = tube(sections=48, rings=201)
    fine = dense(heat_weights(mesh, ARM))
    coarse = dense(heat_weights(mesh, ARM, options=HeatOptions(max_faces=3000)))
    assert float((fine - coarse).abs().sum(1).mean()) < 0.02
    assert coarse.shape == fine.shape


def test_joints_outside_the_mesh_still_give_every_vertex_a_weight():
    outside = chain((0.1, 0.26, 0), (1.0, 0.26, 0), (1.9, 0.26, 0))
    assert rows_sum_to_one(heat_weights(tube(), outside))
    got = dense(heat_weights(tube(), outside, options=REFINED))
    x = tube().vertices[:, 0]
    assert bool((got[x < 0.5, 0] > 0.9).all()) and bool((got[x > 1.5, 1] > 0.9).all())


def test_a_leaf_with_flesh_beyond_it_gets_a_bone_only_if_asked():
    neck = chain((0.1, 0, 0), (0.7, 0, 0), (1.2, 0, 0))
    tip = dense(heat_weights(tube(), neck))
    leaf = dense(heat_weights(tube(), neck, options=HeatOptions(leaf_bones=True)))
    end = tube().vertices[:, 0] > 1.6
    assert float(tip[:, 2].max()) == 0
    assert bool((leaf[end, 2] > 0.95).all())


def test_a_leaf_that_is_called_a_tip_carries_nothing_unless_it_may():
    neck = chain((0.1, 0, 0), (0.7, 0, 0), (1.2, 0, 0))
    named = make_skeleton(("neck", "head", "head_tip"), neck.parents, neck.T_parent_joint)
    options = HeatOptions(leaf_bones=True)
    assert float(dense(heat_weights(tube(), named, options=options))[:, 2].max()) == 0
    allowed = dense(heat_weights(tube(), named, options=options, carriers=(True, True, True)))
    assert bool((allowed[tube().vertices[:, 0] > 1.6, 2] > 0.95).all())


def test_joints_that_may_not_carry_weight_carry_none():
    got = dense(heat_weights(tube(), ARM, carriers=(False, True, True)))
    assert float(got[:, 0].max()) == 0
    with pytest.raises(RigError, match="carriers"):
        heat_weights(tube(), ARM, carriers=(True,))


def test_a_single_joint_carries_everything():
    got = heat_weights(tube(), chain((1.0, 0, 0)))
    torch.testing.assert_close(got.dense(1), torch.ones(len(tube().vertices), 1))


def test_pruning_keeps_the_strongest_and_sums_to_one():
    raw = Weights(torch.tensor([[4, 2, 7, 1]]), torch.tensor([[0.3, 0.5, 0.1995, 0.0005]]))
    got = prune(raw, max_influences=3)
    torch.testing.assert_close(got.dense(8)[0, [2, 4, 7]], torch.tensor([0.5, 0.3, 0.1995]) / 0.9995)
    assert prune(raw, max_influences=8).values.shape == (1, 3)  # the last is below the least
    with pytest.raises(RigError, match="at least one influence"):
        prune(raw, max_influences=0)


def test_influences_are_limited_and_rows_sum_to_one():
    sphere = trimesh.creation.icosphere(subdivisions=2)
    tips = [(0.5, 0, 0), (-0.5, 0, 0), (0, 0.5, 0), (0, -0.5, 0), (0, 0, 0.5), (0, 0, -0.5)]
    names, parents, steps = ["root"], [-1], [(0.0, 0.0, 0.0)]
    for i, tip in enumerate(tips):
        names += [f"limb_{i}", f"limb_{i}_tip"]
        parents += [0, len(names) - 2]
        steps += [tuple(0.2 * t for t in tip), tuple(0.8 * t for t in tip)]
    skeleton = make_skeleton(tuple(names), tuple(parents), translation(torch.tensor(steps)))
    got = heat_weights(
        mesh_of(sphere.vertices, sphere.faces), skeleton, options=HeatOptions(heat=0.1), max_influences=3
    )
    assert got.values.shape[1] == 3
    assert rows_sum_to_one(got)


def test_the_same_input_gives_the_same_bits():
    a, b = heat_weights(tube(), ARM, options=REFINED), heat_weights(tube(), ARM, options=REFINED)
    assert torch.equal(a.values, b.values) and torch.equal(a.joints, b.joints)


@pytest.mark.parametrize(
    "vertices, faces, message",
    [
        (np.zeros((0, 3)), np.zeros((0, 3)), "mesh is empty"),
        (np.random.default_rng(0).normal(size=(9, 3)), np.zeros((0, 3)), "cloud of 9 points"),
        (np.full((3, 3), np.nan), [[0, 1, 2]], "3 of 3 vertices are not finite"),
        (np.zeros((3, 3)), [[0, 1, 2]], "no face of the mesh has an area"),
        (np.eye(3), [[0, 1, 7]], "faces name vertex 7"),
    ],
)
def test_what_cannot_be_weighed_is_refused_with_the_reason(vertices, faces, message):
    with pytest.raises(RigError, match=message):
        heat_weights(mesh_of(vertices, faces), ARM)


def test_one_triangle_follows_the_bone_next_to_it():
    mesh = mesh_of(np.array([[1.2, -0.03, 0.02], [1.4, 0.03, 0.02], [1.2, 0.03, 0.02]]), np.array([[0, 1, 2]]))
    torch.testing.assert_close(dense(heat_weights(mesh, ARM)), torch.tensor([[0.0, 1.0, 0.0]]).expand(3, 3))


def test_a_skeleton_a_metre_away_from_its_mesh_is_refused():
    away = chain((0.1, 1.2, 0), (1.0, 1.2, 0), (1.9, 1.2, 0))
    with pytest.raises(RigError, match="the skeleton is 1 m away from the mesh, whose size is 2 m"):
        heat_weights(tube(), away)


def test_a_joint_that_is_not_a_number_is_refused():
    with pytest.raises(RigError, match="finite"):
        heat_weights(tube(), chain((0.1, 0, 0), (float("nan"), 0, 0), (1.9, 0, 0)))


def test_inside_and_outside_are_told_apart_by_rays():
    box = trimesh.creation.box((1, 1, 1))
    rays = Rays(np.asarray(box.vertices), np.asarray(box.faces))
    points = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    np.testing.assert_array_equal(rays.inside(points), np.abs(points).max(1) < 0.5)


def test_a_wall_hides_and_a_clear_way_does_not():
    box = trimesh.creation.box((1, 1, 1))
    rays = Rays(np.asarray(box.vertices), np.asarray(box.faces))
    origins = np.zeros((3, 3))
    ends = np.array([[0.4, 0.1, 0.2], [0.5, 0.1, 0.2], [0.6, 0.1, 0.2]])  # inside, on the wall, beyond it
    np.testing.assert_array_equal(rays.reaches(origins, ends), [True, True, False])


def test_a_sparse_system_is_solved_for_all_columns_at_once():
    from scipy.sparse import diags

    rng = np.random.default_rng(0)
    matrix = diags([np.full(49, -1.0), np.full(50, 2.5), np.full(49, -1.0)], [-1, 0, 1]).tocsc()
    right = rng.normal(size=(50, 4))
    np.testing.assert_allclose(matrix @ solve_spd(matrix, right), right, atol=1e-12)


def test_welding_maps_every_vertex_to_its_place():
    mesh = tube()
    doubled = Mesh(
        mesh.vertices.repeat(2, 1), torch.cat([mesh.faces, mesh.faces + len(mesh.vertices)]), mesh.colors.repeat(2, 1)
    )
    surface = surface_of(doubled)
    assert len(surface.vertices) == len(mesh.vertices)
    np.testing.assert_allclose(surface.vertices[surface.of_mesh], doubled.vertices.double().numpy(), atol=3e-6)


@pytest.mark.filterwarnings("ignore:.*no size for a creature:jigdoll.errors.RepairWarning")  # the fox is in centimetres
@pytest.mark.parametrize(
    "file, error, agreement",
    [
        ("mesh2motion/horse-animations.glb", 0.306, 0.872),
        ("khronos/CesiumMan.glb", 0.116, 0.961),
        ("khronos/Fox.glb", 0.399, 0.862),
    ],
)
def test_refined_weights_are_nearer_to_the_artists_than_pinocchios(assets_dir, file, error, agreement):
    asset = load(assets_dir / "rigged" / file)
    got = heat_weights(asset.mesh, asset.skeleton, options=REFINED)
    # One row per welded place; a leaf's weight counts for its parent.
    surface = surface_of(asset.mesh)
    _, first = np.unique(surface.of_mesh, return_index=True)
    ours, artist = (w.dense(len(asset.skeleton)).double()[first] for w in (got, asset.weights))
    for joint, kids in enumerate(asset.skeleton.children):
        if not kids and joint:
            for w in (ours, artist):
                w[:, asset.skeleton.parents[joint]] += w[:, joint]
                w[:, joint] = 0
    assert float((ours - artist).abs().sum(1).mean()) < error
    assert float((ours.argmax(1) == artist.argmax(1)).double().mean()) > agreement

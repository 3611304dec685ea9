"""Weights carried to other points, against closed forms and brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.errors import RigError
from jigdoll.skin.closest import closest_points
from jigdoll.skin.transfer import merge, transfer
from jigdoll.types import Weights

TRIANGLE = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
ONE_FACE = torch.tensor([[0, 1, 2]])
CORNERS = Weights(torch.tensor([[0], [1], [2]]), torch.ones(3, 1))


def dense_search(points: np.ndarray, vertices: np.ndarray, faces: np.ndarray, *, steps: int = 60) -> np.ndarray:
    """Upper bounds of the distances to the mesh, from a grid of samples on each face."""
    grid = np.array([[i, j, steps - i - j] for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    samples = np.einsum("gc,fcd->fgd", grid, vertices[faces]).reshape(-1, 3)
    return np.sqrt(((points[:, None] - samples[None]) ** 2).sum(-1).min(1))


@pytest.mark.parametrize(
    "point, expected",
    [
        ((0.25, 0.5, 3.0), (0.25, 0.25, 0.5)),  # over the inside: the foot of the plumb line
        ((-1.0, -2.0, 0.5), (1.0, 0.0, 0.0)),  # beyond a corner
        ((0.3, -1.0, 0.2), (0.7, 0.3, 0.0)),  # beyond an edge
        ((1.0, 1.0, 0.0), (0.0, 0.5, 0.5)),  # beyond the long edge
        ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),  # at a corner
    ],
)
def test_weights_are_the_barycentric_coordinates_of_the_nearest_surface_point(point, expected):
    got = transfer(torch.tensor([point]), TRIANGLE, ONE_FACE, CORNERS).dense(3)
    torch.testing.assert_close(got, torch.tensor([expected]), atol=1e-6, rtol=0)


def test_the_vertices_of_a_mesh_keep_their_weights():
    generator = torch.Generator().manual_seed(0)
    vertices = torch.randn(30, 3, generator=generator)
    faces = torch.stack([torch.randperm(30, generator=generator)[:3] for _ in range(200)])
    values = torch.rand(30, 4, generator=generator)
    weights = Weights(torch.stack([torch.randperm(9, generator=generator)[:4] for _ in range(30)]), values)
    weights = Weights(weights.joints, values / values.sum(1, keepdim=True))
    got = transfer(vertices, vertices, faces, weights)
    torch.testing.assert_close(got.dense(9), weights.dense(9), atol=1e-6, rtol=0)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), faces=st.integers(1, 40))
def test_the_nearest_point_is_never_farther_than_any_sample_of_the_surface(seed, faces):
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(max(3, faces // 2), 3))
    triangles = rng.integers(0, len(vertices), (faces, 3))  # some without area
    points = rng.normal(size=(20, 3))
    face, barycentric, distance = closest_points(points, vertices, triangles)
    at = (vertices[triangles[face]] * barycentric[..., None]).sum(1)
    np.testing.assert_allclose(np.linalg.norm(at - points, axis=1), distance, atol=1e-12)
    np.testing.assert_allclose(barycentric.sum(1), 1, atol=1e-12)
    assert (barycentric >= 0).all()
    sampled = dense_search(points, vertices, triangles)
    assert (distance <= sampled + 1e-12).all()
    assert (sampled <= distance + 0.15).all()


def test_a_joint_named_by_several_corners_gets_the_sum():
    got = merge(torch.tensor([[3, 1, 3, 1]]), torch.tensor([[0.1, 0.2, 0.3, 0.4]]))
    torch.testing.assert_close(got.dense(4), torch.tensor([[0.0, 0.6, 0.0, 0.4]]))
    assert got.values.shape == (1, 2)


def test_the_strongest_influences_are_kept_and_sum_to_one():
    shares = torch.tensor([[0.1, 0.6, 0.3]])
    got = merge(torch.tensor([[0, 1, 2]]), shares, max_influences=2)
    torch.testing.assert_close(got.dense(3), torch.tensor([[0.0, 2 / 3, 1 / 3]]))


def test_no_points_get_no_weights():
    got = transfer(torch.zeros(0, 3), TRIANGLE, ONE_FACE, CORNERS)
    assert got.values.shape[0] == 0


def test_a_mesh_without_faces_is_refused():
    with pytest.raises(RigError, match="this one has none"):
        transfer(torch.zeros(1, 3), TRIANGLE, torch.zeros(0, 3, dtype=torch.int64), CORNERS)


def test_points_that_are_not_numbers_are_refused():
    with pytest.raises(RigError, match="points are not finite"):
        transfer(torch.tensor([[0.0, float("nan"), 0.0]]), TRIANGLE, ONE_FACE, CORNERS)


def test_weights_of_another_mesh_are_refused():
    with pytest.raises(RigError, match="1 rows of weights for a mesh of 3 vertices"):
        transfer(torch.zeros(1, 3), TRIANGLE, ONE_FACE, Weights(torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1)))

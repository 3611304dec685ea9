"""Euler angles that rebuild the rotation and never jump."""

from itertools import permutations

import numpy as np
import pytest
import torch

from jigdoll.formats.angles import euler_angles
from jigdoll.math.rotations import quaternion_to_matrix, rotvec_to_quaternion


def about(axis: int, angle: np.ndarray) -> np.ndarray:
    vector = torch.zeros(*angle.shape, 3, dtype=torch.float64)
    vector[..., axis] = torch.from_numpy(np.ascontiguousarray(angle))
    return quaternion_to_matrix(rotvec_to_quaternion(vector)).numpy()


def rebuilt(angles: np.ndarray, axes: tuple[int, int, int]) -> np.ndarray:
    first, second, third = (about(axis, angles[..., place]) for place, axis in enumerate(axes))
    return first @ second @ third


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_the_angles_of_any_order_rebuild_the_rotation(axes: tuple[int, int, int]) -> None:
    generator = torch.Generator().manual_seed(1)
    quaternions = torch.randn(40, 5, 4, generator=generator, dtype=torch.float64)
    turns = quaternion_to_matrix(torch.nn.functional.normalize(quaternions, dim=-1)).numpy()
    np.testing.assert_allclose(rebuilt(euler_angles(turns, axes), axes), turns, atol=1e-12)


@pytest.mark.parametrize("axes", [(2, 1, 0), (2, 0, 1)])
def test_the_angles_of_a_steady_motion_never_jump_even_over_the_pole_and_beyond_a_turn(
    axes: tuple[int, int, int],
) -> None:
    t = np.linspace(0, 3 * np.pi, 200)
    true = np.stack([0.4 + 0.3 * t, 1.1 * t, -0.2 * t], -1)[
        :, None
    ]  # the middle angle passes 90 degrees again and again
    angles = euler_angles(rebuilt(true, axes), axes)
    assert np.abs(np.diff(angles, axis=0)).max() < 0.1
    np.testing.assert_allclose(rebuilt(angles, axes), rebuilt(true, axes), atol=1e-12)


@pytest.mark.parametrize("axes", list(permutations(range(3))))
@pytest.mark.parametrize("pole", [-np.pi / 2, np.pi / 2])
def test_in_the_pole_itself_the_last_angle_stays_where_it_was(axes: tuple[int, int, int], pole: float) -> None:
    true = np.array([[[0.3, 0.9 * pole, 0.5]], [[0.3, pole, 0.5]], [[0.3, pole, 0.5]]])
    angles = euler_angles(rebuilt(true, axes).round(15), axes)
    np.testing.assert_allclose(angles, true, atol=1e-6)

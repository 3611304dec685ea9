"""Distances of points and segments."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from jigdoll.math.segments import closest_on_segments, segment_distances


@pytest.mark.parametrize("seed", range(8))
def test_the_distance_of_segments_agrees_with_a_minimiser(seed: int) -> None:
    a0, a1, b0, b1 = np.random.default_rng(seed).normal(size=(4, 3))

    def squared(p: np.ndarray) -> float:
        return float(((a0 + p[0] * (a1 - a0) - b0 - p[1] * (b1 - b0)) ** 2).sum())

    best = min(minimize(squared, start, bounds=[(0, 1)] * 2).fun for start in ((0.5, 0.5), (0, 1), (1, 0)))
    found = segment_distances(torch.tensor(np.stack([a0, a1])), torch.tensor(np.stack([b0, b1])))
    assert float(found) == pytest.approx(math.sqrt(best), abs=1e-5)


def test_parallel_and_pointlike_segments_have_a_distance_too() -> None:
    x, up, zero = torch.eye(3, dtype=torch.float64)[0], torch.eye(3, dtype=torch.float64)[1], torch.zeros(3).double()
    beside = segment_distances(torch.stack([zero, x]), torch.stack([2 * x + up, 3 * x + up]))
    assert float(beside) == pytest.approx(math.sqrt(2))
    assert float(segment_distances(torch.stack([zero, zero]), torch.stack([x, x]))) == pytest.approx(1.0)


def test_distances_are_those_of_many_points_on_both_segments() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 200, 2, 3, generator=generator)
    s = torch.linspace(0, 1, 41)[:, None]
    p = one[:, None, 0] + s * (one[:, None, 1] - one[:, None, 0])
    q = other[:, None, 0] + s * (other[:, None, 1] - other[:, None, 0])
    brute = torch.cdist(p, q).amin((1, 2))
    exact = segment_distances(one, other)
    assert bool((exact <= brute + 1e-4).all())
    assert float((brute - exact).max()) < 0.06


def test_the_place_on_a_segment_is_its_foot_or_its_nearer_end() -> None:
    segment = torch.tensor([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    points = torch.tensor([[0.5, 3.0, 0.0], [-1.0, 0.0, 0.0], [5.0, 4.0, 0.0]])
    share, gap = closest_on_segments(points, segment)
    torch.testing.assert_close(share, torch.tensor([0.25, 0.0, 1.0]))
    torch.testing.assert_close(gap, torch.tensor([3.0, 1.0, 5.0]))


def test_gradients_of_both_distances_agree_with_finite_differences() -> None:
    generator = torch.Generator().manual_seed(3)
    one, other = (torch.randn(6, 2, 3, generator=generator).double().requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(segment_distances, (one, other))
    points = torch.randn(6, 3, generator=generator).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda p, s: closest_on_segments(p, s)[1], (points, one))

"""Curves drawn through keys: where they pass, how they end, and that they do not overshoot."""

import math
from itertools import pairwise

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.math.curves import ease, keyframes, smoothstep

T = torch.linspace(0, 1, 101, dtype=torch.float64)


def test_eases_run_from_zero_to_one_and_start_and_end_at_rest() -> None:
    for curve in (smoothstep(T), ease(T)):
        assert float(curve[0]) == 0 and math.isclose(float(curve[-1]), 1, abs_tol=1e-12)
        assert bool((curve.diff() > -1e-12).all())
        assert float(curve.diff()[0]) < 3e-4 and float(curve.diff()[-1]) < 3e-4
        assert math.isclose(float(curve[50]), 0.5, abs_tol=1e-12)


def test_eases_hold_their_ends_outside() -> None:
    outside = torch.tensor([-2.0, 3.0], dtype=torch.float64)
    assert torch.allclose(smoothstep(outside), torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert torch.allclose(ease(outside), torch.tensor([0.0, 1.0], dtype=torch.float64))


def test_keys_with_the_slopes_of_a_cubic_give_back_the_cubic() -> None:
    # y = t^3 - t has the slope 3 t^2 - 1; a cubic Hermite piece reproduces it exactly.
    times = (0.0, 0.3, 1.0)
    curve = keyframes(T, times, [t**3 - t for t in times], slopes=[3 * t * t - 1 for t in times])
    assert torch.allclose(curve, T**3 - T, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8))
def test_keyframes_pass_through_their_keys_and_stay_between_neighbours(values: list[float]) -> None:
    times = [float(i) for i in range(len(values))]
    t = torch.linspace(-1, len(values), 50 * len(values) + 1, dtype=torch.float64)
    curve = keyframes(t, times, values)
    at_keys = keyframes(torch.tensor(times, dtype=torch.float64), times, values)
    assert torch.allclose(at_keys, torch.tensor(values, dtype=torch.float64), atol=1e-12)
    for i, (low, high) in enumerate(pairwise(values)):
        piece = curve[(t >= i) & (t <= i + 1)]
        assert float(piece.min()) >= min(low, high) - 1e-9 and float(piece.max()) <= max(low, high) + 1e-9
    assert float(curve[0]) == values[0] and float(curve[-1]) == values[-1]

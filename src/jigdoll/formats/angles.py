"""Rotations as three angles that never jump from frame to frame."""

import numpy as np


def euler_angles(m: np.ndarray, axes: tuple[int, int, int]) -> np.ndarray:
    """Angles [rad] (a, b, c) of m = R_i(a) R_j(b) R_k(c), continuous over the frames [frames joints 3].

    `axes` are i, j and k: 0, 1 and 2 in any order.
    """
    i, j, k = axes
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    cos_b = np.hypot(m[..., j, k], m[..., k, k])
    b = np.arctan2(sign * m[..., i, k], cos_b)
    locked = cos_b < 1e-9  # the first and the last axis are one: only a together with c is known
    both_in_a = np.arctan2(sign * m[..., k, j], m[..., j, j])
    a = np.where(locked, both_in_a, np.arctan2(-sign * m[..., j, k], m[..., k, k]))
    c = np.where(locked, 0.0, np.arctan2(-sign * m[..., i, j], m[..., i, i]))
    angles = np.stack([a, b, c], -1)
    # The same rotation has a second set of angles; take the one nearer to the frame before, a whole turn aside.
    for frame in range(1, len(angles)):
        before, now = angles[frame - 1], angles[frame]
        kept = np.where(locked[frame], before[:, 2], 0.0)
        now = now + np.stack([-sign * np.sign(now[:, 1]) * kept, 0 * kept, kept], -1)
        other = now * [1, -1, 1] + np.pi
        both = np.stack([now, other])
        both += 2 * np.pi * np.round((before - both) / (2 * np.pi))
        nearer = np.abs(both - before).max(-1).argmin(0)
        angles[frame] = np.where(nearer[:, None] == 0, both[0], both[1])
    return angles

"""How the kernels of the CPU rasterizer lay out their numbers.

numba's cache of a kernel does not notice edits of this file: touch the kernels' files as well.
"""

import math

from jigdoll.render.rasterizer_cpu.simd import LANES

ROWS = 32
"""Height of a tile: tall enough that few Gaussians need a second one, low enough for the first-level cache."""
PIXELS = LANES * ROWS

UNIT = math.sqrt(0.5 / math.log(2.0))
"""exp(-x^2 / 2) = 2^-((UNIT x)^2): the unit of p and q."""

# A record is one Gaussian as one picture sees it: 16 floats, a cache line.
MEAN_X, MEAN_Y = 0, 1
"""[px]."""
INVERSE_XX, INVERSE_YX, INVERSE_YY = 2, 3, 4
"""p = XX dx + YX dy, q = YY dy, log2(alpha) = PEAK - p^2 - q^2."""
PEAK = 5
RED = 6
"""Green and blue follow."""
DEPTH = 9
FALL = 10
"""How the ratio of two rows' alphas changes from row to row."""
RUN = 11
"""Rows that may be chained by ratios."""
LEFT, RIGHT, TOP, BOTTOM = 12, 13, 14, 15
"""First and last column and row of pixels that it may touch."""
RECORD = 16

# An entry says that a Gaussian touches a tile: Gaussian, first row | end row << 16, slot.
ENTRY = 4

# A slot holds the gradient sums of one entry: r g b depth, then dL/dlog(alpha) times 1, p, q, p^2, p q, q^2.
SUMS = 16

ENTRY_BYTES = 4 * (ENTRY + 3 + SUMS)
"""What an entry costs in memory: itself, its way through the sort, its slot."""

WIDEN, WIDEN_BY = 1.0002, 1e-3
"""The square of an ellipse's reach is stretched by this, against rounding: pixels are tested one by one in any case."""

"""Stored colour values (sRGB) and light (linear)."""

import numpy as np

Color = tuple[float, float, float]
"""sRGB in 0..1."""


def srgb_to_linear(color: np.ndarray) -> np.ndarray:
    """Stored values in 0..1 to light."""
    color = np.clip(color, 0, 1)
    return np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)


def linear_to_srgb(light: np.ndarray) -> np.ndarray:
    """Light in 0..1 to stored values."""
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * np.maximum(light, 0.0031308) ** (1 / 2.4) - 0.055)

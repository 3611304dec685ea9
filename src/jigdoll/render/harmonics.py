"""Colours that change with the direction of view: real spherical harmonics to degree 3, in the order of 3DGS files."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError

_DEGREE_OF_BANDS = {1: 0, 4: 1, 9: 2, 16: 3}


def basis(directions: Float[Tensor, "*batch 3"], degree: int) -> Float[Tensor, "*batch bands"]:
    """The (degree + 1)^2 basis functions at unit directions."""
    x, y, z = directions.unbind(-1)
    values = [torch.full_like(x, 0.28209479177387814)]
    if degree >= 1:
        k = 0.4886025119029199
        values += [-k * y, k * z, -k * x]
    if degree >= 2:
        k = 1.0925484305920792
        values += [
            k * x * y,
            -k * y * z,
            0.31539156525252005 * (3 * z * z - 1),
            -k * x * z,
            0.5462742152960396 * (x * x - y * y),
        ]
    if degree >= 3:
        values += [
            -0.5900435899266435 * y * (3 * x * x - y * y),
            2.890611442640554 * x * y * z,
            -0.4570457994644658 * y * (5 * z * z - 1),
            0.3731763325901154 * z * (5 * z * z - 3),
            -0.4570457994644658 * x * (5 * z * z - 1),
            1.445305721320277 * z * (x * x - y * y),
            -0.5900435899266435 * x * (x * x - 3 * y * y),
        ]
    return torch.stack(values, -1)


def shade(
    coefficients: Float[Tensor, "*#batch gaussians bands 3"],
    means: Float[Tensor, "*#batch gaussians 3"],
    T_camera_world: Float[Tensor, "*#batch 4 4"],
) -> Float[Tensor, "*batch gaussians 3"]:
    """The colour of each Gaussian as the camera sees it: 1/2 plus its harmonics, not below zero, as in 3DGS."""
    bands = coefficients.shape[-2]
    if bands not in _DEGREE_OF_BANDS:
        raise JigdollError(f"colours need 1, 4, 9 or 16 spherical harmonics (degree 0 to 3), these have {bands}")
    rotation, shift = T_camera_world[..., :3, :3], T_camera_world[..., :3, 3]
    eyes = -(rotation.transpose(-1, -2) @ shift[..., None])[..., 0]
    directions = torch.nn.functional.normalize(means - eyes[..., None, :], dim=-1)
    values = basis(directions, _DEGREE_OF_BANDS[bands])
    return ((values[..., None] * coefficients).sum(-2) + 0.5).clamp_min(0)

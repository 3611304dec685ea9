"""A mesh turned into splats on its surface, bound to the mesh's skeleton."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.skin.transfer import interpolate, transfer
from jigdoll.types import Mesh, RiggedAsset, SkinnedGaussians, Weights

FLATNESS = 0.15
"""Thickness of a fresh splat as a share of its radius."""


def bind(
    asset: RiggedAsset,
    *,
    count: int = 4000,
    opacity: float = 0.95,
    overlap: float = 0.65,
    max_influences: int = 4,
    seed: int = 0,
) -> SkinnedGaussians:
    """Flat splats spread evenly over the surface, with the mesh's colours and the artist's weights.

    Each splat lies in its face: its own z axis is the outward normal and its thinnest. Its radius is `overlap` times
    the distance between neighbours, so that the surface is closed. Weights and colours are interpolated in the face.
    """
    face, shares = sample_surface(asset.mesh, count, seed=seed)
    corners = asset.mesh.faces.long()[face]
    means = (asset.mesh.vertices[corners] * shares[..., None]).sum(1)
    normals = face_normals(asset.mesh)[face]
    area = float(face_areas(asset.mesh).sum())
    radius = overlap * math.sqrt(area / count)
    scales = means.new_tensor([radius, radius, FLATNESS * radius]).repeat(count, 1)
    return SkinnedGaussians(
        means=means,
        quats=quats_facing(normals),
        scales=scales,
        opacities=means.new_full((count,), opacity),
        colors=sample_colors(asset.mesh, face, shares),
        weights=interpolate(asset.weights, corners, shares, max_influences=max_influences),
    )


def rebind(splats: SkinnedGaussians, asset: RiggedAsset, *, max_influences: int = 4) -> SkinnedGaussians:
    """The same splats with the weights of the nearest points of the asset's surface (AKD 4.1)."""
    weights = transfer(
        splats.means, asset.mesh.vertices, asset.mesh.faces, asset.weights, max_influences=max_influences
    )
    return SkinnedGaussians(splats.means, splats.quats, splats.scales, splats.opacities, splats.colors, weights)


def unbound(gaussians: int) -> Weights:
    """Weights of splats that follow one joint only."""
    return Weights(torch.zeros(gaussians, 1, dtype=torch.long), torch.ones(gaussians, 1))


def face_areas(mesh: Mesh) -> Float[Tensor, " faces"]:
    """[m^2]; zero for degenerate faces."""
    return 0.5 * _face_cross(mesh).norm(dim=-1)


def face_normals(mesh: Mesh) -> Float[Tensor, "faces 3"]:
    """Outward unit normals; zero for degenerate faces."""
    return torch.nn.functional.normalize(_face_cross(mesh), dim=-1, eps=1e-30)


def _face_cross(mesh: Mesh) -> Float[Tensor, "faces 3"]:
    a, b, c = mesh.vertices[mesh.faces.long()].unbind(1)
    return torch.linalg.cross(b - a, c - a)


def sample_surface(
    mesh: Mesh, count: int, *, seed: int = 0
) -> tuple[Int[Tensor, " points"], Float[Tensor, "points 3"]]:
    """Points spread evenly over the surface: the face of each and its barycentric shares.

    Stratified: the surface is laid out as a line of faces and cut into equal pieces, one point in each; within a face
    the points follow a low-discrepancy sequence.
    """
    areas = face_areas(mesh).double()
    total = float(areas.sum()) if areas.numel() else 0.0
    if not (math.isfinite(total) and total > 0):
        raise JigdollError("splats need a surface to lie on, and this mesh has no face of any area")
    generator = torch.Generator().manual_seed(seed)
    jitter = torch.rand(count, generator=generator, dtype=torch.float64)
    along = (torch.arange(count, dtype=torch.float64) + jitter) / count
    face = torch.searchsorted((areas.cumsum(0) / total).contiguous(), along).clamp_max(len(areas) - 1)
    first = torch.searchsorted(face.contiguous(), torch.arange(len(areas)))
    order = (torch.arange(count) - first[face] + 1).double()
    start = torch.rand(len(areas), 2, generator=generator, dtype=torch.float64)[face]
    # The R2 sequence: steps of 1/g and 1/g^2 with g the plastic number.
    u, v = ((start + order[:, None] * torch.tensor([0.7548776662466927, 0.5698402909980532])) % 1).unbind(-1)
    flip = u + v > 1
    u, v = torch.where(flip, 1 - u, u), torch.where(flip, 1 - v, v)
    return face, torch.stack([1 - u - v, u, v], -1).to(mesh.vertices.dtype)


def sample_colors(
    mesh: Mesh, face: Int[Tensor, " points"], shares: Float[Tensor, "points 3"]
) -> Float[Tensor, "points 3"]:
    """The base colour (sRGB) of points on the surface: from the texture where there is one, else from the vertices."""
    corners = mesh.faces.long()[face]
    colors = (mesh.colors[corners] * shares[..., None]).sum(1)
    if mesh.uvs is None or mesh.face_materials is None:
        return colors
    uv = (mesh.uvs[corners] * shares[..., None]).sum(1)
    for index, material in enumerate(mesh.materials):
        if material.texture is None:
            continue
        here = mesh.face_materials[face] == index
        height, width = material.texture.shape[:2]
        column = (uv[here, 0] * width).floor().long() % width
        row = (uv[here, 1] * height).floor().long() % height
        texels = material.texture[row, column, :3].to(colors) / 255
        factor = colors.new_tensor(material.color[:3])
        if bool((factor != 1).any()):
            texels = (texels**2.2 * factor) ** (1 / 2.2)
        colors[here] = texels
    return colors


def quats_facing(normals: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 4"]:
    """Rotations whose z axis is the normal; the other two axes are any (smooth but at one pole)."""
    normals = torch.where(normals.norm(dim=-1, keepdim=True) > 0.5, normals, normals.new_tensor([0.0, 1.0, 0.0]))
    x, y, z = normals.unbind(-1)
    # Duff et al. 2017: a basis without branches but the sign.
    sign = torch.where(z < 0, -1.0, 1.0)
    a = -1 / (sign + z)
    b = x * y * a
    first = torch.stack([1 + sign * x * x * a, sign * b, -sign * x], -1)
    second = torch.stack([b, sign + y * y * a, -y], -1)
    return matrix_to_quaternion(torch.stack([first, second, normals], -1))

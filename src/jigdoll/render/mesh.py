"""A triangle rasteriser for final pictures and ground-truth views: z-buffer, textures, smooth normals, three lights.

Each pixel's ray d is intersected with the plane of each triangle whose box it lies in. With camera-space corners v_i,
e_i = d . (v_j x v_k) are the unnormalised barycentric coordinates of the hit and det(v0, v1, v2) / sum(e) is its depth:
exact perspective, and triangles that cross the camera's plane need no clipping.
"""

from dataclasses import dataclass
from typing import Literal, no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.colors import linear_to_srgb, srgb_to_linear
from jigdoll.skin.threads import on_torch_threads
from jigdoll.types import Camera, Material, Mesh, Rendering

Look = Literal["lit", "unlit", "clay"]
CLAY = (0.83, 0.66, 0.52)
NEAR = 1e-3

# Direction to the light and strength; the key stands front left above, the fill opposite, the rim behind.
_LIGHTS = np.array([[0.5, 0.75, 0.45, 0.46], [-0.8, 0.25, 0.3, 0.14], [0.1, 0.5, -0.85, 0.16]], dtype=np.float32)
_LIGHTS[:, :3] /= np.linalg.norm(_LIGHTS[:, :3], axis=1, keepdims=True)
_AMBIENT, _SKY = np.float32(0.55), np.float32(0.10)


def render_mesh(
    mesh: Mesh,
    camera: Camera,
    *,
    vertices: Float[Tensor, "*posed vertices 3"] | None = None,
    look: Look = "lit",
    samples: int = 2,
) -> Rendering:
    """Draw the mesh (at rest, or with deformed `vertices`) once per camera of the batch; not differentiable.

    The vertices' batch broadcasts against the camera's. `lit` shades the base colour, `unlit` is the base colour alone,
    `clay` one shaded material. Each pixel averages `samples` x `samples` rays. Surfaces are opaque and two-sided.
    """
    vertices = mesh.vertices if vertices is None else vertices
    batch = torch.broadcast_shapes(camera.T_camera_world.shape[:-2], vertices.shape[:-2])
    count = int(np.prod(batch, dtype=np.int64))
    T_camera_world = camera.T_camera_world.expand(*batch, 4, 4).reshape(count, 4, 4)
    K = camera.K.expand(*batch, 3, 3).reshape(count, 3, 3)
    sets = int(np.prod(vertices.shape[:-2], dtype=np.int64))
    which = torch.arange(sets).reshape(vertices.shape[:-2]).expand(batch).reshape(count)

    posed = _array(vertices.reshape(sets, -1, 3))
    faces = np.ascontiguousarray(mesh.faces.cpu().numpy(), dtype=np.int32).reshape(-1, 3)
    if faces.size and not 0 <= faces.min() <= faces.max() < posed.shape[1]:
        raise JigdollError(f"a face of the mesh names a vertex that is not there: there are {posed.shape[1]} vertices")
    painting = _paint(mesh, look)
    normals = _corner_normals(mesh, posed, faces) if look != "unlit" else np.zeros((sets, 0, 3, 3), np.float32)
    rgba = np.zeros((count, camera.height, camera.width, 4), np.float32)
    depth = np.zeros((count, camera.height, camera.width), np.float32)
    if len(faces) and count:
        on_torch_threads(
            _draw_all, posed, normals, faces, which.numpy(), _array(T_camera_world, np.float64), _array(K, np.float64),
            painting.vertex_colors, painting.uvs, painting.face_texture, painting.pyramid, painting.levels,
            _LIGHTS, samples, rgba, depth,
        )  # fmt: skip
    device = vertices.device
    return Rendering(
        torch.from_numpy(rgba).reshape(*batch, camera.height, camera.width, 4).to(device),
        torch.from_numpy(depth).reshape(*batch, camera.height, camera.width).to(device),
    )


def light_on(normals: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch"]:
    """How bright the fixed lights make surfaces of these normals (of any length)."""
    normals = torch.nn.functional.normalize(normals, dim=-1)
    lights = torch.from_numpy(_LIGHTS).to(normals)
    lamps = (normals @ lights[:, :3].T).clamp_min(0) @ lights[:, 3]
    return float(_AMBIENT) + float(_SKY) * normals[..., 1] + lamps


def vertex_normals(
    mesh: Mesh, vertices: Float[Tensor, "*batch vertices 3"] | None = None
) -> Float[Tensor, "*batch vertices 3"]:
    """Unit normals, area-weighted; vertices at one place (split along a texture seam) share their normal."""
    vertices = mesh.vertices if vertices is None else vertices
    weld, num_welded = _weld(mesh)
    corners = vertices[..., mesh.faces.long(), :]
    areas = torch.linalg.cross(corners[..., 1, :] - corners[..., 0, :], corners[..., 2, :] - corners[..., 0, :])
    total = torch.zeros(*vertices.shape[:-2], num_welded, 3, dtype=vertices.dtype, device=vertices.device)
    for corner in range(3):
        total = total.index_add(-2, weld[mesh.faces[:, corner].long()], areas)
    return torch.nn.functional.normalize(total, dim=-1)[..., weld, :]


def _weld(mesh: Mesh) -> tuple[Int[Tensor, " vertices"], int]:
    """The place of each vertex among the distinct positions of the rest pose."""
    if not mesh.vertices.numel():
        return torch.zeros(0, dtype=torch.long), 0
    positions = mesh.vertices.detach()
    size = float((positions.amax(0) - positions.amin(0)).max())
    # At most 1e5 steps per axis: 17 bits each make one key, and sorting numbers is faster than sorting rows.
    steps = torch.round((positions - positions.amin(0)).double() / max(size * 1e-5, 1e-12)).long()
    keys = (steps[:, 0] << 34) | (steps[:, 1] << 17) | steps[:, 2]
    _, inverse = torch.unique(keys, return_inverse=True)
    return inverse, int(inverse.max()) + 1


def _array(tensor: Tensor, dtype: type = np.float32) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=dtype)


def _corner_normals(mesh: Mesh, posed: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """A normal per corner of each face: smooth, but the face's own where the rest shape has a crease."""
    weld, num_welded = _weld(mesh)
    crease = np.zeros((len(faces), 3), np.bool_)
    out = np.empty((len(posed), len(faces), 3, 3), np.float32)
    rest = np.empty((1, len(faces), 3, 3), np.float32)
    on_torch_threads(_normals, _array(mesh.vertices)[None], faces, weld.numpy(), num_welded, crease, rest)
    corners = _array(mesh.vertices)[faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat /= np.maximum(np.linalg.norm(flat, axis=-1, keepdims=True), 1e-30)
    crease[:] = (rest[0] * flat[:, None]).sum(-1) < 0.62  # a cube's corner has 0.577
    on_torch_threads(_normals, posed, faces, weld.numpy(), num_welded, crease, out)
    return out


@dataclass(frozen=True, eq=False)
class _Painting:
    """The base colours of a mesh, packed for the kernel."""

    vertex_colors: np.ndarray
    uvs: np.ndarray
    face_texture: np.ndarray
    """Index of the first level of each face's texture, -1 for vertex colours."""
    pyramid: np.ndarray
    """The texels of every level of every texture in a row [texels, 3]."""
    levels: np.ndarray
    """Per level: offset, height, width, levels that follow."""


def _paint(mesh: Mesh, look: Look) -> _Painting:
    num_faces = mesh.faces.shape[0]
    face_texture = np.full(num_faces, -1, np.int32)
    uvs = np.zeros((0, 2), np.float32)
    texels, levels = [np.zeros((0, 3), np.float32)], []
    colors = np.tile(np.array(CLAY, np.float32), (mesh.vertices.shape[0], 1)) if look == "clay" else _array(mesh.colors)
    if look != "clay" and mesh.uvs is not None and mesh.face_materials is not None:
        uvs = _array(mesh.uvs)
        offset = 0
        for index, material in enumerate(mesh.materials):
            if material.texture is None:
                continue
            face_texture[mesh.face_materials.cpu().numpy() == index] = len(levels)
            pyramid = _pyramid(material)
            for place, level in enumerate(pyramid):
                levels.append((offset, level.shape[0], level.shape[1], len(pyramid) - 1 - place))
                texels.append(level.reshape(-1, 3))
                offset += level.shape[0] * level.shape[1]
    table = np.array(levels, np.int64).reshape(-1, 4)
    return _Painting(np.ascontiguousarray(colors), uvs, face_texture, np.concatenate(texels), table)


def _pyramid(material: Material) -> list[np.ndarray]:
    """The texture times the material's colour, halved again and again: far surfaces read the coarse levels."""
    assert material.texture is not None
    image = material.texture[..., :3].cpu().numpy().astype(np.float32) / 255
    factor = np.array(material.color[:3], np.float32)
    if np.any(factor != 1):
        image = linear_to_srgb(srgb_to_linear(image) * factor)
    levels = [np.ascontiguousarray(image)]
    while min(levels[-1].shape[:2]) > 1 and len(levels) < 12:
        above = levels[-1]
        even = above[: above.shape[0] // 2 * 2, : above.shape[1] // 2 * 2]
        levels.append((even[0::2, 0::2] + even[1::2, 0::2] + even[0::2, 1::2] + even[1::2, 1::2]) / 4)
    return levels


@no_type_check
@numba.njit(cache=True, parallel=True, fastmath=False)
def _draw_all(
    posed, normals, faces, which, T_camera_world, K, vertex_colors, uvs, face_texture, pyramid, levels, lights, samples,
    rgba, depth,
):  # fmt: skip
    """Draw every picture of the batch, one per thread at a time."""
    for image in numba.prange(rgba.shape[0]):
        height, width = rgba.shape[1] * samples, rgba.shape[2] * samples
        z_buffer = np.full((height, width), np.inf, np.float64)
        hit_face = np.full((height, width), -1, np.int32)
        hit_place = np.zeros((height, width, 2), np.float32)
        level_of = np.zeros(faces.shape[0], np.int32)
        side_of = np.ones(faces.shape[0], np.float32)
        lens = K[image] * samples
        T = T_camera_world[image]
        seen = posed[which[image]].astype(np.float64) @ np.ascontiguousarray(T[:3, :3].T) + T[:3, 3]
        for face in range(faces.shape[0]):
            side_of[face] = _draw_triangle(seen, faces[face], face, lens, z_buffer, hit_face, hit_place)
            if face_texture[face] >= 0:
                level_of[face] = _choose_level(seen, uvs, faces[face], lens, levels, face_texture[face])
        shaded = normals.shape[1] > 0
        for y in range(height):
            for x in range(width):
                face = hit_face[y, x]
                if face < 0:
                    continue
                b1, b2 = hit_place[y, x, 0], hit_place[y, x, 1]
                b0 = np.float32(1) - b1 - b2
                i, j, k = faces[face]
                if face_texture[face] >= 0:
                    u = b0 * uvs[i, 0] + b1 * uvs[j, 0] + b2 * uvs[k, 0]
                    v = b0 * uvs[i, 1] + b1 * uvs[j, 1] + b2 * uvs[k, 1]
                    red, green, blue = _read_texture(pyramid, levels, level_of[face], u, v)
                else:
                    red = b0 * vertex_colors[i, 0] + b1 * vertex_colors[j, 0] + b2 * vertex_colors[k, 0]
                    green = b0 * vertex_colors[i, 1] + b1 * vertex_colors[j, 1] + b2 * vertex_colors[k, 1]
                    blue = b0 * vertex_colors[i, 2] + b1 * vertex_colors[j, 2] + b2 * vertex_colors[k, 2]
                light = np.float32(1)
                if shaded:
                    corner = normals[which[image], face]
                    nx = b0 * corner[0, 0] + b1 * corner[1, 0] + b2 * corner[2, 0]
                    ny = b0 * corner[0, 1] + b1 * corner[1, 1] + b2 * corner[2, 1]
                    nz = b0 * corner[0, 2] + b1 * corner[1, 2] + b2 * corner[2, 2]
                    # A back side is lit as if it were a front. (The interpolated normal cannot tell: near an outline it
                    # turns away from the camera on the front side too.)
                    light = _light(nx, ny, nz, side_of[face], lights)
                pixel = rgba[image, y // samples, x // samples]
                pixel[0] += min(red * light, np.float32(1))
                pixel[1] += min(green * light, np.float32(1))
                pixel[2] += min(blue * light, np.float32(1))
                pixel[3] += np.float32(1)
                depth[image, y // samples, x // samples] += np.float32(z_buffer[y, x])
        share = np.float32(1.0 / (samples * samples))
        rgba[image] *= share
        depth[image] *= share


@no_type_check
@numba.njit(cache=True, parallel=True)
def _normals(posed, faces, weld, num_welded, crease, out):
    """A unit normal per corner: the face's own at a crease, else the sum of all faces that meet at that place."""
    for pose in numba.prange(posed.shape[0]):
        total = np.zeros((num_welded, 3))
        for turn in range(2):
            for face in range(faces.shape[0]):
                i, j, k = faces[face]
                a, b, c = posed[pose, i], posed[pose, j], posed[pose, k]
                ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
                vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
                nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
                for corner in range(3):
                    place = total[weld[faces[face, corner]]]
                    if turn == 0:
                        place[0] += nx
                        place[1] += ny
                        place[2] += nz
                        continue
                    x, y, z = np.float64(nx), np.float64(ny), np.float64(nz)
                    if not crease[face, corner]:
                        x, y, z = place
                    length = max(np.sqrt(x * x + y * y + z * z), 1e-30)
                    to = out[pose, face, corner]
                    to[0], to[1], to[2] = x / length, y / length, z / length


@no_type_check
@numba.njit(cache=True)
def _draw_triangle(seen, corners, face, lens, z_buffer, hit_face, hit_place):
    """Put a triangle into the z-buffer; says which side the camera sees: 1 front, -1 back."""
    height, width = z_buffer.shape
    a, b, c = seen[corners[0]], seen[corners[1]], seen[corners[2]]
    left, right, top, bottom = np.inf, -np.inf, np.inf, -np.inf
    for side in range(3):
        p, q = seen[corners[side]], seen[corners[(side + 1) % 3]]
        for end in range(2):
            px, py, pz = p
            if end == 0:
                if pz < NEAR:
                    continue
            else:  # where the edge crosses the near plane, if it does
                if (pz < NEAR) == (q[2] < NEAR):
                    continue
                t = (NEAR - pz) / (q[2] - pz)
                px, py, pz = px + t * (q[0] - px), py + t * (q[1] - py), NEAR
            sx, sy = lens[0, 0] * px / pz + lens[0, 2], lens[1, 1] * py / pz + lens[1, 2]
            left, right, top, bottom = min(left, sx), max(right, sx), min(top, sy), max(bottom, sy)
    if not (left < width and right > 0 and top < height and bottom > 0):  # all behind the camera ends here too
        return np.float32(1)
    x0, x1 = int(max(np.ceil(left - 0.5), 0)), int(min(np.floor(right - 0.5), width - 1))
    y0, y1 = int(max(np.ceil(top - 0.5), 0)), int(min(np.floor(bottom - 0.5), height - 1))

    n0x, n0y, n0z = b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]
    n1x, n1y, n1z = c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2], c[0] * a[1] - c[1] * a[0]
    n2x, n2y, n2z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    determinant = a[0] * n0x + a[1] * n0y + a[2] * n0z
    if determinant == 0.0:
        return np.float32(1)
    side = np.float32(-1)
    if determinant < 0.0:  # counter-clockwise, the front: turn all signs round
        side = np.float32(1)
        determinant = -determinant
        n0x, n0y, n0z, n1x, n1y, n1z, n2x, n2y, n2z = -n0x, -n0y, -n0z, -n1x, -n1y, -n1z, -n2x, -n2y, -n2z
    for y in range(y0, y1 + 1):
        dy = (y + 0.5 - lens[1, 2]) / lens[1, 1]
        for x in range(x0, x1 + 1):
            dx = (x + 0.5 - lens[0, 2]) / lens[0, 0]
            e0 = n0x * dx + n0y * dy + n0z
            e1 = n1x * dx + n1y * dy + n1z
            e2 = n2x * dx + n2y * dy + n2z
            if e0 < 0.0 or e1 < 0.0 or e2 < 0.0:
                continue
            total = e0 + e1 + e2
            if total <= 0.0:
                continue
            z = determinant / total
            if NEAR <= z < z_buffer[y, x]:
                z_buffer[y, x] = z
                hit_face[y, x] = face
                hit_place[y, x, 0] = np.float32(e1 / total)
                hit_place[y, x, 1] = np.float32(e2 / total)
    return side


@no_type_check
@numba.njit(cache=True)
def _choose_level(seen, uvs, corners, lens, levels, first):
    """The level whose texels are about as large as the triangle's pixels."""
    i, j, k = corners
    if min(seen[i, 2], seen[j, 2], seen[k, 2]) < NEAR:
        return first
    fx, fy = lens[0, 0], lens[1, 1]
    ax, ay = fx * seen[i, 0] / seen[i, 2], fy * seen[i, 1] / seen[i, 2]
    bx, by = fx * seen[j, 0] / seen[j, 2] - ax, fy * seen[j, 1] / seen[j, 2] - ay
    cx, cy = fx * seen[k, 0] / seen[k, 2] - ax, fy * seen[k, 1] / seen[k, 2] - ay
    pixels = abs(bx * cy - by * cx)
    u, v = uvs[j, 0] - uvs[i, 0], uvs[j, 1] - uvs[i, 1]
    s, t = uvs[k, 0] - uvs[i, 0], uvs[k, 1] - uvs[i, 1]
    texels = abs(u * t - v * s) * levels[first, 1] * levels[first, 2]
    if not (texels > 0.0 and texels < np.inf):
        return first
    finest = 0.5 * np.log2(texels / max(pixels, 1e-6))
    return first + int(min(max(np.round(finest), 0), levels[first, 3]))


@no_type_check
@numba.njit(cache=True)
def _read_texture(pyramid, levels, level, u, v):
    """The colour at a place of a texture, bilinear, repeated beyond its borders."""
    offset, height, width = levels[level, 0], levels[level, 1], levels[level, 2]
    x, y = (u - np.floor(u)) * width - 0.5, (v - np.floor(v)) * height - 0.5
    x0, y0 = int(np.floor(x)), int(np.floor(y))
    fx, fy = np.float32(x - x0), np.float32(y - y0)
    left, right = x0 % width, (x0 + 1) % width
    above, below = offset + (y0 % height) * width, offset + ((y0 + 1) % height) * width
    w00, w01 = (np.float32(1) - fx) * (np.float32(1) - fy), fx * (np.float32(1) - fy)
    w10, w11 = (np.float32(1) - fx) * fy, fx * fy
    p, q, r, s = pyramid[above + left], pyramid[above + right], pyramid[below + left], pyramid[below + right]
    return (
        w00 * p[0] + w01 * q[0] + w10 * r[0] + w11 * s[0],
        w00 * p[1] + w01 * q[1] + w10 * r[1] + w11 * s[1],
        w00 * p[2] + w01 * q[2] + w10 * r[2] + w11 * s[2],
    )


@no_type_check
@numba.njit(cache=True)
def _light(nx, ny, nz, side, lights):
    """How bright a surface of this (unnormalised) normal is."""
    scale = side / max(np.sqrt(nx * nx + ny * ny + nz * nz), np.float32(1e-12))
    nx, ny, nz = nx * scale, ny * scale, nz * scale
    light = _AMBIENT + _SKY * ny
    for lamp in range(lights.shape[0]):
        facing = nx * lights[lamp, 0] + ny * lights[lamp, 1] + nz * lights[lamp, 2]
        light += lights[lamp, 3] * max(facing, np.float32(0))
    return np.float32(light)

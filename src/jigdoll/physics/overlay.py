"""Pictures of a tracked clip: the reference on the left, the simulated body with the reference's ghost on the right."""

import torch
from jaxtyping import UInt8
from torch import Tensor

from jigdoll.render.camera import follow
from jigdoll.render.draw import ClipStyle, draw_clip
from jigdoll.render.ground import fitting_ground
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Camera, Motion, Pose, RiggedAsset

GHOST = 0.3
"""How much of the reference shines through."""


def overlay(
    asset: RiggedAsset,
    reference: Motion,
    performed: Motion,
    *,
    size: tuple[int, int] = (360, 300),
    azimuth: float = 60.0,
    piece: int = 16,
) -> UInt8[Tensor, "frames height width 3"]:
    """Both clips from one camera over one ground, twice as wide as `size`."""
    count = min(len(reference), len(performed))
    shape = deform_mesh(asset, performed.pose)[:count]
    camera = follow(shape, azimuth=torch.tensor([azimuth]), width=size[0], height=size[1])
    ground = fitting_ground(shape)
    style = ClipStyle(width=size[0], height=size[1], azimuth=(azimuth,))
    films = []
    for start in range(0, count, piece):
        here = slice(start, min(start + piece, count))
        seen = Camera(camera.T_camera_world[:, here], camera.K[:, here], camera.width, camera.height)
        drawn = [
            draw_clip(
                asset, Pose(clip.pose.root[here], clip.pose.rotations[here]), style=style, camera=seen, ground=ground
            )[0]
            for clip in (reference, performed)
        ]
        pair = torch.cat([drawn[0], (1 - GHOST) * drawn[1] + GHOST * drawn[0]], dim=2)
        films.append((pair.clamp(0, 1) * 255).round().to(torch.uint8))
    return torch.cat(films)

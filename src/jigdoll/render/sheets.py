"""Pictures and films for people: the zoo on one sheet, a clip as a film or a contact sheet."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.formats import video
from jigdoll.formats.table import FILMS, PICTURES, is_picture
from jigdoll.kinematics import rest_pose
from jigdoll.math.rotations import compound_to_quaternion
from jigdoll.motion import resample
from jigdoll.protocols import Progress, quiet
from jigdoll.render.camera import fit_orbit, follow
from jigdoll.render.draw import (
    ClipStyle,
    contact_sheet,
    draw_bones,
    draw_clip,
    draw_clip_in_pieces,
    draw_turntable,
    picture_of,
    to_uint8,
)
from jigdoll.render.ground import fitting_ground
from jigdoll.rig.bones import bones_of
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Camera, Motion, Pose, RiggedAsset
from jigdoll.zoo.gaits import reference_motion


def film(
    target: str | Path,
    asset: RiggedAsset,
    motion: Motion | None = None,
    *,
    mode: Literal["mesh", "splats", "clay", "motion"] = "mesh",
    size: tuple[int, int] = (480, 360),
    azimuth: float = 60.0,
    elevation: float = 12.0,
    fps: float = 24.0,
    ground: bool = True,
    shadow: bool = True,
    skeleton: bool = False,
    frames: int = 12,
    progress: Progress = quiet,
) -> Path:
    """A clip as .mp4, .gif, .webp, or as a .png contact sheet; a turntable where there is no motion."""
    target = Path(target)
    if target.suffix.lower() not in (*FILMS, *PICTURES):
        raise JigdollError(f"{target.name}: films are .mp4, .gif or .webp, contact sheets .png")
    if not asset.has_mesh:
        raise JigdollError(f"{asset.name}: motion without a body cannot be drawn; retarget it to a character first")
    if frames < 1:
        raise JigdollError(f"a contact sheet needs at least one picture, not {frames}")
    style = ClipStyle(
        mode=mode,
        width=size[0],
        height=size[1],
        azimuth=(azimuth,),
        elevation=elevation,
        ground=ground,
        shadow=shadow,
        skeleton=skeleton,
    )
    sheet = is_picture(target)
    progress(0.1, "drawing")
    if motion is None:
        with torch.no_grad():
            pictures = torch.from_numpy(to_uint8(draw_turntable(asset, style=style, frames=frames if sheet else 48)[0]))
    else:
        motion = _picked(motion, frames) if sheet else resample(motion, fps)
        pieces = []
        for piece in draw_clip_in_pieces(asset, motion, style=style):
            pieces.append(torch.from_numpy(piece[0]))
            progress(0.1 + 0.8 * sum(map(len, pieces)) / len(motion), "drawing")
        pictures = torch.cat(pieces)
    progress(0.9, "encoding")
    if sheet:
        return video.write_picture(target, contact_sheet(pictures.numpy(), min(6, len(pictures))))
    return video.write(target, pictures, fps=fps)


def zoo_sheet(
    target: str | Path,
    *,
    action: str = "walk",
    seed: int = 0,
    size: int = 160,
    columns: int = 6,
    progress: Progress = quiet,
) -> Path:
    """Every built-in character at rest and in the middle of an action."""
    pictures, labels = [], []
    for index, name in enumerate(zoo.SPECIES):
        progress(index / len(zoo.SPECIES), name)
        asset = zoo.make(name, seed=seed)
        motion = reference_motion(asset, action, seconds=1.0, fps=24.0)
        middle = motion.pose[len(motion) // 2]
        style = ClipStyle(width=size, height=size, azimuth=(60.0,))
        pictures += [picture_of(asset, azimuth=60.0, size=size), to_uint8(draw_clip(asset, middle, style=style)[0, 0])]
        labels += [name.replace("_", " "), action]
    return video.write_picture(Path(target), contact_sheet(pictures, 2 * columns, labels))


def _picked(motion: Motion, count: int) -> Motion:
    """So many frames, evenly spread, of which the last is not the first again."""
    places = torch.linspace(0, max(len(motion) - 1, 0), count + 1)[:-1].round().long().unique()
    return replace(motion, pose=motion.pose[places])


def rig_sheet(target: str | Path, asset: RiggedAsset, *, size: int = 320) -> Path:
    """What a rigger looks at: the skeleton through the skin, the weights by colour, and three limbs bent."""
    joints = len(asset.skeleton)
    hues = torch.arange(joints) * 0.61803  # golden steps keep neighbours apart
    wheel = 0.5 + 0.5 * torch.cos(2 * torch.pi * (hues[:, None] + torch.tensor([0.0, 1 / 3, 2 / 3])))
    painted = replace(asset.mesh, colors=asset.weights.dense(joints) @ wheel, materials=(), face_materials=None)
    by_weight = replace(asset, mesh=painted)
    pictures, labels = [], []
    for azimuth in (0.0, 90.0):
        pictures.append(_x_ray(asset, azimuth=azimuth, size=size))
        labels.append("skeleton, front" if azimuth == 0 else "skeleton, left side")
    for azimuth in (60.0, 240.0):
        pictures.append(picture_of(by_weight, azimuth=azimuth, size=size))
        labels.append("weights by joint")
    for label, pose in _test_bends(asset):
        pictures.append(picture_of(asset, pose, size=size))
        labels.append(label)
    return video.write_picture(target, contact_sheet(pictures, 4, labels))


def _x_ray(asset: RiggedAsset, *, azimuth: float, size: int) -> np.ndarray:
    """The bones over a pale picture of the body."""
    camera = fit_orbit(asset.mesh.vertices, azimuth=azimuth, elevation=5.0, width=size, height=size)
    camera = replace(camera, T_camera_world=camera.T_camera_world[None, None], K=camera.K[None, None])
    body = draw_clip(asset, style=ClipStyle(width=size, height=size, ground=False), camera=camera)
    return to_uint8(draw_bones(0.35 * body + 0.65, asset.skeleton, rest_pose(asset.skeleton, frames=1), camera)[0, 0])


def _test_bends(asset: RiggedAsset, *, most: int = 4) -> list[tuple[str, Pose]]:
    """One joint bent by 45 degrees in each of a few limbs: knees and elbows first, then necks and tails."""
    skeleton = asset.skeleton
    order = {"leg": 0, "arm": 1, "wing": 1, "fin": 1, "head": 2, "tail": 3, "spine": 4}
    limbs = [limb for limb in bones_of(skeleton).limbs if limb.side != "right" and len(limb.joints) > 1]
    bends = []
    for limb in sorted(limbs, key=lambda limb: order[limb.kind]):
        joint = limb.joints[1] if limb.kind in ("leg", "arm", "wing", "fin") else limb.joints[0]
        low, high = skeleton.limits[joint, 0].tolist()
        angle = (1.0 if high >= -low else -1.0) * torch.pi / 4
        pose = rest_pose(skeleton)
        rotations = pose.rotations.clone()
        rotations[joint] = compound_to_quaternion(torch.tensor([angle, 0.0, 0.0]), skeleton.axes[joint])
        bends.append((f"{skeleton.names[joint]} bent", replace(pose, rotations=rotations)))
    return bends[:most]


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
            draw_clip(asset, clip.pose[here], style=style, camera=seen, ground=ground)[0]
            for clip in (reference, performed)
        ]
        pair = torch.cat([drawn[0], (1 - GHOST) * drawn[1] + GHOST * drawn[0]], dim=2)
        films.append((pair.clamp(0, 1) * 255).round().to(torch.uint8))
    return torch.cat(films)

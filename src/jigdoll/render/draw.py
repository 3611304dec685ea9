"""Pictures and clips of characters, ready to look at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, rest_pose, skin_transforms
from jigdoll.math.transforms import apply
from jigdoll.protocols import Rasterizer
from jigdoll.render.camera import fit_orbit, follow
from jigdoll.render.ground import (
    Ground,
    cast_shadow,
    composite,
    cut_below_ground,
    draw_ground,
    fitting_ground,
    hide_below_ground,
    quiet_ground,
)
from jigdoll.render.mesh import Look, render_mesh
from jigdoll.render.motion_colors import LegSplats, by_motion, heading_of, in_clay
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.rig.names import read_name
from jigdoll.skin.deform import deform, deform_mesh
from jigdoll.splats.bind import bind
from jigdoll.splats.pose import pose_by_transforms
from jigdoll.types import Camera, Motion, Pose, RiggedAsset, Skeleton, SkinnedGaussians

BACKGROUND = (0.93, 0.94, 0.96)


@dataclass(frozen=True)
class ClipStyle:
    """How a clip is drawn."""

    mode: Literal["mesh", "splats", "clay", "motion"] = "mesh"
    """mesh: textured, shaded triangles, for the final picture. splats: the splats in their own colours. clay: the
    splats as one shaded material. motion: the splats coloured by side and by how they move over the ground, for the
    pocket prior. All but the first are differentiable in the pose."""
    width: int = 320
    height: int = 240
    azimuth: tuple[float, ...] = (60.0,)
    """One view per angle [degrees]: 0 sees the face, 90 the left side."""
    elevation: float = 12.0
    field_of_view: float = 35.0
    smoothing: float = 4.0
    """How lazily the camera follows the box centre [frames]."""
    margin: float = 0.12
    """Free share of the picture around the asset."""
    ground: bool = True
    shadow: bool = True
    depth_cue: float = 0.35
    """Clay: how much brighter near parts are than far ones, which tells the near legs from the far ones."""
    samples: int = 2
    """Mesh: rays per pixel and direction."""
    skeleton: bool = False
    """Draw the bones over the picture (which ends the gradient)."""


def draw_clip(
    asset: RiggedAsset,
    motion: Motion | Pose | None = None,
    *,
    style: ClipStyle = ClipStyle(),
    splats: SkinnedGaussians | None = None,
    rasterizer: Rasterizer | None = None,
    camera: Camera | None = None,
    ground: Ground | None = None,
) -> Float[Tensor, "views frames height width 3"]:
    """A motion (or the rest pose) as pictures in 0..1 with ground, shadow and a camera that follows.

    `splats` default to ones bound to the surface; `camera` `[views frames]` and `ground` to ones that fit the asset.
    """
    pose = _frames(asset.skeleton, motion)
    transforms = skin_transforms(asset.skeleton, pose)
    if style.mode == "mesh":
        shape = deform(asset.mesh.vertices, asset.weights, transforms).detach()
        camera = _following(shape, style) if camera is None else camera
        ground = fitting_ground(shape) if ground is None else ground
        picture = render_mesh(asset.mesh, camera, vertices=shape, samples=style.samples)
        if style.ground:
            picture = cut_below_ground(picture, camera, tolerance=0.03 * ground.cell)
        frames = composite(picture, _background(shape, asset.mesh.faces, camera, style, ground))
    else:
        splats = bind(asset) if splats is None else splats
        frames, camera = draw_splats(
            splats, transforms, style=style, rasterizer=rasterizer, camera=camera, ground=ground
        )
    return draw_bones(frames, asset.skeleton, pose, camera) if style.skeleton else frames


def draw_clip_in_pieces(
    asset: RiggedAsset,
    motion: Motion | Pose | None = None,
    *,
    style: ClipStyle = ClipStyle(),
    splats: SkinnedGaussians | None = None,
    rasterizer: Rasterizer | None = None,
    piece: int = 16,
) -> Iterator[UInt8[np.ndarray, "views frames height width 3"]]:
    """The same clip as bytes, a few frames at a time: long clips in high resolution fit into memory.

    Camera and ground are those of the whole clip. No gradient.
    """
    with torch.no_grad():
        pose = _frames(asset.skeleton, motion)
        if style.mode != "mesh" and splats is None:
            splats = bind(asset)
        points, weights = (asset.mesh.vertices, asset.weights) if splats is None else (splats.means, splats.weights)
        shape = deform(points, weights, skin_transforms(asset.skeleton, pose))
        camera, ground = _following(shape, style), _ground_under(shape, style)
        for start in range(0, shape.shape[0], piece):
            first = max(0, start - 2)  # the neighbours tell how the frames at the ends move
            here = slice(first, start + piece + 2)
            seen = Camera(camera.T_camera_world[:, here], camera.K[:, here], camera.width, camera.height)
            frames = draw_clip(
                asset, pose[here], style=style, splats=splats, rasterizer=rasterizer, camera=seen, ground=ground
            )
            yield to_uint8(frames[:, start - first : start - first + piece])


def draw_splats(
    splats: SkinnedGaussians,
    transforms: Float[Tensor, "frames joints 4 4"],
    *,
    style: ClipStyle,
    rasterizer: Rasterizer | None = None,
    camera: Camera | None = None,
    ground: Ground | None = None,
    legs: LegSplats | None = None,
) -> tuple[Float[Tensor, "views frames height width 3"], Camera]:
    """The splats moved by skin transforms, frame by frame, differentiable in the transforms; and the camera used.

    Everything is drawn where the splats and the transforms live.
    """
    gaussians = pose_by_transforms(splats, transforms)
    shape = gaussians.means.detach()
    camera = _following(shape, style) if camera is None else camera
    ground = _ground_under(shape, style) if ground is None else ground
    if style.mode == "clay":
        gaussians = in_clay(splats, gaussians, transforms, camera, depth_cue=style.depth_cue)
    elif style.mode == "motion":
        gaussians = by_motion(splats, gaussians, legs=legs)
    if style.ground:
        gaussians = hide_below_ground(gaussians)
    rasterizer = default_rasterizer(shape.device) if rasterizer is None else rasterizer
    return composite(rasterizer(gaussians, camera), _background(shape, None, camera, style, ground)), camera


def draw_reference_image(
    splats: SkinnedGaussians,
    transforms: Float[Tensor, "frames joints 4 4"],
    *,
    style: ClipStyle,
    camera: Camera,
    rasterizer: Rasterizer | None = None,
    ground: Ground | None = None,
    legs: LegSplats | None = None,
) -> Float[Tensor, "views height width 3"]:
    """The character at rest where the clip begins, seen by the clip's first cameras, without gradient.

    It stands where the first frame stands and faces as that does.
    """
    with torch.no_grad():
        rest, first = splats.means, pose_by_transforms(splats, transforms[:1]).means
        ahead = heading_of(rest, first)[0]
        place = torch.eye(4).to(rest)
        place[0, 0], place[0, 2], place[2, 0], place[2, 2] = ahead[2], ahead[0], -ahead[0], ahead[2]
        if rest.shape[0]:
            away = first[0].mean(0) - place[:3, :3] @ rest.mean(0)
            place[0, 3], place[2, 3] = away[0], away[2]
        here = Camera(camera.T_camera_world[:, :1], camera.K[:, :1], camera.width, camera.height)
        still = place.expand(1, transforms.shape[1], 4, 4)
        where = {"rasterizer": rasterizer, "camera": here, "ground": ground, "legs": legs}
        picture, _ = draw_splats(splats, still, style=style, **where)
    return picture[:, 0]


def _background(
    shape: Float[Tensor, "frames points 3"],
    faces: Int[Tensor, "faces 3"] | None,
    camera: Camera,
    style: ClipStyle,
    ground: Ground,
) -> Float[Tensor, "*batch height width 3"]:
    if not style.ground:
        return shape.new_tensor(BACKGROUND).expand(camera.height, camera.width, 3)
    shadow = cast_shadow(shape, faces=faces, ground=ground) if style.shadow else None
    return draw_ground(camera, ground=ground, shadow=shadow)


def draw_bones(
    frames: Float[Tensor, "views frames height width 3"], skeleton: Skeleton, pose: Pose, camera: Camera
) -> Float[Tensor, "views frames height width 3"]:
    """The pictures with the bones drawn over them; the character's left in red, its right in blue."""
    from PIL import Image, ImageDraw

    joints = apply(camera.T_camera_world, forward(skeleton, pose)[..., :3, 3].detach())
    pixels = (joints @ camera.K.mT)[..., :2] / joints[..., 2:].clamp_min(1e-6)
    pictures = to_uint8(frames)
    for view, frame in np.ndindex(*pictures.shape[:2]):
        canvas = Image.fromarray(pictures[view, frame])
        pen = ImageDraw.Draw(canvas)
        places = [(float(x), float(y)) for x, y in pixels[view, frame]]
        ahead = joints[view, frame, :, 2] > 1e-3
        for joint, parent in enumerate(skeleton.parents):
            if not bool(ahead[joint]):
                continue
            color = _side_color(skeleton.names[joint])
            if parent >= 0 and bool(ahead[parent]):
                pen.line([places[parent], places[joint]], fill=color, width=2)
            x, y = places[joint]
            pen.ellipse([x - 2, y - 2, x + 2, y + 2], fill=(255, 255, 255), outline=color)
        pictures[view, frame] = np.asarray(canvas)
    return torch.from_numpy(pictures.astype(np.float32) / 255)


def picture_of(
    asset: RiggedAsset,
    pose: Pose | None = None,
    *,
    azimuth: float = 60.0,
    elevation: float = 12.0,
    size: int = 256,
    look: Look = "lit",
) -> UInt8[np.ndarray, "*batch size size 3"]:
    """The asset as triangles before a plain background, at rest or in a pose (or one picture per pose of a batch)."""
    vertices = asset.mesh.vertices if pose is None else deform_mesh(asset, pose)
    camera = fit_orbit(vertices.reshape(-1, 3), azimuth=azimuth, elevation=elevation, width=size, height=size)
    rgba = render_mesh(asset.mesh, camera, vertices=vertices, look=look).rgba
    return to_uint8(rgba[..., :3] + (1 - rgba[..., 3:]) * rgba.new_tensor(BACKGROUND))


def draw_turntable(
    asset: RiggedAsset, *, style: ClipStyle = ClipStyle(), frames: int = 48, splats: SkinnedGaussians | None = None
) -> Float[Tensor, "1 frames height width 3"]:
    """The asset at rest from all around: what to show of a character without a clip."""
    turns = style.azimuth[0] + torch.arange(frames) * (360.0 / max(frames, 1))
    points = asset.mesh.vertices if splats is None else splats.means
    around = _following(points[None], replace(style, azimuth=tuple(turns.tolist())))  # [frames 1]
    camera = Camera(around.T_camera_world.transpose(0, 1), around.K.transpose(0, 1), style.width, style.height)
    still = rest_pose(asset.skeleton, frames=frames)
    return draw_clip(asset, still, style=style, splats=splats, camera=camera)


def contact_sheet(
    images: Sequence[np.ndarray] | np.ndarray, columns: int, labels: Sequence[str] | None = None, *, gap: int = 2
) -> UInt8[np.ndarray, "height width 3"]:
    """Pictures in rows, in reading order, with a caption under each one on request."""
    from PIL import Image, ImageDraw

    pictures = [np.asarray(image)[..., :3] for image in images]
    if not pictures:
        return np.full((1, 1, 3), 255, np.uint8)
    pictures = [image if image.dtype == np.uint8 else to_uint8(torch.from_numpy(image)) for image in pictures]
    height, width = max(image.shape[0] for image in pictures), max(image.shape[1] for image in pictures)
    caption = 14 if labels else 0
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + caption + gap) + gap, columns * (width + gap) + gap, 3), 255, np.uint8)
    canvas = Image.fromarray(sheet)
    pen = ImageDraw.Draw(canvas)
    for place, image in enumerate(pictures):
        x, y = gap + place % columns * (width + gap), gap + place // columns * (height + caption + gap)
        canvas.paste(Image.fromarray(np.ascontiguousarray(image)), (x, y))
        if labels and place < len(labels):
            pen.text((x + 2, y + height + 1), labels[place], fill=(0, 0, 0))
    return np.asarray(canvas)


def to_uint8(picture: Float[Tensor, "*shape"]) -> np.ndarray:
    """Values in 0..1 to bytes."""
    return (picture.detach().clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()


def _frames(skeleton: Skeleton, motion: Motion | Pose | None) -> Pose:
    """The motion's poses with one batch axis."""
    if motion is None:
        return rest_pose(skeleton, frames=1)
    pose = motion.pose if isinstance(motion, Motion) else motion
    if pose.root.ndim == 1:
        return pose[None]
    if pose.root.ndim != 2:
        raise JigdollError(f"a clip has one axis of frames, this pose has {pose.root.ndim - 1}; draw them one by one")
    return pose


def _ground_under(shape: Float[Tensor, "frames points 3"], style: ClipStyle) -> Ground:
    return quiet_ground(shape) if style.mode in ("clay", "motion") else fitting_ground(shape)


def _following(shape: Float[Tensor, "frames points 3"], style: ClipStyle) -> Camera:
    return follow(
        shape,
        azimuth=torch.tensor(style.azimuth, dtype=torch.float32),
        elevation=style.elevation,
        width=style.width,
        height=style.height,
        field_of_view=style.field_of_view,
        smoothing=style.smoothing,
        margin=style.margin,
    )


def _side_color(name: str) -> tuple[int, int, int]:
    return {"left": (214, 60, 50), "right": (50, 90, 214)}.get(read_name(name).side or "", (60, 60, 60))

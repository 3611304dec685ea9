"""Everything about a distillation that stays the same: body, trajectory, splats, texts; and how a step is rendered.

A character is measured on the host, where files are; from then on everything lives where the prior does.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.distill.body import Body, body_of
from jigdoll.distill.config import DistillPlan, resolve
from jigdoll.distill.guidance import Texts, embed_texts
from jigdoll.distill.options import AnimateOptions
from jigdoll.distill.trajectory import Trajectory, make_trajectory, rest_on_path
from jigdoll.errors import JigdollError
from jigdoll.kinematics import rest_transforms, skin_transforms
from jigdoll.language.read import read
from jigdoll.math.devices import to_device
from jigdoll.math.transforms import rigid_inverse
from jigdoll.protocols import Rasterizer, VideoPrior
from jigdoll.render.camera import follow
from jigdoll.render.draw import ClipStyle, draw_reference_image, draw_splats
from jigdoll.render.ground import Ground, fitting_ground, quiet_ground
from jigdoll.render.motion_colors import LegSplats, find_legs
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.render.splat_asset import splat_asset
from jigdoll.rig.anatomy import Anatomy
from jigdoll.skin.deform import deform
from jigdoll.splats.bind import bind
from jigdoll.splats.fit import FitConfig
from jigdoll.splats.pose import select
from jigdoll.types import RiggedAsset, SkinnedGaussians
from jigdoll.zoo.gaits.pace import Pace, pace_of

_PROBES = 300
"""Splats that the camera measures the character by."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The fixed part of a distillation, on the prior's device."""

    plan: DistillPlan
    prompt: str
    prior: VideoPrior
    texts: Texts
    trajectory: Trajectory
    body: Body
    splats: SkinnedGaussians
    legs: LegSplats
    """Of the splats."""
    probes: SkinnedGaussians
    """A few of the splats."""
    probes_on_path: Float[Tensor, "frames probes 3"]
    """The probes at rest along the root's path: what a camera follows that does not hang on the motion."""
    T_joint_world_rest: Float[Tensor, "joints 4 4"]
    ground: Ground
    style: ClipStyle
    rasterizer: Rasterizer


@dataclass(frozen=True)
class CameraSample:
    """What one step renders: which frames, from where, over which squares."""

    first: int
    azimuth: tuple[float, ...]
    elevation: float
    margin: float
    phase: tuple[float, float]


def make_scene(
    anatomy: Anatomy,
    prompt: str,
    prior: VideoPrior,
    options: AnimateOptions = AnimateOptions(),
    *,
    splats: SkinnedGaussians | None = None,
    rasterizer: Rasterizer | None = None,
) -> Scene:
    """Read the sentence, decide the plan for this body, and bring all of it to the prior's device.

    `splats` and `rasterizer` are those that suit the prior where they are not given: fitted splats for one that sees
    real colours, the fastest rasterizer of its device.
    """
    asset = anatomy.asset
    if not asset.is_rigged:
        raise JigdollError(f"{asset.name} has no skeleton to move; rig it first")
    device, look = prior.device, prior.defaults.look
    pace = pace_of(read(prompt), asset.skeleton)
    plan = resolve(options, prior.defaults, pace, legs=len(anatomy.legs))
    pace = replace(pace, speed=plan.curves.speed, period=plan.curves.period)
    trajectory = _trajectory(anatomy, plan, pace)
    body = body_of(anatomy, trajectory.skeleton, pace)
    trajectory = to_device(trajectory, device)
    rasterizer = default_rasterizer(device) if rasterizer is None else rasterizer
    splats = to_device(_splats(asset, plan, device, rasterizer) if splats is None else splats, device)
    step = max(1, splats.means.shape[0] // _PROBES)
    probes = select(splats, torch.arange(0, splats.means.shape[0], step, device=device))
    on_path = skin_transforms(trajectory.skeleton, rest_on_path(trajectory))
    cameras = plan.cameras
    return Scene(
        plan=plan,
        prompt=prompt,
        prior=prior,
        texts=embed_texts(prior, prompt, plan.guidance.negative_prompt),
        trajectory=trajectory,
        body=to_device(body, device),
        splats=splats,
        legs=find_legs(splats.means),
        probes=probes,
        probes_on_path=deform(probes.means, probes.weights, on_path),
        T_joint_world_rest=rigid_inverse(rest_transforms(trajectory.skeleton)),
        ground=fitting_ground(splats.means) if look == "color" else quiet_ground(splats.means),
        style=ClipStyle(
            mode="splats" if look == "color" else look,
            width=cameras.width,
            height=cameras.height,
            ground=cameras.ground,
            shadow=cameras.shadow,
        ),
        rasterizer=rasterizer,
    )


def _splats(asset: RiggedAsset, plan: DistillPlan, device: torch.device, rasterizer: Rasterizer) -> SkinnedGaussians:
    """The character as splats: as they lie on its surface, or fitted to pictures of it."""
    cameras = plan.cameras
    if not cameras.fit_steps:
        return bind(asset, count=cameras.splats, seed=0)
    config = FitConfig(iterations=cameras.fit_steps, max_gaussians=cameras.splats)
    # Splitting adds to the splats, up to the number that is wanted.
    start = max(1, cameras.splats * 2 // 3)
    return splat_asset(asset, count=start, config=config, rasterizer=rasterizer, device=device)


def _trajectory(anatomy: Anatomy, plan: DistillPlan, pace: Pace) -> Trajectory:
    curves = plan.curves
    return make_trajectory(
        anatomy,
        frames=plan.frames,
        fps=plan.fps,
        basis=curves.basis,
        period=pace.period,
        speed=pace.speed,
        turn=pace.turn,
        jump_height=pace.rise,
        stiffness=curves.stiffness,
        arms=curves.arms,
        sideways=curves.sideways,
        root_move=curves.root_move,
        root_turn=curves.root_turn,
        bend_bound=curves.bend_bound,
        side_bound=curves.side_bound,
        limited=curves.limited,
    )


def sample_camera(scene: Scene, generator: torch.Generator) -> CameraSample:
    """Random cameras on the sides that the prior knows, a random window of a long clip, a random place on the board."""
    cameras = scene.plan.cameras
    first = int(torch.randint(scene.trajectory.frames - cameras.frames + 1, (), generator=generator))
    draws = torch.rand(cameras.views + 4, generator=generator).tolist()
    sides = torch.rand(cameras.views, generator=generator).tolist()
    low, high = cameras.azimuth
    azimuth = [low + (high - low) * u for u in draws[: cameras.views]]
    azimuth = [-a if side < 0.5 else a for a, side in zip(azimuth, sides, strict=True)]
    (low, high), (near, far) = cameras.elevation, cameras.margin
    cell = scene.ground.cell
    return CameraSample(
        first=first,
        azimuth=tuple(azimuth),
        elevation=low + (high - low) * draws[-1],
        margin=near + (far - near) * draws[-4],
        phase=(2 * cell * draws[-2], 2 * cell * draws[-3]),
    )


def render_window(
    scene: Scene, T_world_joint: Float[Tensor, "frames joints 4 4"], sample: CameraSample
) -> tuple[Float[Tensor, "views window height width 3"], Float[Tensor, "views height width 3"] | None]:
    """The window of the clip as the prior's kind of video, differentiable in the joints; and who moves, if it asks."""
    window = slice(sample.first, sample.first + scene.plan.cameras.frames)
    transforms = T_world_joint[window] @ scene.T_joint_world_rest
    shape = scene.probes_on_path[window]
    if scene.plan.cameras.follow == "shape":
        with torch.no_grad():
            shape = deform(scene.probes.means, scene.probes.weights, transforms)
    style = replace(scene.style, azimuth=sample.azimuth, elevation=sample.elevation, margin=sample.margin)
    camera = follow(
        shape,
        azimuth=torch.tensor(sample.azimuth),
        elevation=sample.elevation,
        width=style.width,
        height=style.height,
        field_of_view=style.field_of_view,
        smoothing=style.smoothing,
        margin=style.margin,
    )
    ground = replace(scene.ground, phase=sample.phase)
    how = {"style": style, "rasterizer": scene.rasterizer, "camera": camera, "ground": ground, "legs": scene.legs}
    video, _ = draw_splats(scene.splats, transforms, **how)
    wanted = scene.prior.defaults.reference_image
    return video, draw_reference_image(scene.splats, transforms, **how) if wanted else None

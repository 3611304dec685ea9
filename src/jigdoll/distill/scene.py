"""Everything about a distillation that stays the same: body, trajectory, splats, texts; and how a step is filmed."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.distill.body import Body, body_of
from jigdoll.distill.config import DistillConfig, settle, weights_of
from jigdoll.distill.guidance import Texts, embed_texts
from jigdoll.distill.losses import Weights
from jigdoll.distill.tempo import Tempo, tempo_of
from jigdoll.distill.trajectory import Trajectory, glide_pose, make_trajectory
from jigdoll.errors import JigdollError
from jigdoll.kinematics import rest_transforms, skin_transforms
from jigdoll.math.devices import to_device
from jigdoll.math.transforms import rigid_inverse
from jigdoll.protocols import Rasterizer, VideoPrior
from jigdoll.render.camera import follow
from jigdoll.render.draw import ClipStyle, draw_reference_image, draw_splats
from jigdoll.render.ground import Ground, fitting_ground, quiet_ground
from jigdoll.render.motion_colors import LegSplats, find_legs
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.rig.limbs import find_limbs
from jigdoll.skin.deform import deform
from jigdoll.splats.bind import bind
from jigdoll.splats.pose import select
from jigdoll.types import RiggedAsset, SkinnedGaussians
from jigdoll.zoo.gaits.actions import whole_cycles

_PROBES = 300
"""Splats that the camera measures the character by."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The fixed part of a distillation."""

    config: DistillConfig
    """Settled: nothing in it is None but lengths that follow."""
    prompt: str
    prior: VideoPrior
    texts: Texts
    tempo: Tempo
    trajectory: Trajectory
    body: Body
    weights: Weights
    splats: SkinnedGaussians
    legs: LegSplats
    probes: SkinnedGaussians
    """A few of the splats."""
    glide: Float[Tensor, "frames probes 3"]
    """The probes at rest along the course: what a camera follows that does not hang on the motion."""
    T_joint_world_rest: Float[Tensor, "joints 4 4"]
    ground: Ground
    style: ClipStyle
    rasterizer: Rasterizer


@dataclass(frozen=True)
class Shot:
    """What one step films: which frames, from where, over which squares."""

    first: int
    azimuth: tuple[float, ...]
    elevation: float
    margin: float
    phase: tuple[float, float]


def set_stage(
    asset: RiggedAsset,
    prompt: str,
    prior: VideoPrior,
    config: DistillConfig,
    *,
    splats: SkinnedGaussians | None = None,
    rasterizer: Rasterizer | None = None,
) -> Stage:
    """Measure the character, read the sentence and settle the configuration."""
    if not asset.is_rigged:
        raise JigdollError(f"{asset.name} has no skeleton to move; rig it first")
    tempo = tempo_of(prompt, asset.skeleton)
    changes = {name: getattr(config, name) for name in ("speed", "period") if getattr(config, name) is not None}
    tempo = replace(tempo, **changes)
    legs = sum(limb.kind == "leg" for limb in find_limbs(asset.skeleton))
    config = settle(config, prior.defaults, tempo, legs=legs)
    if config.loop:
        seconds = (_frames(config, prior.defaults.fps) - 1) / prior.defaults.fps
        tempo = replace(tempo, period=whole_cycles(tempo.period, seconds))
    # Measured on the host, where the asset is; from here on everything is where the prior is.
    trajectory = _trajectory(asset, config, tempo, fps=prior.defaults.fps)
    body = to_device(body_of(asset, trajectory.skeleton, tempo), prior.device)
    trajectory = to_device(trajectory, prior.device)
    splats = bind(asset, count=config.splats, seed=0) if splats is None else splats
    legs = to_device(find_legs(to_device(splats, "cpu").means), prior.device)
    splats = to_device(splats, prior.device)
    step = max(1, splats.means.shape[0] // _PROBES)
    probes = select(splats, torch.arange(0, splats.means.shape[0], step, device=prior.device))
    look = prior.defaults.look
    assert config.width is not None and config.height is not None and config.negative_prompt is not None
    return Stage(
        config=config,
        prompt=prompt,
        prior=prior,
        texts=embed_texts(prior, prompt, config.negative_prompt),
        tempo=tempo,
        trajectory=trajectory,
        body=body,
        weights=weights_of(config),
        splats=splats,
        legs=legs,
        probes=probes,
        glide=deform(probes.means, probes.weights, skin_transforms(trajectory.skeleton, glide_pose(trajectory))),
        T_joint_world_rest=rigid_inverse(rest_transforms(trajectory.skeleton)),
        ground=fitting_ground(splats.means) if look == "color" else quiet_ground(splats.means),
        style=ClipStyle(
            mode="splats" if look == "color" else look,
            width=config.width,
            height=config.height,
            ground=config.board,
            shadow=config.shadow,
        ),
        rasterizer=rasterizer or default_rasterizer(prior.device),
    )


def _trajectory(asset: RiggedAsset, config: DistillConfig, tempo: Tempo, *, fps: float) -> Trajectory:
    assert config.basis is not None
    assert config.bend_bound is not None and config.side_bound is not None
    assert config.stiffness is not None and config.arms is not None
    return make_trajectory(
        asset.skeleton,
        frames=_frames(config, fps),
        fps=fps,
        basis=config.basis,
        terms=config.terms,
        period=tempo.period,
        speed=tempo.speed,
        turn=tempo.turn,
        rise=tempo.rise,
        stiffness=config.stiffness,
        arms=config.arms,
        sideways=config.sideways,
        root_move=config.root_move,
        root_turn=config.root_turn,
        bend_bound=config.bend_bound,
        side_bound=config.side_bound,
        limited=config.limited,
        frozen=config.freeze_first,
    )


def _frames(config: DistillConfig, fps: float) -> int:
    """How long the clip is; no shorter than what the prior sees at once."""
    assert config.frames is not None
    return config.frames if config.seconds is None else max(config.frames, round(config.seconds * fps) + 1)


def choose_shot(stage: Stage, generator: torch.Generator) -> Shot:
    """Random cameras on the sides that the prior knows, a random window of a long clip, a random place on the board."""
    config = stage.config
    assert config.frames is not None
    first = int(torch.randint(stage.trajectory.frames - config.frames + 1, (), generator=generator))
    draws = torch.rand(config.views + 4, generator=generator).tolist()
    sides = torch.rand(config.views, generator=generator).tolist()
    low, high = config.azimuth
    azimuth = [low + (high - low) * u for u in draws[: config.views]]
    azimuth = [-a if config.mirror and side < 0.5 else a for a, side in zip(azimuth, sides, strict=True)]
    (low, high), (near, far) = config.elevation, config.margin
    cell = stage.ground.cell
    return Shot(
        first=first,
        azimuth=tuple(azimuth),
        elevation=low + (high - low) * draws[-1],
        margin=near + (far - near) * draws[-4],
        phase=(2 * cell * draws[-2], 2 * cell * draws[-3]),
    )


def film(
    stage: Stage, T_world_joint: Float[Tensor, "frames joints 4 4"], shot: Shot
) -> tuple[Float[Tensor, "views window height width 3"], Float[Tensor, "views height width 3"] | None]:
    """The window of the clip as the prior's kind of video, differentiable in the joints; and who moves, if it asks."""
    assert stage.config.frames is not None
    transforms = T_world_joint[shot.first : shot.first + stage.config.frames] @ stage.T_joint_world_rest
    shape = stage.glide[shot.first : shot.first + stage.config.frames]
    if stage.config.follow == "shape":
        with torch.no_grad():
            shape = deform(stage.probes.means, stage.probes.weights, transforms)
    style = replace(stage.style, azimuth=shot.azimuth, elevation=shot.elevation, margin=shot.margin)
    camera = follow(
        shape,
        azimuth=torch.tensor(shot.azimuth),
        elevation=shot.elevation,
        width=style.width,
        height=style.height,
        field_of_view=style.field_of_view,
        smoothing=style.smoothing,
        margin=style.margin,
    )
    ground = replace(stage.ground, phase=shot.phase)
    scene = {"style": style, "rasterizer": stage.rasterizer, "camera": camera, "ground": ground, "legs": stage.legs}
    video, _ = draw_splats(stage.splats, transforms, **scene)
    wanted = stage.prior.defaults.reference_image
    return video, draw_reference_image(stage.splats, transforms, **scene) if wanted else None

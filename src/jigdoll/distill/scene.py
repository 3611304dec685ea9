"""Everything about a distillation that stays the same: body, trajectory, splats, texts; and how a step is rendered.

A character is measured on the host, where files are; from then on everything lives where the prior does.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.distill.body import Body, body_of, capsule_overlaps
from jigdoll.distill.config import DistillPlan, resolve
from jigdoll.distill.guidance import Texts, embed_texts
from jigdoll.distill.losses import DraftFeet, Naturalness
from jigdoll.distill.options import AnimateOptions
from jigdoll.distill.trajectory import Trajectory, make_trajectory, start_pose
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, rest_transforms
from jigdoll.language.read import read
from jigdoll.math.devices import to_device
from jigdoll.math.transforms import rigid_inverse
from jigdoll.motion import join
from jigdoll.protocols import Rasterizer, VideoPrior
from jigdoll.render.camera import follow
from jigdoll.render.draw import ClipStyle, draw_reference_image, draw_splats
from jigdoll.render.ground import Ground, fitting_ground, quiet_ground
from jigdoll.render.motion_colors import LegSplats, find_legs
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.render.splat_asset import splat_asset
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import stances
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.skin.deform import deform
from jigdoll.splats.bind import bind
from jigdoll.splats.fit import FitConfig
from jigdoll.splats.pose import select
from jigdoll.types import Motion, Pose, RiggedAsset, SkinnedGaussians
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
    """The probes of the motion that it starts from: what a camera follows that does not hang on the curves."""
    T_joint_world_rest: Float[Tensor, "joints 4 4"]
    ground: Ground
    style: ClipStyle
    rasterizer: Rasterizer
    draft: DraftFeet | None = None
    """What the feet do in the draft, where there is one."""
    naturalness: Naturalness | None = None


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
    draft: Motion | None = None,
    naturalness: Naturalness | None = None,
    splats: SkinnedGaussians | None = None,
    rasterizer: Rasterizer | None = None,
) -> Scene:
    """Read the sentence, decide the plan for this body, and bring all of it to the prior's device.

    With a `draft`, a motion of this body, the curves are a small residual around it, as long as it is, and no word
    decides about the gait. `naturalness` says how far each pose is from what is natural (a pose model's score).
    `splats` and `rasterizer` are those that suit the prior where they are not given: fitted splats for one that sees
    real colours, the fastest rasterizer of its device.
    """
    asset = anatomy.asset
    if not asset.is_rigged:
        raise JigdollError(f"{asset.name} has no skeleton to move; rig it first")
    device, look = prior.device, prior.defaults.look
    draft = None if draft is None else _plain(draft, asset)
    pace = pace_of(read(prompt), asset.skeleton) if draft is None else _pace_of_draft(draft)
    seconds = None if draft is None else draft.seconds
    plan = resolve(options, prior.defaults, pace, legs=len(anatomy.legs), draft=seconds)
    pace = replace(pace, speed=plan.curves.speed, period=plan.curves.period)
    trajectory = _trajectory(anatomy, plan, pace, draft)
    body = body_of(anatomy, trajectory.skeleton, pace)
    T_start = forward(trajectory.skeleton, start_pose(trajectory, trajectory.times()))
    feet = None
    if draft is not None:
        t = trajectory.times() % draft.seconds if plan.loop else trajectory.times()
        feet = DraftFeet(_stands(anatomy, draft, t, body), T_start[:, body.feet, :3, 3])
        # What the draft does is allowed.
        body = replace(body, pair_reach=body.pair_reach - capsule_overlaps(T_start, body).amax(0))
    trajectory, T_start = to_device(trajectory, device), T_start.to(device)
    rasterizer = default_rasterizer(device) if rasterizer is None else rasterizer
    splats = to_device(_splats(asset, plan, device, rasterizer) if splats is None else splats, device)
    step = max(1, splats.means.shape[0] // _PROBES)
    probes = select(splats, torch.arange(0, splats.means.shape[0], step, device=device))
    T_joint_world_rest = rigid_inverse(rest_transforms(trajectory.skeleton))
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
        probes_on_path=deform(probes.means, probes.weights, T_start @ T_joint_world_rest),
        T_joint_world_rest=T_joint_world_rest,
        ground=fitting_ground(splats.means) if look == "color" else quiet_ground(splats.means),
        style=ClipStyle(
            mode="splats" if look == "color" else look,
            width=cameras.width,
            height=cameras.height,
            ground=cameras.ground,
            shadow=cameras.shadow,
        ),
        rasterizer=rasterizer,
        draft=to_device(feet, device),
        naturalness=naturalness,
    )


def _plain(draft: Motion, asset: RiggedAsset) -> Motion:
    """The draft on the host in single precision, or a refusal of one of another body."""
    if draft.pose.rotations.shape[1] != len(asset.skeleton) or len(draft) < 2:
        raise JigdollError(
            f"a draft of {len(draft)} frames and {draft.pose.rotations.shape[1]} joints is no motion of {asset.name}, "
            f"which has {len(asset.skeleton)} joints; make it on the working copy (rig.reparent)"
        )
    pose = to_device(draft, "cpu").pose
    extra = (None if part is None else part.float() for part in (pose.offsets, pose.scales))
    return replace(draft, pose=Pose(pose.root.float(), pose.rotations.float(), *extra))


def _pace_of_draft(draft: Motion) -> Pace:
    """What a draft says itself: its speed over the ground, and its own length for a period."""
    way = float((draft.pose.root[-1] - draft.pose.root[0])[[0, 2]].norm())
    return Pace("still", way / draft.seconds, draft.seconds, 0.0, 0.0, None)


def _stands(anatomy: Anatomy, draft: Motion, t: Float[Tensor, " frames"], body: Body) -> Float[Tensor, "frames feet"]:
    """When the draft's feet stand."""
    legs = [leg.parts.root for leg in anatomy.legs]
    stands = torch.from_numpy(stances(encode(anatomy, draft, travel=False), anatomy)).float()
    frames = (t * draft.fps).round().long().clamp_max(len(draft) - 1)
    return stands[frames][:, [legs.index(hip) for hip in body.hips]]


def _splats(asset: RiggedAsset, plan: DistillPlan, device: torch.device, rasterizer: Rasterizer) -> SkinnedGaussians:
    """The character as splats: as they lie on its surface, or fitted to pictures of it."""
    cameras = plan.cameras
    if not cameras.fit_steps:
        return bind(asset, count=cameras.splats, seed=0)
    config = FitConfig(iterations=cameras.fit_steps, max_gaussians=cameras.splats)
    # Splitting adds to the splats, up to the number that is wanted.
    start = max(1, cameras.splats * 2 // 3)
    return splat_asset(asset, count=start, config=config, rasterizer=rasterizer, device=device)


def _trajectory(anatomy: Anatomy, plan: DistillPlan, pace: Pace, draft: Motion | None) -> Trajectory:
    curves, seconds = plan.curves, None if draft is None else draft.seconds
    if draft is not None and plan.loop:
        # A prior that sees more than one round is shown the next one.
        one = draft
        while draft.seconds < (plan.frames - 1) / plan.fps:
            draft = join(draft, one, anatomy.skeleton, overlap=1)
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
        draft=draft,
        seconds=seconds,
    )


def windows(frames: int, window: int) -> list[int]:
    """Where windows begin that cover a clip together, each sharing at least half with the one before."""
    last = frames - window
    count = -(-last // max(window // 2, 1)) + 1
    return [round(i * last / max(count - 1, 1)) for i in range(count)]


def sample_camera(scene: Scene, generator: torch.Generator, step: int | None = None) -> CameraSample:
    """Random cameras on the sides that the prior knows, a window of a long clip, a random place on the board.

    From a draft each `step` takes the next window; from rest, and without a step, it is a random one.
    """
    cameras = scene.plan.cameras
    first = int(torch.randint(scene.trajectory.frames - cameras.frames + 1, (), generator=generator))
    if scene.draft is not None and step is not None:
        starts = windows(scene.trajectory.frames, cameras.frames)
        first = starts[step % len(starts)]
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

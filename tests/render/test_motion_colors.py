"""The colours that guidance looks at."""

import math

import pytest
import torch

from jigdoll import zoo
from jigdoll.kinematics import rest_pose, skin_transforms
from jigdoll.math.devices import to_device
from jigdoll.render.camera import fit_orbit
from jigdoll.render.draw import ClipStyle, draw_reference_image, draw_splats
from jigdoll.render.motion_colors import PACE, SWINGS, TURN, by_motion, find_legs, in_clay, nearest_reference, rhythm
from jigdoll.rig.limbs import find_limbs
from jigdoll.splats.bind import bind
from jigdoll.splats.pose import pose_by_transforms
from jigdoll.types import Pose
from jigdoll.zoo.gaits import reference_clip
from pretended_device import pretended_device

DOG = zoo.make("dog")
SPLATS = bind(DOG, count=400)
HEIGHT = SPLATS.means[:, 1] / SPLATS.means[:, 1].max()
FEET, BODY = HEIGHT < 0.08, HEIGHT > 0.7


def colors_of(pose):
    return by_motion(SPLATS, pose_by_transforms(SPLATS, skin_transforms(DOG.skeleton, pose))).colors


def gliding(step, turn=0.0, frames=4):
    """The rest pose turned about the vertical and moved on by `step` in each frame."""
    still = rest_pose(DOG.skeleton, frames=frames)
    rotations = still.rotations.clone()
    half = torch.tensor([math.cos(turn / 2), 0.0, math.sin(turn / 2), 0.0])
    rotations[:, 0] = half
    return Pose(torch.arange(frames)[:, None] * torch.tensor(step), rotations)


def test_what_stands_is_grey_but_for_a_trace_of_the_side_on_the_body():
    colors = colors_of(gliding([0.0, 0.0, 0.0]))
    torch.testing.assert_close(colors[..., 1:], torch.full_like(colors[..., 1:], 0.5))
    red, side = colors[..., 0], SPLATS.means[:, 0]
    assert float(red[:, BODY & (side > 0.05)].max()) < 0.5 < float(red[:, BODY & (side < -0.05)].min())
    torch.testing.assert_close(red[:, FEET], torch.full_like(red[:, FEET], 0.5), atol=2e-3, rtol=0)


def test_the_way_ahead_is_green_wherever_the_body_faces_and_backwards_is_not():
    size = float((SPLATS.means.amax(0) - SPLATS.means.amin(0)).norm())
    expected = 0.5 + 0.45 * math.tanh(1.0)
    for turn in (0.0, 1.0, math.pi):
        step = [PACE * size * math.sin(turn), 0.0, PACE * size * math.cos(turn)]
        green = colors_of(gliding(step, turn))[..., 1]
        torch.testing.assert_close(green, torch.full_like(green, expected), atol=2e-3, rtol=0)
        back = colors_of(gliding([-x for x in step], turn))[..., 1]
        torch.testing.assert_close(back, torch.full_like(back, 1 - expected), atol=2e-3, rtol=0)


def circling(turn, frames=24):
    """The rest pose that comes round to the left by `turn` in each frame."""
    angle = 0.5 * turn * torch.arange(frames)
    rotations = rest_pose(DOG.skeleton, frames=frames).rotations.clone()
    rotations[:, 0] = torch.stack([angle.cos(), 0 * angle, angle.sin(), 0 * angle], -1)
    return Pose(torch.zeros(frames, 3), rotations)


def test_who_turns_left_loses_red_and_who_turns_right_gains_it_on_the_body():
    still, left, right = (colors_of(circling(turn))[:, BODY, 0] for turn in (0.0, TURN, -TURN))
    torch.testing.assert_close(still - left, right - still, atol=1e-4, rtol=0)
    assert float((still - left).min()) > 0.45 * math.tanh(1.0) * 0.7


def test_the_sway_of_a_walk_is_no_turn():
    walk = reference_clip(DOG, "walk", seconds=2.0, fps=12.0).motion.pose
    still = colors_of(circling(0.0, frames=1))[0, BODY, 0]
    assert float((colors_of(walk)[:, BODY, 0] - still).abs().max()) < 0.1


def test_guidance_can_ask_for_a_turn():
    turn = torch.tensor(0.01, requires_grad=True)
    colors_of(circling(turn))[:, BODY, 0].sum().backward()
    assert turn.grad is not None and float(turn.grad) < 0


def test_planted_feet_of_a_walk_show_no_green_and_swinging_ones_much():
    clip = reference_clip(DOG, "walk", seconds=2.0, fps=12.0).motion.pose
    green = colors_of(clip)[:, FEET, 1]
    assert float((green - 0.5).abs().quantile(0.3)) < 0.05  # in stance more than half of the time
    assert float(green.quantile(0.95)) > 0.85


def shown_by_feet(splats, skeleton, pose):
    """Red, green and blue of the feet over the clip, zero where nothing happens."""
    pose = Pose(pose.root[:24].float(), pose.rotations[:24].float())
    colors = by_motion(splats, pose_by_transforms(splats, skin_transforms(skeleton, pose))).colors
    feet = splats.means[:, 1] < 0.06 * float(splats.means[:, 1].max())
    return (colors[:, feet] - 0.5) / 0.45


def late(clip, skeleton, wanted):
    """The clip with some of its legs half a cycle ahead."""
    whole, shift = clip.motion.pose, round(0.5 * clip.period * clip.motion.fps)
    rotations = whole.rotations[:24].clone()
    for limb in find_limbs(skeleton):
        if limb.kind == "leg" and wanted(limb):
            rotations[:, list(limb.joints)] = whole.rotations[shift : shift + 24, list(limb.joints)]
    return Pose(whole.root[:24], rotations)


@pytest.mark.parametrize("species", ["dog", "horse", "human", "ostrich"])
def test_feet_lose_blue_where_legs_across_swing_in_turn_and_gain_it_where_they_swing_at_once(species):
    asset = zoo.make(species)
    splats, clip = bind(asset, count=400), reference_clip(asset, "walk", seconds=4.0, fps=12.0)
    in_step = shown_by_feet(splats, asset.skeleton, clip.motion.pose)[..., 2]
    parted = shown_by_feet(splats, asset.skeleton, late(clip, asset.skeleton, lambda leg: leg.side == "left"))[..., 2]
    assert float(in_step.quantile(0.95)) < -0.3 and float(parted.quantile(0.05)) > 0.3


@pytest.mark.parametrize("species", ["dog", "horse", "elephant"])
def test_feet_are_red_where_the_swing_passes_from_hind_to_fore_and_lose_red_where_it_passes_back(species):
    asset = zoo.make(species)
    splats, clip = bind(asset, count=400), reference_clip(asset, "walk", seconds=4.0, fps=12.0)
    lateral = shown_by_feet(splats, asset.skeleton, clip.motion.pose)[..., 0]
    diagonal = shown_by_feet(splats, asset.skeleton, late(clip, asset.skeleton, lambda leg: leg.rank == 0))[..., 0]
    assert float(lateral.median()) > 0.6 and float(diagonal.median()) < -0.6


def test_on_two_legs_hardly_any_swing_passes_along():
    human = zoo.make("human")
    splats, clip = bind(human, count=400), reference_clip(human, "walk", seconds=2.0, fps=12.0)
    red = shown_by_feet(splats, human.skeleton, clip.motion.pose)[..., 0]
    assert float(red.abs().mean()) < 0.2  # heel and toe are not quite one


@pytest.mark.parametrize("lag", [0.0, 0.25, 0.5, 0.75])
@pytest.mark.parametrize("frames", [24, 48])
def test_the_rhythm_of_two_sines_is_the_cosine_and_the_sine_of_their_lag(lag, frames):
    # u = a sin(w t), v = a sin(w t - x): mean(u v) = a^2 cos(x) / 2 and mean(u v' - v u') = a^2 w sin(x)
    # where v comes after u; mean(u^2) = a^2 / 2. A difference of frames t - 1 and t + 1 sees sin(w) for w.
    turn, size = math.tau / 12, 0.5
    time = torch.arange(frames, dtype=torch.float64) * turn
    both = size * torch.stack([time.sin(), (time - math.tau * lag).sin()], -1)
    together, passes = rhythm(both, torch.tensor([1, 0]))
    share = 0.5 * size**2 / (0.5 * size**2 + SWINGS)
    expected = torch.full_like(both, share * math.cos(math.tau * lag))
    torch.testing.assert_close(together, expected, atol=0.06, rtol=0)
    first = math.tanh(6 * share * math.sin(turn) * math.sin(math.tau * lag))
    torch.testing.assert_close(passes, torch.tensor([first, -first]).expand_as(passes).double(), atol=0.08, rtol=0)


def test_legs_that_stand_have_no_rhythm():
    together, passes = rhythm(torch.full((24, 4), 0.7), torch.tensor([1, 0, 3, 2]))
    assert float(together.abs().max()) < 1e-6 and float(passes.abs().max()) < 1e-6


def test_the_colours_hold_the_gradient_of_the_motion():
    clip = reference_clip(DOG, "walk", seconds=0.5, fps=12.0).motion.pose
    root = clip.root.double().requires_grad_()

    def loss(root):
        return colors_of(Pose(root.float(), clip.rotations))[2, :, 1].sum().double()

    (gradient,) = torch.autograd.grad(loss(root), root)
    ahead = torch.zeros_like(root)
    ahead[3, 2] = 1e-3
    with torch.no_grad():
        change = (loss(root + ahead) - loss(root - ahead)) / 2e-3
    torch.testing.assert_close(gradient[3, 2], change, rtol=0.02, atol=1e-3)


def test_guidance_can_ask_legs_to_fall_into_step():
    """Finite differences of what the feet show, as the left legs go from out of step to in step."""
    clip = reference_clip(DOG, "walk", seconds=4.0, fps=12.0)
    parted = late(clip, DOG.skeleton, lambda leg: leg.side == "left").rotations
    share = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)

    def blue(share):
        rotations = torch.nn.functional.normalize(torch.lerp(parted, clip.motion.pose.rotations[:24], share), dim=-1)
        return colors_of(Pose(clip.motion.pose.root[:24].float(), rotations.float()))[:, FEET, 2].sum().double()

    (gradient,) = torch.autograd.grad(blue(share), share)
    with torch.no_grad():
        change = (blue(share + 0.01) - blue(share - 0.01)) / 0.02
    assert float(gradient) < 0
    torch.testing.assert_close(gradient, change, rtol=0.02, atol=1e-3)


def test_a_portrait_stands_where_the_clip_begins_and_faces_as_it_does():
    style = ClipStyle("motion", 56, 40, azimuth=(80.0, 260.0))
    for turn in (0.0, 0.7, math.pi):
        # One frame has no motion in it: it looks as its own reference_image does.
        pose = gliding([0.3, 0.0, 0.2], turn)
        transforms = skin_transforms(DOG.skeleton, Pose(pose.root[1:2], pose.rotations[1:2]))
        frames, camera = draw_splats(SPLATS, transforms, style=style)
        reference_image = draw_reference_image(SPLATS, transforms, style=style, camera=camera)
        assert reference_image.shape == (2, 40, 56, 3)
        torch.testing.assert_close(reference_image, frames[:, 0], atol=0.02, rtol=0)


def test_the_reference_image_of_a_leap_stands_on_the_ground_and_holds_no_gradient():
    style = ClipStyle("motion", 56, 40, margin=0.5, ground=False)
    leap = reference_clip(DOG, "jump", seconds=2.0, fps=12.0).motion.pose
    top = int(leap.root[:, 1].argmax())
    pose = Pose(leap.root[top : top + 1].float(), leap.rotations[top : top + 1].float())
    transforms = skin_transforms(DOG.skeleton, pose).requires_grad_()
    frames, camera = draw_splats(SPLATS, transforms, style=style)
    reference_image = draw_reference_image(SPLATS, transforms, style=style, camera=camera)

    def lowest(picture):
        return int((picture - picture[0, 0]).abs().amax(-1).gt(0.1).any(-1).nonzero().max())

    assert frames.requires_grad and not reference_image.requires_grad
    assert lowest(reference_image[0]) > lowest(frames[0, 0]) + 2


def test_the_nearest_points_by_all_distances_are_those_of_the_tree():
    points = torch.rand(300, 3, generator=torch.Generator().manual_seed(0))
    places = torch.rand(1500, 3, generator=torch.Generator().manual_seed(1))
    distances = torch.cdist(places, points)
    found = nearest_reference(places, points)
    torch.testing.assert_close(distances.gather(1, found[:, None])[:, 0], distances.amin(1))
    rest = SPLATS.means
    with pretended_device() as device:
        there = find_legs(rest.to(device))
        assert there.across.device == device
    here = find_legs(rest)
    for name in ("across", "along", "share"):
        torch.testing.assert_close(getattr(there, name).cpu(), getattr(here, name))


@pytest.mark.parametrize("look", ["motion", "clay"])
def test_the_colours_and_their_gradients_are_the_same_on_every_device(look: str):
    clip = reference_clip(DOG, "walk", seconds=0.5, fps=12.0).motion.pose
    camera = fit_orbit(SPLATS.means, width=24, height=16)

    def colors_on(device) -> tuple[torch.Tensor, torch.Tensor]:
        splats, pose, skeleton, seen = (to_device(x, device) for x in (SPLATS, clip, DOG.skeleton, camera))
        root = pose.root.float().clone().requires_grad_()
        transforms = skin_transforms(skeleton, Pose(root, pose.rotations.float()))
        posed = pose_by_transforms(splats, transforms)
        painted = by_motion(splats, posed) if look == "motion" else in_clay(splats, posed, transforms, seen)
        (painted.colors * painted.means).sum().backward()
        assert root.grad is not None and painted.colors.device == torch.device(device)
        return painted.colors.detach().cpu(), root.grad.cpu()

    with pretended_device() as device:
        there = colors_on(device)
    for one, other in zip(colors_on("cpu"), there, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)

"""Whole steps on a device that is not there: everything lives where the prior is, and nothing meets the host."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from jigdoll import zoo
from jigdoll.distill.loop import choose_level, distill, evaluate
from jigdoll.distill.options import AnimateOptions, CameraOptions, changed, paper_options
from jigdoll.distill.scene import make_scene
from jigdoll.math.devices import to_device
from jigdoll.prior.pocket.model import PocketNet
from jigdoll.prior.pocket.prior import PocketPrior
from jigdoll.render.rasterizer import batch_shape
from jigdoll.render.rasterizer_reference import rasterize_reference
from jigdoll.render.splat_asset import splat_asset
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.splats.fit import FitConfig
from jigdoll.types import Camera, Gaussians, Rendering, RiggedAsset
from jigdoll.zoo.gaits import reference_clip
from pretended_device import ELSEWHERE, Elsewhere, HostMeetsDevice, pretended_device

PROMPT = "a dog walks"


@pytest.fixture(scope="module")
def dog() -> RiggedAsset:
    return zoo.make("dog")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The pretended device, with a gsplat on it that is our slow reference."""
    monkeypatch.setitem(sys.modules, "gsplat", SimpleNamespace(rasterization=drawn_slowly))
    with pretended_device() as elsewhere:
        yield elsewhere


def drawn_slowly(**given: Any) -> tuple[Tensor, Tensor, None]:
    """What gsplat.rasterization answers, by the reference rasterizer: it takes tensors of one device only."""
    fields = [given[name] for name in ("means", "covars", "opacities", "colors")]
    assert all(isinstance(field, Elsewhere) for field in fields)
    camera = Camera(given["viewmats"][:, 0], given["Ks"][:, 0], given["width"], given["height"])
    picture = rasterize_reference(Gaussians(*fields), camera)
    colors = torch.cat([picture.rgba[..., :3], picture.depth[..., None]], -1)
    return colors[:, None], picture.rgba[:, None, ..., 3:], None


def test_tensors_elsewhere_do_not_meet_the_host(device: torch.device) -> None:
    here, there = torch.ones(3), torch.ones(3, device=device)
    assert there.device == ELSEWHERE and here.to(device).device == ELSEWHERE and there.cpu().device.type == "cpu"
    for meeting in (lambda: here + there, lambda: torch.stack([here, there]), there.numpy):
        with pytest.raises(HostMeetsDevice):
            meeting()
    torch.testing.assert_close((there + torch.tensor(1.0)).cpu(), torch.full((3,), 2.0))


def test_a_distillation_with_the_pocket_prior_stays_where_the_prior_is(dog: RiggedAsset, device: torch.device) -> None:
    torch.manual_seed(0)
    net = PocketNet()
    options = AnimateOptions(iterations=2, refine_steps=2, cameras=CameraOptions(views=1, splats=60))
    here = distill(make_scene(anatomy_of(dog), PROMPT, PocketPrior(net), options))
    there = distill(make_scene(anatomy_of(dog), PROMPT, PocketPrior(net.to(device)), options))
    assert there.history.keys() == here.history.keys() and len(here.history["prior"]) == 4
    assert type(there.motion.pose.rotations) is Tensor, "the motion comes back to the host"
    torch.testing.assert_close(there.motion.pose.rotations, here.motion.pose.rotations, rtol=0, atol=1e-3)


@pytest.mark.parametrize(("name", "size"), [("cogvideox", (9, 64, 48)), ("wan", (9, 32, 32)), ("ltx", (9, 64, 64))])
def test_a_distillation_with_a_large_prior_stays_where_the_prior_is(
    dog: RiggedAsset, device: torch.device, tiny: Any, name: str, size: tuple[int, int, int]
) -> None:
    pytest.importorskip("diffusers")
    from jigdoll.prior.prior_diffusers import DiffusersPrior

    frames, width, height = size
    cameras = CameraOptions(frames=frames, width=width, height=height, splats=60, fit_steps=3)
    options = changed(paper_options(), AnimateOptions(iterations=2, cameras=cameras))
    here, there = (
        distill(
            make_scene(
                anatomy_of(dog),
                PROMPT,
                DiffusersPrior(tiny(name), device=place, dtype=torch.float32, checkpoint=False),
                options,
            )
        )
        for place in ("cpu", device)
    )
    assert len(there.history["prior"]) == 2 and set(there.history) == {"prior", "smooth", "ground"}
    for name, values in here.history.items():
        assert there.history[name] == pytest.approx(values, rel=0.02, abs=1e-6), name
    # Adam steps as far for a gradient of nearly nothing, whose sign is rounding.
    same = (there.motion.pose.rotations - here.motion.pose.rotations).abs() < 1e-3
    assert float(same.float().mean()) > 0.85


def test_a_residual_around_a_draft_is_distilled_by_flow_where_the_prior_is(
    dog: RiggedAsset, device: torch.device, tiny: Any
) -> None:
    pytest.importorskip("diffusers")
    from jigdoll.prior.prior_diffusers import DiffusersPrior

    anatomy, walk = anatomy_of(dog), reference_clip(dog, "walk", seconds=1.0, fps=24.0).motion
    cameras = CameraOptions(frames=9, width=32, height=32, views=1, splats=60, fit_steps=0)
    options = AnimateOptions(iterations=4, refine_steps=1, cameras=cameras)
    levels, ends = [], []
    for place in ("cpu", device):
        prior = DiffusersPrior(tiny("wan"), device=place, dtype=torch.float32, checkpoint=False)
        scene = make_scene(anatomy, PROMPT, prior, options, draft=walk)
        guidance = scene.plan.guidance
        assert (guidance.form, guidance.scale, guidance.scale_end, guidance.annealed) == ("flow", 25.0, 12.0, True)
        levels = [choose_level(scene.plan, step, torch.Generator()) for step in range(5)]
        ends.append(distill(scene))
    assert levels == sorted(levels, reverse=True) and levels[0] < 0.98 and levels[-1] == pytest.approx(0.02)
    here, there = ends
    assert len(here.motion) == len(walk) and here.motion.fps == 24.0 and len(here.history["prior"]) == 5
    assert type(there.motion.pose.rotations) is Tensor, "the motion comes back to the host"
    for name, values in here.history.items():
        assert there.history[name] == pytest.approx(values, rel=0.05, abs=1e-3), name
    moved = (here.motion.pose.rotations - walk.pose.rotations).abs().max()
    assert 1e-4 < float(moved) < 0.2, "four steps around the draft"


def test_splats_are_fitted_where_they_are_wanted(dog: RiggedAsset, device: torch.device) -> None:
    config = FitConfig(iterations=8, max_gaussians=60)
    here, there = (
        splat_asset(dog, count=40, views=3, size=24, config=config, device=place) for place in ("cpu", device)
    )
    assert there.means.device == device and there.weights.joints.device == device
    assert len(there.means) == len(here.means) > 40, "both were split"
    torch.testing.assert_close(there.colors.cpu(), here.colors, rtol=0, atol=2e-3)
    torch.testing.assert_close(there.means.cpu(), here.means, rtol=0, atol=2e-3)


def drawn_as_shapes(gaussians: Gaussians, camera: Camera) -> Rendering:
    """Pictures of the right size that hang on every field of the splats: all that a device without values can draw."""
    fields = (gaussians.means, gaussians.covariances, gaussians.opacities, gaussians.colors)
    assert {field.device.type for field in (*fields, camera.T_camera_world, camera.K)} == {"meta"}
    light = torch.stack([field.sum() for field in fields]).sum()
    size = (*batch_shape(gaussians, camera), camera.height, camera.width)
    return Rendering(light.expand(*size, 4), light.expand(size))


@pytest.mark.parametrize("name", ["pocket", "cogvideox", "wan", "ltx"])
def test_a_step_needs_no_value_on_the_host(dog: RiggedAsset, tiny: Any, name: str) -> None:
    """On torch's meta device tensors have no values: whoever asks for one stops, and so does whoever meets the host."""
    if name == "pocket":
        net = PocketNet()
        here, there = PocketPrior(net), PocketPrior(PocketNet().to("meta"))
        options = AnimateOptions(cameras=CameraOptions(views=2, splats=60))
    else:
        pytest.importorskip("diffusers")
        from jigdoll.prior.prior_diffusers import DiffusersPrior

        here, there = (DiffusersPrior(tiny(name), device=device) for device in ("cpu", "meta"))
        cameras = CameraOptions(frames=9, width=64, height=64, splats=60, fit_steps=0, follow="shape")
        options = AnimateOptions(iterations=120, cameras=cameras)
    scene = make_scene(anatomy_of(dog), PROMPT, here, options, rasterizer=drawn_as_shapes)
    scene = replace(to_device(scene, "meta"), prior=there)
    for step in (0, 119, 200):
        theta = torch.zeros(scene.trajectory.shape, device="meta", requires_grad=True)
        terms = evaluate(scene, theta, step, torch.Generator())
        assert terms.prior.device.type == "meta" and (terms.video is None) == (step == 200)
        assert {"ground", "root", "near"} <= set(terms.losses) and ("contact" in terms.losses) == (step > 0)
        torch.stack(list(terms.losses.values())).sum().backward()
        assert theta.grad is not None and theta.grad.device.type == "meta" and theta.grad.shape == theta.shape

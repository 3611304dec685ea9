"""Splats fitted to pictures: 3DGS reconstruction that never leaves the surface (AKD 5).

Adam on L1 + SSIM over random views. Every splat stays a flat disc near the surface it came from, so that it can be
posed with the weights of that surface: its thickness is tied to its radius and its distance from the mesh is bounded.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.devices import to_device
from jigdoll.protocols import Progress, Rasterizer, quiet
from jigdoll.splats.bind import FLATNESS, unbound
from jigdoll.splats.image_loss import image_loss
from jigdoll.splats.pose import covariances
from jigdoll.types import Camera, Gaussians, Mesh, SkinnedGaussians


@dataclass(frozen=True, eq=False)
class Views:
    """Pictures of one thing and where they were taken."""

    rgba: Float[Tensor, "views height width 4"]
    """Colour premultiplied by alpha, and alpha."""
    camera: Camera
    """Batch = views."""


@dataclass(frozen=True)
class FitConfig:
    """How splats are fitted to views."""

    iterations: int = 1000
    """Views drawn and compared, one at a time."""
    max_gaussians: int = 18000
    """Splitting stops here."""
    ssim: float = 0.2
    """Share of the structural similarity in the loss; the rest is L1."""
    move: float = 0.02
    """Learning rate of the centres [splat radii per step]."""
    stretch: float = 0.01
    """Learning rate of the logarithms of the radii."""
    turn: float = 0.002
    """Learning rate of the rotations."""
    fade: float = 0.03
    """Learning rate of the logits of the opacities."""
    paint: float = 0.01
    """Learning rate of the colours."""
    decay: float = 0.1
    """The learning rates end at this share of where they start."""
    splits: tuple[float, ...] = (0.15, 0.3, 0.45)
    """When splats are split and pruned, as shares of the iterations."""
    prune: float = 0.05
    """Splats fainter than this are dropped at these times."""
    leash: float = 1.0
    """How far a centre may leave the surface [radii of a fresh splat]."""
    seed: int = 0
    """Order of the views and places of split splats."""


def fit(
    splats: SkinnedGaussians,
    views: Views,
    mesh: Mesh,
    *,
    rasterizer: Rasterizer,
    config: FitConfig = FitConfig(),
    progress: Progress = quiet,
) -> SkinnedGaussians:
    """Splats that look like the views, starting from splats on the mesh.

    The result's weights follow one joint only: splitting makes new splats, so bind them anew (`bind.rebind`).
    """
    if not splats.means.shape[0] or not views.rgba.shape[0]:
        raise JigdollError(
            f"a fit needs splats and views, there are {splats.means.shape[0]} splats and {views.rgba.shape[0]} views"
        )
    generator = torch.Generator().manual_seed(config.seed)
    radius = float(splats.scales[:, :2].mean())
    leaves = _leaves(splats)
    optimizer = _optimizer(leaves, radius, config)
    blame = torch.zeros_like(leaves["fades"], requires_grad=False)
    split_at = {round(share * config.iterations) for share in config.splits}
    crops = [_crop(views, index, splats.means.device) for index in range(views.rgba.shape[0])]
    order = torch.zeros(0, dtype=torch.long)
    for iteration in range(config.iterations):
        if not len(order):
            order = torch.randperm(len(crops), generator=generator)
        target, camera = crops[int(order[0])]
        order = order[1:]
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * config.decay ** (iteration / config.iterations)
        drawn = rasterizer(_gaussians(leaves), camera).rgba
        loss = image_loss(drawn, target, share=config.ssim)
        optimizer.zero_grad()
        loss.backward()
        blame += _grad(leaves["means"]).norm(dim=-1)
        optimizer.step()
        if iteration in split_at:
            leaves = _split(leaves, blame, config, generator)
            _pull_back(leaves, mesh, config.leash * radius)
            optimizer = _optimizer(leaves, radius, config)
            blame = torch.zeros_like(leaves["fades"])
        progress((iteration + 1) / config.iterations, f"fitting, loss {float(loss.detach()):.4f}")
    _pull_back(leaves, mesh, config.leash * radius)
    return _bake(leaves)


def _leaves(splats: SkinnedGaussians) -> dict[str, Tensor]:
    """What Adam moves: unbounded parameters of the splats."""
    if splats.colors.ndim != 2:
        raise JigdollError("only plain colours can be fitted, these splats have spherical harmonics")
    values = {
        "means": splats.means,
        "turns": splats.quats,
        "radii": splats.scales[:, :2].clamp_min(1e-9).log(),
        "fades": splats.opacities.clamp(1e-3, 1 - 1e-3).logit(),
        "colors": splats.colors,
    }
    return {name: value.detach().clone().requires_grad_() for name, value in values.items()}


def _scales(radii: Float[Tensor, "gaussians 2"]) -> Float[Tensor, "gaussians 3"]:
    """The thickness is a fixed share of the mean radius."""
    return torch.cat([radii, radii.mean(-1, keepdim=True) + math.log(FLATNESS)], -1).exp()


def _gaussians(leaves: dict[str, Tensor]) -> Gaussians:
    sigma = covariances(leaves["turns"], _scales(leaves["radii"]))
    return Gaussians(leaves["means"], sigma, leaves["fades"].sigmoid(), leaves["colors"])


def _bake(leaves: dict[str, Tensor]) -> SkinnedGaussians:
    with torch.no_grad():
        return SkinnedGaussians(
            means=leaves["means"].clone(),
            quats=torch.nn.functional.normalize(leaves["turns"], dim=-1),
            scales=_scales(leaves["radii"]),
            opacities=leaves["fades"].sigmoid(),
            colors=leaves["colors"].clamp(0, 1),
            weights=to_device(unbound(leaves["means"].shape[0]), leaves["means"].device),
        )


def _optimizer(leaves: dict[str, Tensor], radius: float, config: FitConfig) -> torch.optim.Adam:
    rates = {
        "means": config.move * radius,
        "turns": config.turn,
        "radii": config.stretch,
        "fades": config.fade,
        "colors": config.paint,
    }
    groups = [{"params": [leaves[name]], "rate": rate, "lr": rate} for name, rate in rates.items()]
    return torch.optim.Adam(groups, betas=(0.9, 0.99), eps=1e-15, fused=True)


def _crop(views: Views, index: int, device: torch.device, *, border: int = 8) -> tuple[Tensor, Camera]:
    """One view cut to what it shows and a border: the rest is empty in both pictures and costs time."""
    rgba, camera = views.rgba[index], views.camera
    rows, columns = (rgba[..., 3] > 0).any(1).nonzero(), (rgba[..., 3] > 0).any(0).nonzero()
    if not len(rows):
        rows, columns = torch.tensor([0, camera.height - 1]), torch.tensor([0, camera.width - 1])
    top, bottom = max(int(rows[0]) - border, 0), min(int(rows[-1]) + 1 + border, camera.height)
    left, right = max(int(columns[0]) - border, 0), min(int(columns[-1]) + 1 + border, camera.width)
    K = camera.K.expand(views.rgba.shape[0], 3, 3)[index].clone()
    K[0, 2] -= left
    K[1, 2] -= top
    part = Camera(camera.T_camera_world[index].to(device), K.to(device), right - left, bottom - top)
    return rgba[top:bottom, left:right].contiguous().to(device), part


def _grad(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def _split(
    leaves: dict[str, Tensor], blame: Float[Tensor, " gaussians"], config: FitConfig, generator: torch.Generator
) -> dict[str, Tensor]:
    """Drop the faint splats, split the ones that the loss pulls at most, each into two within its own plane."""
    with torch.no_grad():
        keep = leaves["fades"].sigmoid() > config.prune
        values = {name: leaf.detach()[keep] for name, leaf in leaves.items()}
        # A pull counts by how far it reaches: small splats are already fine.
        score = blame[keep] * values["radii"].exp().amax(-1)
        room = min(config.max_gaussians - len(score), len(score) // 4)
        if room > 0:
            chosen = score.topk(room).indices
            offset = _along_longest(values, chosen)
            values["radii"][chosen] -= math.log(1.4)
            twins = {name: value[chosen].clone() for name, value in values.items()}
            sign = torch.rand(room, 1, generator=generator).sub(0.5).sign().to(offset)
            values["means"][chosen] += sign * offset
            twins["means"] -= sign * offset
            values = {name: torch.cat([value, twins[name]]) for name, value in values.items()}
    return {name: value.requires_grad_() for name, value in values.items()}


def _along_longest(values: dict[str, Tensor], chosen: Int[Tensor, " some"]) -> Float[Tensor, "some 3"]:
    """Half a radius along the longer axis of each splat's disc."""
    from jigdoll.math.rotations import quaternion_to_matrix

    axes = quaternion_to_matrix(values["turns"][chosen])
    radii = values["radii"][chosen].exp()
    longest = radii.argmax(-1)
    axis = axes[torch.arange(len(chosen), device=axes.device), :, longest]
    return 0.5 * radii.amax(-1, keepdim=True) * axis


def _pull_back(leaves: dict[str, Tensor], mesh: Mesh, leash: float) -> None:
    """Bring the splats that strayed farther from the surface than the leash back to its end."""
    from jigdoll.skin.closest import closest_points

    with torch.no_grad():
        means = leaves["means"]
        vertices, faces = mesh.vertices.cpu().double().numpy(), mesh.faces.cpu().numpy()
        face, shares, _ = closest_points(means.detach().cpu().double().numpy(), vertices, faces)
        corners = mesh.vertices[mesh.faces.long()[torch.from_numpy(face).long()]]
        nearest = (corners * torch.from_numpy(shares).to(corners)[..., None]).sum(1).to(means)
        away = means - nearest
        distance = away.norm(dim=-1, keepdim=True)
        means.copy_(torch.where(distance > leash, nearest + away * (leash / distance.clamp_min(1e-12)), means))

"""Shap-E (OpenAI, through diffusers) as a source of characters: any noun, where the zoo has no body for it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.asset.normalize import Axis, normalize
from jigdoll.errors import JigdollError
from jigdoll.formats.joints import free_skeleton
from jigdoll.prior.prior_diffusers.adapter import import_diffusers, quiet
from jigdoll.types import Mesh, RiggedAsset, Weights

HUB_ID = "openai/shap-e"
DOWNLOAD_GB = 2


class ShapE:
    """Makes a coloured mesh from words (`protocols.TextTo3D`); it has one joint, `character.rig_asset` gives it more.

    Tested with a tiny pipeline of the same classes. The published weights have not been run here: the quality of what
    they make, how well it can be rigged, and which way it faces (Shap-E's +Z is up; the front is guessed from the
    shape) are untested.
    """

    def __init__(
        self,
        folder: Path | str = HUB_ID,
        *,
        device: torch.device | str | None = None,
        steps: int = 64,
        guidance: float = 15.0,
        grid: int = 128,
        forward: Axis | None = None,
    ) -> None:
        """Open a folder with the pipeline, or fetch it from the hub (about 2 GB).

        `grid`: points along each side of the cube that the surface is looked for in. `forward`: the axis that its
        characters face, where the guess is wrong.
        """
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.steps, self.guidance, self.grid = steps, guidance, grid
        self.forward: Axis | None = forward
        self._pipe = _open(folder).to(self.device)
        self._pipe.set_progress_bar_config(disable=True)

    @torch.no_grad()
    def __call__(self, prompt: str, *, seed: int = 0) -> RiggedAsset:
        """A mesh in our frame, about two metres long; the same prompt and seed give the same one."""
        generator = torch.Generator().manual_seed(seed)
        with quiet():
            latents = self._pipe(
                prompt,
                generator=generator,
                num_inference_steps=self.steps,
                guidance_scale=self.guidance,
                output_type="latent",
            ).images
        self._load_shape(latents[:1])
        mesh = self._surface(prompt)
        body = RiggedAsset(
            name=prompt,
            mesh=mesh,
            skeleton=free_skeleton(["root"], [-1], torch.eye(4)[None]),
            weights=Weights.from_dense(torch.ones(len(mesh.vertices), 1)),
        )
        return normalize(body, up="+z", forward=self.forward)

    def _load_shape(self, latent: Float[Tensor, "1 places width"]) -> None:
        """The latent holds the weights of the first layers of a small network: the shape is what it computes."""
        renderer = self._pipe.shap_e_renderer
        weights = renderer.params_proj(latent)
        for name, parameter in renderer.mlp.state_dict().items():
            if f"nerstf.{name}" in weights:
                parameter.copy_(weights[f"nerstf.{name}"].squeeze(0))

    def _ask(self, points: Float[Tensor, "points 3"]) -> tuple[Float[Tensor, " points"], Float[Tensor, "points 3"]]:
        """Signed distance (above zero inside) and sRGB colour at points of the cube -1..1."""
        mlp = self._pipe.shap_e_renderer.mlp
        answers = [
            mlp(
                position=batch[None].to(self.device, mlp.dtype),
                direction=None,
                ts=None,
                nerf_level="fine",
                rendering_mode="stf",
            )
            for batch in points.split(4096)
        ]
        distance = torch.cat([answer.signed_distance[0, :, 0] for answer in answers])
        color = torch.cat([answer.channels[0] for answer in answers])
        return distance.float().cpu(), color.float().cpu()

    def _surface(self, prompt: str) -> Mesh:
        """Where the signed distance is zero, closed off at the sides of the cube."""
        from skimage.measure import marching_cubes

        line = torch.linspace(-1, 1, self.grid)
        points = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1).reshape(-1, 3)
        field = self._ask(points)[0].reshape(self.grid, self.grid, self.grid).numpy()
        if not np.isfinite(field).all() or field.max() <= 0:
            raise JigdollError(f"Shap-E made nothing solid of {prompt!r}; try another seed or other words")
        field = np.pad(field, 1, constant_values=-1.0)
        step = 2 / (self.grid - 1)
        # "ascent" turns the triangles of a field that is positive inside to the outside.
        vertices, faces, _, _ = marching_cubes(field, 0.0, spacing=(step, step, step), gradient_direction="ascent")
        places = torch.from_numpy(np.ascontiguousarray(vertices)).float() - 1 - step
        return Mesh(places, torch.from_numpy(faces.astype(np.int64)), self._ask(places)[1].clamp(0, 1))


def _open(folder: Path | str) -> Any:
    """The pipeline with its weights, from a folder or from the hub."""
    diffusers = import_diffusers()
    from huggingface_hub.errors import HfHubHTTPError

    try:
        with quiet(bars=not Path(folder).is_dir()):
            return diffusers.ShapEPipeline.from_pretrained(folder)
    except (OSError, ValueError, HfHubHTTPError) as error:
        raise JigdollError(
            f"Shap-E could not be opened from {folder}: give the folder of a copy, or with a network run "
            f"`hf download {HUB_ID}` (about {DOWNLOAD_GB} GB) and try again"
        ) from error

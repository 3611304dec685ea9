"""From a species to a rigged, painted, weighted character."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import torch

from jigdoll.errors import JigdollError
from jigdoll.types import Mesh, RiggedAsset
from jigdoll.zoo.bodies import BODIES
from jigdoll.zoo.bodies.morphs import MORPHS
from jigdoll.zoo.bodies.palettes import PALETTES
from jigdoll.zoo.implicit import distance
from jigdoll.zoo.paint import Canvas, Palette
from jigdoll.zoo.polygonize import Lens, edge_lengths, polygonize
from jigdoll.zoo.sculpt import Girth, Sculptor
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import FAMILIES, TABLE, Species, species_named
from jigdoll.zoo.variation import Build, apply_build, sample_build, sample_palette
from jigdoll.zoo.weights import skin_weights

_COARSE = 2600
"""About how many vertices a coarse mesh has."""


def make(species: str, *, seed: int = 0) -> RiggedAsset:
    """The built-in character of that name; seed 0 is the species itself, others vary its build and colours."""
    plan = species_named(species)
    if seed == 0:
        return assemble(plan, Build(), PALETTES[plan.name], seed=0)
    generator = torch.Generator().manual_seed(seed)
    build = sample_build(generator)
    dyed = plan.family == "humanoid" or plan.name == "dog"
    palette = sample_palette(PALETTES[plan.name], MORPHS.get(plan.name, ()), generator, dyed=dyed)
    return assemble(plan, build, palette, seed=seed)


def random_creature(
    generator: torch.Generator,
    *,
    family: str | None = None,
    without: Collection[str] = (),
    coarse: bool = True,
    spread: float = 2.5,
) -> RiggedAsset:
    """A random creature for training data: a species of the family with far wider proportions and colours.

    A coarse mesh takes a fraction of the time of a full one. `spread` multiplies the range of a species. Species named
    in `without` are left out.
    """
    if family is not None and family not in FAMILIES:
        raise JigdollError(f"no family of creatures is called {family!r}; the families are {', '.join(FAMILIES)}")
    plans = [plan for plan in TABLE if family in (None, plan.family) and plan.name not in without]
    if not plans:
        raise JigdollError(f"no creature is left of the family {family!r} without {', '.join(without)}")
    plan = plans[int(torch.randint(len(plans), (1,), generator=generator))]
    build = sample_build(generator, spread=spread)
    palette = sample_palette(PALETTES[plan.name], MORPHS.get(plan.name, ()), generator, dyed=True, spread=spread)
    seed = int(torch.randint(2**20, (1,), generator=generator))
    return assemble(plan, build, palette, seed=seed, coarse=coarse)


def assemble(species: Species, build: Build, palette: Palette, *, seed: int, coarse: bool = False) -> RiggedAsset:
    """Sculpt, polygonise, paint and weigh one character."""
    body = BODIES[species.name]
    skeleton = build_skeleton(apply_build(species, build) if build != Build() else species)
    sculptor = Sculptor(skeleton, Girth(build.girth, build.leg_girth, build.feature))
    body.sculpt(sculptor)
    center = sculptor.on_head(0, 0.5, 0.1) if species.family == "humanoid" else sculptor.on_head(0, 0, 0.45)
    lens = Lens(center, body.lens * sculptor.head_length / body.shrink, body.shrink)
    count, relax = (_COARSE, 1) if coarse else (body.vertices, 3)
    points, faces, normals = polygonize(sculptor.shapes, lens, vertices=count, relax=relax)
    distances = np.stack([distance(shape, points) for shape in sculptor.shapes], 1)
    canvas = Canvas(sculptor, points, normals, distances, palette, blur=0.4 * edge_lengths(points, faces), seed=seed)
    body.paint(canvas)
    weights = skin_weights(skeleton, sculptor.shapes, distances, points, faces, smoothing=2 if coarse else 4)
    T_parent_joint = skeleton.T_parent_joint.clone()
    T_parent_joint[:, :3, 3] *= build.size
    mesh = Mesh(
        torch.from_numpy(build.size * points).float(),
        torch.from_numpy(faces),
        torch.from_numpy(np.clip(canvas.colors, 0, 1)).float(),
    )
    return RiggedAsset(species.name, mesh, replace(skeleton, T_parent_joint=T_parent_joint), weights)

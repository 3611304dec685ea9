"""A bare mesh becomes a posable character; an artist's character gets new weights."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch

from jigdoll.checkpoint import fingerprint
from jigdoll.errors import RepairWarning, RigError
from jigdoll.rig.autorig import autorig
from jigdoll.rig.autorig.template import TemplateName
from jigdoll.skin.weights import PAPER, REFINED, HeatOptions, heat_weights
from jigdoll.types import RiggedAsset

Formula = Literal["refined", "paper"]


def body_mark(asset: RiggedAsset) -> str:
    """A short mark of a character's body and rig."""
    return fingerprint(asset.skeleton.names, asset.mesh.vertices, asset.skeleton.T_parent_joint)[:16]


def rig_asset(
    asset: RiggedAsset,
    *,
    template: TemplateName | Literal["auto"] = "auto",
    joints: int | None = None,
    markers: Mapping[str, Sequence[float]] | None = None,
    formula: Formula = "refined",
    progress: Callable[[float, str], None] = lambda fraction, what: None,
) -> tuple[RiggedAsset, str]:
    """The asset with a new skeleton and weights, and one line that says what was found.

    The asset is in our frame already, so up and forward are known. It leaves its file behind: a rig is a new file.
    """
    if asset.is_rigged:
        message = f"its {len(asset.skeleton)} joints and its clips are left out; a new rig takes their place"
        warnings.warn(f"{asset.name}: {message}", RepairWarning, stacklevel=2)
    found = autorig(
        asset.mesh,
        template=template,
        joints=joints,
        markers=markers,
        up=[0.0, 1.0, 0.0],
        forward=[0.0, 0.0, 1.0],
        progress=lambda step, share: progress(0.7 * share, step),
    )
    progress(0.75, "weighing the skin")
    weights = heat_weights(asset.mesh, found.skeleton, options=_options(formula))
    progress(0.9, "writing")
    rigged = replace(asset, skeleton=found.skeleton, weights=weights, clips={}, source=None)
    return rigged, found.summary


def reskin(asset: RiggedAsset, *, formula: Formula = "refined", max_influences: int = 4) -> RiggedAsset:
    """The asset with weights computed anew for its own skeleton; only joints that carried flesh carry it again."""
    if not asset.is_rigged:
        raise RigError(f"{asset.name}: there is no skeleton to keep; jigdoll rig makes one")
    carried = torch.zeros(len(asset.skeleton), dtype=torch.bool)
    carried[asset.weights.joints[asset.weights.values > 0]] = True
    weights = heat_weights(
        asset.mesh,
        asset.skeleton,
        options=_options(formula),
        max_influences=max_influences,
        carriers=carried.tolist(),
    )
    return replace(asset, weights=weights, source=None)


def _options(formula: Formula) -> HeatOptions:
    return REFINED if formula == "refined" else PAPER

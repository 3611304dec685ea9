"""A character for every verb: opened from a file, from the zoo or from words, rigged where it is bare, and its clips.

Whoever needs a character or one of its motions by name comes here, so that both are named in the same way everywhere.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from jigdoll.asset.axes import AxisHints
from jigdoll.asset.load import clips_called, find_clip, load, load_clips, split_clip
from jigdoll.checkpoint import fingerprint
from jigdoll.errors import FileFormatError, JigdollError, RepairWarning, RigError
from jigdoll.formats.table import MOTIONS
from jigdoll.protocols import Progress, TextTo3D, part, quiet
from jigdoll.rig.autorig import autorig
from jigdoll.rig.autorig.template import TemplateName
from jigdoll.rig.retarget import retarget
from jigdoll.skin.weights import PAPER, REFINED, HeatOptions, heat_weights
from jigdoll.types import Motion, RiggedAsset
from jigdoll.zoo.assemble import make
from jigdoll.zoo.from_text import character_from_text
from jigdoll.zoo.gaits import actions, reference_motion

Formula = Literal["refined", "paper"]
ZOO = "zoo:"
"""What a built-in character's name begins with."""


def open_character(
    source: str | Path | RiggedAsset | None,
    words: str = "",
    *,
    seed: int = 0,
    axes: AxisHints = AxisHints(),
    fps: float = 30.0,
    make_character: TextTo3D = character_from_text,
) -> RiggedAsset:
    """The character that is meant: an asset itself, a file, a built-in one (`zoo:fox`), or a description in words.

    None makes the character from `words`, the sentence that says what it does.

    It stands in our frame: metres, +Y up, facing +Z, feet on y = 0. Clips of a file are sampled at `fps`. Another
    `seed` gives another individual of a built-in character.
    """
    if isinstance(source, RiggedAsset):
        return source
    if source is None or is_description(source):
        return make_character(words if source is None else str(source), seed=seed)
    if isinstance(source, str) and source.startswith(ZOO):
        return make(source.removeprefix(ZOO), seed=seed)
    return load(Path(source), up=axes.up, forward=axes.forward, scale=axes.scale, fps=fps)


def is_description(source: str | Path) -> bool:
    """Whether a source is words (`a red fox`) rather than the name of a file."""
    named = isinstance(source, Path) or source.startswith(ZOO) or Path(source).suffix.lower() in MOTIONS
    return not named and " " in str(source).strip() and not Path(source).exists()


def open_clips(source: str | Path, *, axes: AxisHints = AxisHints(), fps: float = 30.0) -> RiggedAsset:
    """A character, or motion alone: a BVH file, a glTF or FBX file without a mesh, one clip as FILE:CLIP."""
    if isinstance(source, str) and source.startswith(ZOO):
        return open_character(source)
    return load_clips(source, up=axes.up, forward=axes.forward, scale=axes.scale, fps=fps)


def open_motion(asset: RiggedAsset, word: str | Path | Motion, *, fps: float = 24.0, seconds: float = 2.0) -> Motion:
    """The motion that is meant: a clip of the asset, FILE or FILE:CLIP brought onto its skeleton, or one of its gaits.

    A clip is named in full, as in Blender (what follows the armature's bar), or by a part that only it has. A gait
    (walk, run, jump ...) is made for the asset, `seconds` long; files and gaits come at `fps`.
    """
    if isinstance(word, Motion):
        return word
    if is_motion_file(asset, word):
        return retarget(*open_foreign(word, fps=fps), asset)
    word = str(word)
    near = clips_called(asset, word)
    if len(near) == 1:
        return asset.clips[near[0]]
    try:
        gaits = actions(asset)
    except JigdollError:
        gaits = ()
    if word in gaits and not near:
        return reference_motion(asset, word, fps=fps, seconds=seconds)
    if len(near) > 1:
        raise JigdollError(f"{asset.name}: {word!r} may be any of the clips {', '.join(near)}; name one in full")
    clips = f"the clips are {', '.join(asset.clips)}" if asset.clips else "the file holds no clips"
    could = f"; gaits for this body are {', '.join(gaits)}" if gaits else ""
    raise JigdollError(f"{asset.name}: no clip is called {word!r}; {clips}{could}; a .bvh or .glb file serves as well")


def open_foreign(word: str | Path, *, fps: float = 30.0) -> tuple[Motion, RiggedAsset]:
    """The motion that FILE or FILE:CLIP means, and whom it moves there (perhaps without a mesh)."""
    source = load_clips(word, fps=fps)
    if len(source.clips) > 1 and not source.has_mesh:
        path = split_clip(word)[0].name
        raise FileFormatError(f"{path}: which of its clips? Name one as {path}:CLIP ({', '.join(source.clips)})")
    return find_clip(source), source


def is_motion_file(asset: RiggedAsset, word: str | Path) -> bool:
    """Whether the word names a file (or FILE:CLIP) rather than one of the asset's clips."""
    return split_clip(word)[0].suffix.lower() in MOTIONS and str(word) not in asset.clips


def rigged(asset: RiggedAsset, *, progress: Progress = quiet) -> RiggedAsset:
    """The asset with a skeleton: its own, or a new one."""
    if asset.is_rigged:
        return asset
    made, summary = rig_asset(asset, progress=progress)
    progress(1.0, f"rigged: {summary}")
    return made


def rig_asset(
    asset: RiggedAsset,
    *,
    template: TemplateName | Literal["auto"] = "auto",
    joints: int | None = None,
    markers: Mapping[str, Sequence[float]] | None = None,
    formula: Formula = "refined",
    progress: Progress = quiet,
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
        progress=part(progress, 0.0, 0.7),
    )
    progress(0.75, "weighing the skin")
    weights = heat_weights(asset.mesh, found.skeleton, options=_options(formula))
    progress(0.9, "writing")
    return replace(asset, skeleton=found.skeleton, weights=weights, clips={}, source=None), found.summary


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


def body_mark(asset: RiggedAsset) -> str:
    """A short mark of a character's body and rig."""
    return fingerprint(asset.skeleton.names, asset.mesh.vertices, asset.skeleton.T_parent_joint)[:16]

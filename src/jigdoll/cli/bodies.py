"""Verbs that make a body posable or drawable: rig, skin, splat."""

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from jigdoll.cli.shared import (
    Forward,
    Scale,
    Up,
    check_target,
    clips_that_fit,
    console,
    open_character,
    progress_bar,
    said,
)
from jigdoll.errors import JigdollError

Template = Literal["auto", "biped", "bird", "theropod", "quadruped", "hexapod", "octopod", "serpent", "generic"]
Formula = Literal["refined", "paper"]


def rig(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    template: Template = "auto",
    joints: int | None = None,
    markers: Path | None = None,
    weights: Formula = "refined",
    picture: Path | None = None,
    save_markers: Path | None = None,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Give a bare mesh a skeleton and skin weights, and write it as a rigged GLB.

    Args:
        source: A mesh: .obj, .glb, .fbx ... (what rig it has is ignored), or zoo:NAME.
        target: What to write: .glb, .fbx, .usd, .usda, .usdc.
        template: The body plan, where the guess is wrong.
        joints: How many joints you wish.
        markers: A JSON file {"left_knee": [x, y, z], ...} [m, our frame] that pins joints.
        weights: The paper's formula, or the refined one that agrees better with artists.
        picture: A PNG to check it by: x-ray of the skeleton, weights by colour, test bends.
        save_markers: Write the joints that were found as such a JSON file, to correct by hand and give back.
    """
    from jigdoll.character import rig_asset
    from jigdoll.export import WRITABLE, save
    from jigdoll.kinematics import rest_transforms
    from jigdoll.render.sheets import rig_sheet
    from jigdoll.rig.autorig.markers import read_markers, write_markers

    check_target(target, WRITABLE)
    asset = open_character(source, up=up, forward=forward, scale=scale)
    with progress_bar() as progress:
        rigged, summary = rig_asset(
            asset,
            template=template,
            joints=joints,
            markers=None if markers is None else read_markers(markers),
            formula=weights,
            progress=progress,
        )
        written = save(target, rigged)
        if picture is not None:
            progress(0.95, "drawing")
            rig_sheet(picture, rigged)
    said(written, summary)
    if picture is not None:
        said(picture)
    if save_markers is not None:
        places = rest_transforms(rigged.skeleton)[:, :3, 3].tolist()
        named = {name: (x, y, z) for name, (x, y, z) in zip(rigged.skeleton.names, places, strict=True)}
        write_markers(save_markers, named)
        said(save_markers)


def skin(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    weights: Formula = "refined",
    max_influences: int = 4,
    picture: Path | None = None,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Keep a character's skeleton and clips, compute its weights anew, and write it as a GLB.

    Args:
        source: A rigged character, or zoo:NAME.
        target: What to write: .glb, .fbx, .usd, .usda, .usdc.
        weights: The paper's formula, or the refined one that agrees better with artists.
        max_influences: Joints per vertex; GLB files hold four.
        picture: A PNG to check it by: x-ray of the skeleton, weights by colour, test bends.
    """
    from jigdoll.character import reskin
    from jigdoll.export import WRITABLE, save
    from jigdoll.render.sheets import rig_sheet

    check_target(target, WRITABLE)
    asset = open_character(source, up=up, forward=forward, scale=scale)
    skinned = reskin(asset, formula=weights, max_influences=max_influences)
    said(save(target, skinned, clips_that_fit(skinned, target)))
    if picture is not None:
        said(rig_sheet(picture, skinned))


def splat(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    count: int = 12000,
    iterations: int = 1600,
    with_weights: bool = False,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Turn a character into Gaussian splats, fitted to pictures of its mesh, as a PLY that splat viewers open.

    Args:
        source: A character file, or zoo:NAME.
        target: The .ply to write.
        count: Splats to begin with.
        iterations: Views drawn and compared; 0 takes splats from the surface as they are.
        with_weights: Keep the skin weights in extra columns (viewers ignore them).
    """
    from jigdoll.formats import ply
    from jigdoll.render.splat_asset import likeness, splat_asset
    from jigdoll.splats.bind import bind
    from jigdoll.splats.fit import FitConfig

    if target.suffix.lower() != ".ply":
        raise JigdollError(f"{target.name}: splats are written as .ply")
    asset = open_character(source, up=up, forward=forward, scale=scale)
    if iterations == 0:
        splats = bind(asset, count=count)
    else:
        with progress_bar() as progress:
            splats = splat_asset(
                asset,
                count=count,
                config=FitConfig(iterations=iterations),
                progress=lambda i, n, loss: progress(i / n, f"fitting, loss {loss:.4f}"),
            )
    said(ply.write(target, splats, weights=with_weights), f"{len(splats.means)} splats")
    console().print(f"likeness to the mesh on unseen views: {likeness(asset, splats):.1f} dB", highlight=False)

"""Verbs that make a body posable or drawable: rig, skin, splat."""

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from jigdoll.cli.shared import Forward, Json, Scale, Up, answering, character, clips_that_fit, progress_bar

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
    as_json: Json = False,
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
    from jigdoll.export import save
    from jigdoll.formats.table import check_target
    from jigdoll.kinematics import rest_transforms
    from jigdoll.render.sheets import rig_sheet
    from jigdoll.rig.autorig.markers import read_markers, write_markers

    check_target(target)
    asset = character(source, up=up, forward=forward, scale=scale)
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
    with answering(as_json) as answer:
        answer.add({"summary": summary, "joints": list(rigged.skeleton.names)})
        answer.wrote(written, summary)
        if picture is not None:
            answer.wrote(picture)
        if save_markers is not None:
            places = rest_transforms(rigged.skeleton)[:, :3, 3].tolist()
            named = {name: (x, y, z) for name, (x, y, z) in zip(rigged.skeleton.names, places, strict=True)}
            write_markers(save_markers, named)
            answer.wrote(save_markers)


def skin(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    weights: Formula = "refined",
    max_influences: int = 4,
    picture: Path | None = None,
    as_json: Json = False,
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
    from jigdoll.export import save
    from jigdoll.formats.table import check_target
    from jigdoll.render.sheets import rig_sheet

    check_target(target)
    asset = character(source, up=up, forward=forward, scale=scale)
    skinned = reskin(asset, formula=weights, max_influences=max_influences)
    with answering(as_json) as answer:
        most = int((skinned.weights.values > 0).sum(1).max())
        answer.add({"joints": len(skinned.skeleton), "most_influences": most})
        answer.wrote(save(target, skinned, clips_that_fit(skinned, target)), f"at most {most} joints a vertex")
        if picture is not None:
            answer.wrote(rig_sheet(picture, skinned))


def splat(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    count: int = 12000,
    iterations: int = 1600,
    with_weights: bool = False,
    as_json: Json = False,
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
    from jigdoll.formats.table import check_target
    from jigdoll.render.splat_asset import likeness, splat_asset
    from jigdoll.splats.bind import bind
    from jigdoll.splats.fit import FitConfig

    check_target(target, (".ply",))
    asset = character(source, up=up, forward=forward, scale=scale)
    if iterations == 0:
        splats = bind(asset, count=count)
    else:
        with progress_bar() as progress:
            splats = splat_asset(
                asset,
                count=count,
                config=FitConfig(iterations=iterations),
                progress=progress,
            )
    with answering(as_json) as answer:
        answer.wrote(ply.write(target, splats, weights=with_weights), f"{len(splats.means)} splats")
        decibels = likeness(asset, splats)
        answer.add({"splats": len(splats.means), "likeness_db": decibels})
        answer.say(f"likeness to the mesh on unseen views: {decibels:.1f} dB")

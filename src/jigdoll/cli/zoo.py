"""Verbs on the built-in characters: zoo list, zoo make, zoo sheet."""

from pathlib import Path

from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, progress_bar


def zoo() -> None:
    """The built-in characters: zoo list, zoo make, zoo sheet."""


def zoo_list(*, as_json: Json = False) -> None:
    """List the built-in characters and what each can do."""
    from rich.table import Table

    from jigdoll import zoo
    from jigdoll.zoo.gaits import actions
    from jigdoll.zoo.skeleton import build_skeleton
    from jigdoll.zoo.species import species_named

    rows = []
    for name in zoo.SPECIES:
        skeleton = build_skeleton(species_named(name))
        rows.append({"name": name, "joints": len(skeleton), "actions": list(actions(skeleton))})
    table = Table("name", "joints", "actions", title=f"{len(rows)} built-in characters")
    for row in rows:
        table.add_row(row["name"], str(row["joints"]), " ".join(row["actions"]))
    with answering(as_json) as answer:
        answer.add({"characters": rows})
        answer.show(table)


def zoo_make(
    name: Positional[str],
    target: Positional[Path],
    /,
    *,
    seed: int = 0,
    action: str | None = None,
    seconds: float = 2.0,
    fps: float = 24.0,
    loop: bool = False,
    as_json: Json = False,
) -> None:
    """Make a built-in character and write it, with a reference gait on request.

    Args:
        name: Which character: see `jigdoll zoo list`.
        target: What to write: .glb, .fbx, .bvh, .usd, .usda, .usdc.
        seed: 0 is the species itself, other seeds vary its proportions and colours.
        action: A reference gait: walk, run, jump, idle ...
        seconds: Length of the gait.
        fps: Frames per second of the gait.
        loop: End in the pose that it began with.
    """
    from jigdoll import zoo
    from jigdoll.export import save
    from jigdoll.zoo.gaits import reference_motion

    asset = zoo.make(name, seed=seed)
    motions = [] if action is None else [reference_motion(asset, action, seconds=seconds, fps=fps, loop=loop)]
    with answering(as_json) as answer:
        answer.add({"name": asset.name, "joints": len(asset.skeleton), "clips": [motion.name for motion in motions]})
        answer.wrote(save(target, asset, motions))


def zoo_sheet(
    target: Positional[Path],
    /,
    *,
    action: str = "walk",
    seed: int = 0,
    size: int = 160,
    columns: int = 6,
    as_json: Json = False,
) -> None:
    """Draw all built-in characters, at rest and in the middle of an action, as one picture.

    Args:
        target: The PNG to write.
        action: The action beside the rest pose.
        seed: Which variation of each character.
        size: Width and height of one picture [px].
        columns: Characters per row; each takes two pictures.
    """
    from jigdoll.render.sheets import zoo_sheet as draw_sheet

    with progress_bar() as progress:
        written = draw_sheet(target, action=action, seed=seed, size=size, columns=columns, progress=progress)
    with answering(as_json) as answer:
        answer.wrote(written)

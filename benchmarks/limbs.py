"""Are the limbs of real rigs found: legs, arms, wings, fins, tail and head, with joint names and without?

    python benchmarks/limbs.py --corpus FOLDER [--quick] [--json FILE] [--sheet FILE]
    python benchmarks/limbs.py --corpus FOLDER --changed [--only PART]

Loads one character of every rig in `limbs_truth.tsv`, which says what a person sees in the pictures (a part counts if
it has a joint of its own; - is not judged), makes the working copy, and counts the limbs that are found on it: with the
artist's joint names, and with every joint called bone_0, bone_1 ... A cell is one kind of limb of one rig.

With `--changed` all characters are read twice from their files, with names and without, and each difference is named:
the way they face, the kind of body, trunk, neck and tail, each limb's root, middle and end.
"""

import csv
import json as json_module
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import tyro
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from jigdoll.asset.load import load, read
from jigdoll.asset.normalize import normalize
from jigdoll.errors import RepairWarning
from jigdoll.formats.table import format_of
from jigdoll.kinematics import rest_transforms
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.flesh import flesh_of, owners_of
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.reparent import reparent
from jigdoll.types import Limb, RiggedAsset

TRUTH = Path(__file__).with_name("limbs_truth.tsv")
KINDS = ("leg", "arm", "wing", "fin", "tail", "head")
COLUMNS = {"leg": "legs", "arm": "arms", "wing": "wings", "fin": "fins", "tail": "tail", "head": "head"}
COLOURS = {
    "leg": (225, 40, 40),
    "arm": (50, 100, 235),
    "wing": (30, 170, 70),
    "fin": (20, 180, 180),
    "head": (240, 150, 10),
    "tail": (150, 60, 200),
    "spine": (150, 130, 110),
}
PLAIN = (200, 200, 200)


@dataclass(frozen=True)
class Options:
    """What to count."""

    corpus: Path = Path(__file__).resolve().parents[2] / "shared" / "corpus"
    """The folder of the files."""
    quick: bool = False
    """Every tenth rig."""
    json: Path | None = None
    sheet: Path | None = None
    """A picture of every rig whose limbs are not all right: front, side and from above, skin coloured by limb."""
    only: str = ""
    """Part of the ids of the rigs to count."""
    changed: bool = False
    """Instead of counting: where names change what is read of a character, of all of the corpus."""


@dataclass(frozen=True)
class Row:
    """One rig."""

    rig: str
    family: str
    truth: dict[str, int]
    """Of the kinds that are judged."""
    named: dict[str, int]
    """What is found with the artist's joint names."""
    bare: dict[str, int]
    """What is found without names."""
    milliseconds: float
    """To find the limbs once."""

    def wrong(self, found: dict[str, int]) -> list[str]:
        """The kinds that are not as they should be, each with what was found and what is there."""
        return [f"{kind} {found[kind]} of {true}" for kind, true in self.truth.items() if found[kind] != true]


def without_names(asset: RiggedAsset) -> RiggedAsset:
    """The same character with joint names that say nothing."""
    names = tuple(f"bone_{i}" for i in range(len(asset.skeleton)))
    return replace(asset, skeleton=replace(asset.skeleton, names=names))


def limbs_of(asset: RiggedAsset) -> tuple[RiggedAsset, tuple[Limb, ...], float]:
    """The working copy, its limbs, and the time that finding them took [ms]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        copy = reparent(asset).asset
    outline = flesh_of(copy).outline
    start = time.perf_counter()
    limbs = find_limbs(copy.skeleton, outline)
    return copy, limbs, 1000 * (time.perf_counter() - start)


def count(limbs: Iterable[Limb]) -> dict[str, int]:
    kinds = Counter(limb.kind for limb in limbs)
    return {kind: kinds[kind] for kind in KINDS}


def share(rows: Iterable[Row], kinds: Iterable[str], *, named: bool) -> tuple[int, int]:
    """How many cells are right, and how many there are."""
    kinds = set(kinds)
    cells = [
        (row.named if named else row.bare)[kind] == true
        for row in rows
        for kind, true in row.truth.items()
        if kind in kinds
    ]
    return sum(cells), len(cells)


def percent(right: int, cells: int) -> str:
    return f"{100 * right / cells:.1f} %" if cells else "-"


def picture(asset: RiggedAsset, limbs: Iterable[Limb], label: str, *, size: int = 150) -> Image.Image:
    """Front, side and three-quarter view, the skin coloured by the limb that moves it."""
    vertices, faces = asset.mesh.vertices.double().numpy(), asset.mesh.faces.numpy()
    points, children = rest_transforms(asset.skeleton)[:, :3, 3].double().numpy(), asset.skeleton.children
    colours = np.tile(np.array(PLAIN), (len(points), 1))
    for limb in sorted(limbs, key=lambda limb: limb.kind != "spine"):
        joints = list(limb.joints)
        if limb.side != "middle":
            for joint in joints:
                joints += [kid for kid in children[joint] if kid not in joints]
        colours[joints] = COLOURS[limb.kind]
    if len(faces) > 12000:
        faces = faces[np.random.default_rng(0).permutation(len(faces))[:12000]]
    skin = colours[owners_of(asset)[faces[:, 0]]]
    image = Image.new("RGB", (3 * size, size + 26), "white")
    draw = ImageDraw.Draw(image)
    low, high = vertices.min(0), vertices.max(0)
    scale = (size - 10) / max(float((high - low).max()), 1e-6)
    for view, (yaw, pitch) in enumerate([(0.0, 0.1), (np.pi / 2, 0.05), (0.7, 0.45)]):
        turn = np.array([[np.cos(yaw), 0, -np.sin(yaw)], [0, 1, 0], [np.sin(yaw), 0, np.cos(yaw)]])
        turn = np.array([[1, 0, 0], [0, np.cos(pitch), -np.sin(pitch)], [0, np.sin(pitch), np.cos(pitch)]]) @ turn
        centre = np.array([(view + 0.5) * size, 0.5 * size])
        seen = (vertices - (low + high) / 2) @ turn.T
        flat = centre + seen[:, :2] * [scale, -scale]
        corners = seen[faces]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-12
        shade = 0.55 + 0.45 * np.abs(normal @ [0.3, 0.7, 0.65])
        lit = (skin * shade[:, None]).clip(0, 255).astype(int)
        for face in corners[:, :, 2].mean(1).argsort():
            draw.polygon([tuple(flat[v]) for v in faces[face]], fill=tuple(lit[face]))
        if view == 2:
            bones = centre + ((points - (low + high) / 2) @ turn.T)[:, :2] * [scale, -scale]
            for joint, parent in enumerate(asset.skeleton.parents):
                if parent >= 0:
                    draw.line([tuple(bones[parent]), tuple(bones[joint])], fill="black")
    draw.text((3, size), label[:74], fill="black")
    draw.text((3, size + 12), label[74:], fill="black")
    return image


def save_sheet(file: Path, pictures: list[Image.Image], *, columns: int = 4) -> None:
    width, height = pictures[0].size
    sheet = Image.new("RGB", (width * columns, height * -(-len(pictures) // columns)), "white")
    for i, image in enumerate(pictures):
        sheet.paste(image, (i % columns * width, i // columns * height))
    sheet.save(file)


def reading(asset: RiggedAsset) -> dict[str, str]:
    """What is read of a character, joints told by their numbers in the file; tips that were added are theirs plus t."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        work = reparent(asset)
    anatomy = anatomy_of(work.asset)
    parents = work.asset.skeleton.parents

    def told(joints: Iterable[int]) -> str:
        return " ".join(f"{work.joints[j]}" if work.joints[j] >= 0 else f"{work.joints[parents[j]]}t" for j in joints)

    lines = {"kind": anatomy.kind, "stands": str(anatomy.grounded)}
    lines |= {"trunk": told(anatomy.trunk), "neck": told(anatomy.neck), "tail": told(anatomy.tail)}
    for part in anatomy.parts:
        lines[part.name] = told((part.root, part.middle, part.end)) + (" and on" if part.after else "")
    return lines


def changed(options: Options) -> None:
    """Print where names change the reading, and how many rigs are read alike."""
    with (options.corpus / "sources.tsv").open() as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["kind"] == "character"]
    console = Console(width=160)
    alike, turned, shape = dict[str, bool](), set[str](), dict[str, bool]()
    for row in [row for row in rows if options.only in row["rig"]][:: 10 if options.quick else 1]:
        path = options.corpus / row["path"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepairWarning)
            raw = read(path)
            if not raw.has_mesh:
                continue
            row_of = format_of(path)
            up = "+y" if row_of is not None and row_of.y_is_up else None
            front = row_of is not None and row_of.faces_z
            named = normalize(raw, up=up, faces_z=front)
            bare = normalize(without_names(raw), up=up, faces_z=front)
        found, there = reading(named), reading(without_names(named))
        keys = [key for key in {**found, **there} if found.get(key) != there.get(key)]
        differ = [f"{key}: {found.get(key, '-')} | {there.get(key, '-')}" for key in keys]
        a, b = (asset.source.T_world_file[2, :3] for asset in (named, bare) if asset.source is not None)
        if float(a @ b) < 0.95 * float(a.norm() * b.norm()):
            turned.add(row["rig"])
        shape[row["rig"]] = shape.get(row["rig"], True) and not differ
        alike[row["rig"]] = shape[row["rig"]] and row["rig"] not in turned
        if differ or row["rig"] in turned:
            facing = " faces another way" if row["rig"] in turned else ""
            console.print("\n    ".join([f"{row['split']} {row['rig']} {path.name}{facing}", *differ]), highlight=False)
    console.print(
        f"{sum(alike.values())} of {len(alike)} rigs are read alike with names and without, "
        f"{sum(shape.values())} leaving aside which way they face"
    )


def main(options: Options) -> None:
    """Count and print."""
    if options.changed:
        changed(options)
        return
    with TRUTH.open() as lines:
        truth = list(csv.DictReader(lines, delimiter="\t"))
    with (options.corpus / "sources.tsv").open() as lines:
        families = {line["path"]: line["family"] for line in csv.DictReader(lines, delimiter="\t")}
    chosen = [line for line in truth if options.only in line["rig"]]
    rows: list[Row] = []
    pictures: list[Image.Image] = []
    for line in chosen[:: 10 if options.quick else 1]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepairWarning)
            asset = load(options.corpus / line["file"])
        copy, limbs, milliseconds = limbs_of(asset)
        judged = {kind: int(line[column]) for kind, column in COLUMNS.items() if line[column] != "-"}
        bare = count(limbs_of(without_names(asset))[1])
        row = Row(line["rig"], families[line["file"]], judged, count(limbs), bare, milliseconds)
        rows.append(row)
        if options.sheet and row.wrong(row.named):
            pictures.append(picture(copy, limbs, f"{row.rig}: {', '.join(row.wrong(row.named))}"))
    report(rows)
    if options.json:
        options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))
    if options.sheet and pictures:
        save_sheet(options.sheet, pictures)


def report(rows: list[Row]) -> None:
    """Shares by kind and by family, and every failure by name."""
    console = Console(width=160)
    families: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        families[row.family].append(row)
    table = Table("", "rigs", *KINDS, "all", "without names", title="cells that are right")
    for name, members in [*sorted(families.items()), ("all", rows)]:
        cells = [percent(*share(members, [kind], named=True)) for kind in KINDS]
        both = [percent(*share(members, KINDS, named=named)) for named in (True, False)]
        table.add_row(name, str(len(members)), *cells, *both, end_section=name == "all")
    bare = [percent(*share(rows, [kind], named=False)) for kind in KINDS]
    table.add_row("all, without names", str(len(rows)), *bare, "", percent(*share(rows, KINDS, named=False)))
    console.print(table)
    for row in rows:
        wrong, unnamed = row.wrong(row.named), row.wrong(row.bare)
        if wrong or unnamed:
            console.print(f"{row.rig}: {', '.join(wrong) or 'right'} | without names: {', '.join(unnamed) or 'right'}")
    whole = sum(not row.wrong(row.named) for row in rows)
    times = sorted(row.milliseconds for row in rows)
    console.print(
        f"{whole} of {len(rows)} rigs are right in every kind; "
        f"{times[len(times) // 2]:.1f} ms a rig, at most {times[-1]:.1f}"
    )


if __name__ == "__main__":
    main(tyro.cli(Options))

"""Which suffix is which format, and the functions that read and write it: the only list of suffixes.

A format is a row here and a module beside it. The modules are imported when their first file is read or written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.types import Motion, RiggedAsset, Skeleton

ReadCharacter = Callable[[Path, float], RiggedAsset]
"""(file, frames per second of its clips): the character in the file's own frame and unit."""
ReadMotion = Callable[[Path, str | None, float | None], tuple[Skeleton, Motion]]
"""(file, which of its motions, metres per unit): a motion and the skeleton that it moves."""
Write = Callable[[Path, RiggedAsset, Sequence[Motion]], Path]


@dataclass(frozen=True)
class Format:
    """What can be done with a kind of file."""

    name: str
    suffixes: tuple[str, ...]
    character: ReadCharacter | None = None
    """How it is read where it holds a body, with its clips."""
    motion: ReadMotion | None = None
    """How it is read where it holds motion and no body."""
    write: Write | None = None
    clips: int | None = None
    """How many clips a written file holds at most; none: as many as there are."""
    needs_clip: bool = False
    """Whether a file without a clip would be empty."""
    y_is_up: bool = True
    """Whether the format, or our reader of it, says that +Y is up."""
    faces_z: bool = False
    """Whether the format's standard says that +Z is the front."""


def _read_gltf(path: Path, fps: float) -> RiggedAsset:
    from jigdoll.formats import gltf

    return gltf.read(path, fps=fps)


def _write_gltf(path: Path, asset: RiggedAsset, motions: Sequence[Motion]) -> Path:
    from jigdoll.formats import gltf

    return gltf.write(path, asset, motions)


def _read_fbx(path: Path, fps: float) -> RiggedAsset:
    from jigdoll.formats import fbx

    return fbx.read(path, fps=fps)


def _write_fbx(path: Path, asset: RiggedAsset, motions: Sequence[Motion]) -> Path:
    from jigdoll.formats import fbx

    return fbx.write(path, asset, motions)


def _read_obj(path: Path, fps: float) -> RiggedAsset:
    from jigdoll.formats import obj

    return obj.read(path)


def _read_usd(path: Path, fps: float) -> RiggedAsset:
    from jigdoll.formats import usd

    return usd.read(path)


def _write_usd(path: Path, asset: RiggedAsset, motions: Sequence[Motion]) -> Path:
    from jigdoll.formats import usd

    return usd.write(path, asset, motions[0] if motions else None)


def _read_bvh(path: Path, member: str | None, scale: float | None) -> tuple[Skeleton, Motion]:
    from jigdoll.formats import bvh

    return bvh.read(path, scale=scale)


def _write_bvh(path: Path, asset: RiggedAsset, motions: Sequence[Motion]) -> Path:
    from jigdoll.formats import bvh

    return bvh.write(path, asset.skeleton, motions[0])


def _read_deepmimic(path: Path, member: str | None, scale: float | None) -> tuple[Skeleton, Motion]:
    from jigdoll.formats import deepmimic

    return deepmimic.read(path)


def _read_archive(path: Path, member: str | None, scale: float | None) -> tuple[Skeleton, Motion]:
    from jigdoll.formats import archive, bvh

    name, data = archive.read_member(path, member, suffixes=(".bvh",))
    return bvh.read(path / name, scale=scale, data=data)


FORMATS = (
    Format("glTF", (".glb", ".vrm"), character=_read_gltf, write=_write_gltf, faces_z=True),
    Format("glTF", (".gltf",), character=_read_gltf, faces_z=True),
    Format("FBX", (".fbx",), character=_read_fbx, write=_write_fbx),
    Format("OBJ", (".obj",), character=_read_obj, y_is_up=False),
    Format("USD", (".usd", ".usda", ".usdc"), character=_read_usd, write=_write_usd, clips=1),
    Format("USD", (".usdz",), character=_read_usd),
    Format("BVH", (".bvh",), motion=_read_bvh, write=_write_bvh, clips=1, needs_clip=True),
    Format("DeepMimic", (".txt",), motion=_read_deepmimic),
    Format("zip of BVH", (".zip",), motion=_read_archive),
)
_BY_SUFFIX = {suffix: row for row in FORMATS for suffix in row.suffixes}

CHARACTERS = tuple(suffix for suffix, row in _BY_SUFFIX.items() if row.character)
"""Files that hold a body."""
MOTIONS = tuple(_BY_SUFFIX)
"""Files that hold clips; one of several is named as FILE:CLIP."""
WRITABLE = tuple(suffix for suffix, row in _BY_SUFFIX.items() if row.write)
FILMS = (".mp4", ".gif", ".webp")
PICTURES = (".png",)
PAGES = (".html", ".htm")


def format_of(path: Path) -> Format | None:
    """What a file is by its suffix, None where nobody knows."""
    return _BY_SUFFIX.get(path.suffix.lower())


def is_picture(path: Path) -> bool:
    """Whether the file is one picture (a contact sheet) rather than a film."""
    return path.suffix.lower() in PICTURES


def check_target(path: Path, known: tuple[str, ...] = WRITABLE) -> None:
    """Refuse a target that cannot be written, before any work is done."""
    if path.suffix.lower() not in known:
        what = path.suffix or "without a suffix"
        raise JigdollError(f"{path.name}: cannot write {what}; known are {', '.join(known)}")


def read_character(path: Path, *, fps: float) -> RiggedAsset:
    """Read a character in its file's own frame and unit; clips are sampled at `fps`."""
    row = format_of(path)
    if row is not None and row.character is not None:
        return row.character(path, fps)
    if row is not None:
        raise FileFormatError(
            f"{path.name}: {row.name} holds motion and no body; give a character and use this as its clip"
        )
    what = path.suffix or "a file without suffix"
    raise FileFormatError(f"{path.name}: cannot tell what {what} is; known are {', '.join(CHARACTERS)}")


def write_character(path: Path, asset: RiggedAsset, motions: Sequence[Motion]) -> Path:
    """Write a character with clips, as many as the format holds."""
    check_target(path)
    row = format_of(path)
    assert row is not None and row.write is not None
    if (row.clips is not None and len(motions) > row.clips) or (row.needs_clip and not motions):
        bound = "exactly" if row.needs_clip else "at most"
        raise JigdollError(f"{path.name}: a {row.name} file holds {bound} one clip, not {len(motions)}; choose one")
    return row.write(path, asset, motions)

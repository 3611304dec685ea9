"""Triangles, colours, textures and raw skin attributes of the meshes in a glTF file."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jigdoll.errors import FileFormatError
from jigdoll.formats.gltf.document import Document
from jigdoll.formats.textures import decode_image, sample
from jigdoll.math.colors import linear_to_srgb, srgb_to_linear

_MAX_PIXELS = 1 << 25


@dataclass(frozen=True, eq=False)
class Look:
    """A material: linear RGBA factor, image (uint8 RGBA) and the texture coordinate set that it reads."""

    name: str
    color: tuple[float, float, float, float]
    texture: np.ndarray | None = None
    uv_set: int = 0
    uv_transform: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 1.0, 1.0)
    """Offset u v, rotation, scale u v (KHR_texture_transform)."""


@dataclass(frozen=True, eq=False)
class Primitive:
    """One piece of a mesh, in the mesh's own space."""

    vertices: np.ndarray
    faces: np.ndarray
    uvs: np.ndarray | None
    colors: np.ndarray
    """[vertices 3] sRGB."""
    look: int
    joints: np.ndarray | None
    """[vertices influences], indices into the skin's joint list."""
    weights: np.ndarray | None


class PrimitiveReader:
    """Reads primitives, each material and image once."""

    def __init__(self, document: Document, repairs: list[str]) -> None:
        self.document = document
        self.repairs = repairs
        self.looks: list[Look] = []
        self._by_material: dict[int | None, int] = {}
        self._images: dict[int, np.ndarray | None] = {}

    def read(self, mesh: dict[str, Any], morph: Any) -> list[Primitive]:
        """All triangle primitives of a mesh; `morph` are the node's own default morph weights, if any."""
        found = mesh.get("primitives")
        if not isinstance(found, list):
            raise self.document.fail("a mesh has no list of primitives")
        defaults = morph if morph is not None else mesh.get("weights", [])
        return [p for entry in found if (p := self._primitive(entry, defaults)) is not None]

    def _primitive(self, entry: Any, morph: Any) -> Primitive | None:
        document = self.document
        if not isinstance(entry, dict) or not isinstance(entry.get("attributes"), dict):
            raise document.fail("a primitive has no attributes")
        mode = entry.get("mode", 4)
        if mode not in (4, 5, 6):
            self.note("points and lines were left out; only triangles make a body")
            return None
        attributes, indices = self._attributes(entry)
        if "POSITION" not in attributes:
            self.note("a primitive without positions was left out")
            return None
        vertices = self._checked(attributes["POSITION"], 3, None)
        count = len(vertices)
        if not np.isfinite(vertices).all():
            raise document.fail("a mesh has vertex positions that are not finite")
        vertices = vertices + self._morphed(entry, morph, count)
        flat = np.arange(count) if indices is None else indices.astype(np.int64).reshape(-1)
        if len(flat) and int(flat.max()) >= count:
            raise document.fail(f"a face names vertex {int(flat.max())} of {count}")
        faces = _triangles(flat, mode)
        look = self._look(entry.get("material"))
        uvs = self._uvs(attributes, self.looks[look], count)
        colors = self._colors(attributes, self.looks[look], uvs, count)
        joints, weights = self._influences(attributes, count)
        return Primitive(vertices, faces, uvs, colors, look, joints, weights)

    def note(self, message: str) -> None:
        """Name a repair once."""
        if message not in self.repairs:
            self.repairs.append(message)

    def _attributes(self, entry: dict[str, Any]) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
        document = self.document
        extensions = entry.get("extensions", {})
        if isinstance(extensions, dict) and isinstance(extensions.get("KHR_draco_mesh_compression"), dict):
            return self._draco(extensions["KHR_draco_mesh_compression"], entry["attributes"])
        attributes = {
            name: document.accessor(index)
            for name, index in entry["attributes"].items()
            if name.split("_")[0] in ("POSITION", "TEXCOORD", "COLOR", "JOINTS", "WEIGHTS")
        }
        return attributes, document.accessor(entry["indices"])[:, 0] if "indices" in entry else None

    def _draco(self, draco: dict[str, Any], wanted: dict[str, Any]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        import DracoPy

        document = self.document
        data, _ = document.view(draco.get("bufferView"))
        count = max((document.number(document.item("accessors", i), "count") for i in wanted.values()), default=0)
        document.spend(count * 64)
        try:
            decoded = DracoPy.decode(bytes(data))
        except Exception as error:  # the wheel raises its own types and bare ones
            raise document.fail(f"the Draco data cannot be decoded ({error})") from None
        ids = draco.get("attributes")
        if not isinstance(ids, dict) or getattr(decoded, "faces", None) is None:
            raise document.fail("the Draco data holds no triangle mesh")
        attributes = {}
        for name, unique_id in ids.items():
            found = decoded.get_attribute_by_unique_id(unique_id) if type(unique_id) is int else None
            if found is None:
                raise document.fail(f"the Draco data has no attribute {str(unique_id)[:20]!r} ({name[:20]})")
            values = np.asarray(found["data"])
            attributes[name] = values.reshape(len(values), -1)
        return attributes, np.asarray(decoded.faces).reshape(-1)

    def _checked(self, values: np.ndarray, width: int, count: int | None) -> np.ndarray:
        if values.ndim != 2 or values.shape[1] != width or (count is not None and len(values) != count):
            expected = (count or "any", width)
            raise self.document.fail(f"a vertex attribute has shape {values.shape}, expected {expected}")
        return values.astype(np.float64)

    def _morphed(self, entry: dict[str, Any], morph: Any, count: int) -> np.ndarray | float:
        """The displacement of the default morph weights."""
        targets = entry.get("targets", [])
        if not isinstance(targets, list) or not isinstance(morph, list):
            return 0.0
        total: np.ndarray | float = 0.0
        for target, weight in zip(targets, morph, strict=False):
            if type(weight) in (int, float) and weight and isinstance(target, dict) and "POSITION" in target:
                total = total + float(weight) * self.document.vectors(target["POSITION"], 3, count=count)
        return total

    def _uvs(self, attributes: dict[str, np.ndarray], look: Look, count: int) -> np.ndarray | None:
        values = attributes.get(f"TEXCOORD_{look.uv_set}")
        if values is None:
            return None
        uvs = np.nan_to_num(self._checked(values, 2, count), posinf=0.0, neginf=0.0).clip(-1e4, 1e4)
        du, dv, angle, su, sv = look.uv_transform
        if look.uv_transform != (0.0, 0.0, 0.0, 1.0, 1.0):
            c, s = np.cos(angle), np.sin(angle)
            uvs = uvs * [su, sv] @ np.array([[c, -s], [s, c]]) + [du, dv]
        return uvs

    def _colors(self, attributes: dict[str, np.ndarray], look: Look, uvs: np.ndarray | None, count: int) -> np.ndarray:
        linear = np.tile(np.array(look.color[:3]), (count, 1))
        if "COLOR_0" in attributes and attributes["COLOR_0"].shape in ((count, 3), (count, 4)):
            painted = attributes["COLOR_0"][:, :3].astype(np.float64)
            if attributes["COLOR_0"].dtype.kind == "u":
                painted /= np.iinfo(attributes["COLOR_0"].dtype).max
            linear = linear * np.nan_to_num(painted).clip(0, 1)
        if look.texture is not None and uvs is not None:
            linear = linear * srgb_to_linear(sample(look.texture, uvs)[:, :3])
        return linear_to_srgb(linear)

    def _influences(self, attributes: dict[str, np.ndarray], count: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """All JOINTS_n / WEIGHTS_n sets side by side."""
        joints, weights = [], []
        for n in range(16):
            if f"JOINTS_{n}" not in attributes or f"WEIGHTS_{n}" not in attributes:
                break
            joints.append(self._checked(attributes[f"JOINTS_{n}"], 4, count))
            values = self._checked(attributes[f"WEIGHTS_{n}"], 4, count)
            kind = attributes[f"WEIGHTS_{n}"].dtype.kind
            weights.append(values / np.iinfo(attributes[f"WEIGHTS_{n}"].dtype).max if kind == "u" else values)
        if not joints:
            return None, None
        return np.concatenate(joints, 1).astype(np.int64), np.concatenate(weights, 1)

    def _look(self, index: Any) -> int:
        if index is not None:
            self.document.item("materials", index)
        if index not in self._by_material:
            self._by_material[index] = len(self.looks)
            self.looks.append(self._read_look(index))
        return self._by_material[index]

    def _read_look(self, index: int | None) -> Look:
        document = self.document
        if index is None:
            return Look("default", (1.0, 1.0, 1.0, 1.0))
        entry = document.item("materials", index)
        name = entry.get("name") if isinstance(entry.get("name"), str) else f"material_{index}"
        surface = entry.get("pbrMetallicRoughness", {})
        factor, texture = "baseColorFactor", "baseColorTexture"
        extensions = entry.get("extensions")
        older = extensions.get("KHR_materials_pbrSpecularGlossiness") if isinstance(extensions, dict) else None
        if isinstance(older, dict):
            surface, factor, texture = older, "diffuseFactor", "diffuseTexture"
        if not isinstance(surface, dict):
            raise document.fail(f"materials[{index}] is not an object")
        r, g, b, a = document.floats(surface, factor, 4, [1.0, 1.0, 1.0, 1.0])
        info = surface.get(texture)
        if not isinstance(info, dict):
            return Look(str(name), (r, g, b, a))
        moved = info.get("extensions", {}) if isinstance(info.get("extensions", {}), dict) else {}
        moved = moved.get("KHR_texture_transform")
        moved = moved if isinstance(moved, dict) else {}
        offset, scale = document.floats(moved, "offset", 2, [0.0, 0.0]), document.floats(moved, "scale", 2, [1.0, 1.0])
        angle = moved.get("rotation", 0.0)
        angle = float(angle) if type(angle) in (int, float) and np.isfinite(angle) else 0.0
        uv_set = document.number({**info, **moved}, "texCoord", 0)
        placed = (offset[0], offset[1], angle, scale[0], scale[1])
        return Look(str(name), (r, g, b, a), self._texture(info.get("index")), uv_set, placed)

    def _texture(self, index: Any) -> np.ndarray | None:
        source = self.document.item("textures", index).get("source")
        if source is None:
            self.note("a texture in a format that is not PNG or JPEG was left out of the preview colours")
            return None
        if source not in self._images:
            self._images[source] = self._image(source)
        return self._images[source]

    def _image(self, index: Any) -> np.ndarray | None:
        document = self.document
        entry = document.item("images", index)
        try:
            inside = "bufferView" in entry
            data = bytes(document.view(entry["bufferView"])[0]) if inside else document.resource(entry.get("uri"))
        except FileFormatError as error:
            self.note(f"image {index} could not be found and was left out ({error})")
            return None
        try:
            image = decode_image(data, max_pixels=_MAX_PIXELS)
        except FileFormatError as error:
            self.note(f"image {index} was left out ({error})")
            return None
        document.spend(image.nbytes)
        return image


def _triangles(flat: np.ndarray, mode: int) -> np.ndarray:
    if mode == 4:
        return flat[: len(flat) // 3 * 3].reshape(-1, 3)
    if len(flat) < 3:
        return np.zeros((0, 3), np.int64)
    if mode == 6:
        return np.stack([np.full(len(flat) - 2, flat[0]), flat[1:-1], flat[2:]], 1)
    strip = np.stack([flat[:-2], flat[1:-1], flat[2:]], 1)
    strip[1::2] = strip[1::2, ::-1]
    return strip

"""Materials of an FBX file: base colours, and textures within the file."""

import re

import numpy as np

from jigdoll.formats.fbx.document import Document, full_name
from jigdoll.formats.textures import encode_png
from jigdoll.math.colors import linear_to_srgb, srgb_to_linear
from jigdoll.types import Material, Mesh

_SAME_COLOR = 1.5 / 255


def add_materials(document: Document, node: int, mesh: Mesh, body: str) -> tuple[np.ndarray, np.ndarray]:
    """The materials that faces use, tied to the node; the index of each face's, and which faces show painted vertices.

    A texture stands for its material's colour in FBX, so the factor that glTF multiplies it with goes into its pixels.
    Faces without a texture have their material's colour, or where their own vertices are painted otherwise, white
    under their paint.
    """
    faces = mesh.faces.numpy()
    groups = np.zeros(len(faces), np.int64) if mesh.face_materials is None else mesh.face_materials.numpy()
    owners = np.unique(np.stack([faces, np.broadcast_to(groups[:, None], faces.shape)], -1).reshape(-1, 2), axis=0)
    shared = np.bincount(owners[:, 0], minlength=len(mesh.vertices)) > 1
    seen = mesh.colors.double().numpy()
    face_materials, painted = np.zeros(len(faces), "<i4"), np.zeros(len(faces), bool)
    for index, group in enumerate(np.unique(groups)):
        mine = groups == group
        own = owners[owners[:, 1] == group, 0]
        material = mesh.materials[group] if mesh.materials else Material("painted", (1.0, 1.0, 1.0, 1.0))
        texture = material.texture if mesh.uvs is not None else None
        color = np.array(material.color[:3])
        if texture is None and not _plain_color(seen[own[~shared[own]]], color):
            painted[mine], color = True, np.ones(3)
        number = _add_material(document, material, np.ones(3) if texture is not None else color)
        document.connect(number, node)
        if texture is not None:
            _add_texture(document, number, f"{body}_{index}", _tinted(texture.numpy(), color))
        face_materials[mine] = index
    return face_materials, painted


def _plain_color(seen: np.ndarray, color: np.ndarray) -> bool:
    """Whether vertices [... 3] (sRGB) have nothing but a material's colour (linear)."""
    return bool(np.abs(seen - linear_to_srgb(color)).max(initial=0) <= _SAME_COLOR)


def _add_material(document: Document, material: Material, color: np.ndarray) -> int:
    number, record = document.add("Material", material.name, "Material")
    record.add("Version", 102)
    record.add("ShadingModel", "lambert")
    record.add("MultiLayer", 0)
    record.set("DiffuseColor", "Color", "", "A", *color.tolist())
    record.set("DiffuseFactor", "Number", "", "A", 1.0)
    alpha = float(material.color[3])
    if alpha < 1:
        record.set("TransparentColor", "Color", "", "A", 1.0, 1.0, 1.0)
        record.set("TransparencyFactor", "Number", "", "A", 1.0 - alpha)
        record.set("Opacity", "Number", "", "A", alpha)
    return number


def _add_texture(document: Document, material: int, name: str, image: np.ndarray) -> None:
    """A texture whose file, a PNG, lies within this one."""
    file = re.sub(r"[^\w-]", "_", name, flags=re.ASCII) + ".png"  # a plain name: some programs unpack it
    video, record = document.add("Video", name, "Video", "Clip")
    record.add("Type", "Clip")
    record.set("Path", "KString", "XRefUrl", "", file)
    record.add("UseMipMap", 0)
    record.add("Filename", file)
    record.add("RelativeFilename", file)
    record.add("Content", encode_png(image))
    texture, record = document.add("Texture", name, "Texture")
    record.add("Type", "TextureVideoClip")
    record.add("Version", 202)
    record.add("TextureName", full_name(name, "Texture"))
    record.set("UVSet", "KString", "", "", "UVMap")
    record.set("UseMaterial", "bool", "", "", 1)
    record.add("Media", full_name(name, "Video"))
    record.add("FileName", file)
    record.add("RelativeFilename", file)
    record.add("ModelUVTranslation", 0.0, 0.0)
    record.add("ModelUVScaling", 1.0, 1.0)
    record.add("Texture_Alpha_Source", "None")
    record.add("Cropping", 0, 0, 0, 0)
    document.connect(video, texture)
    document.connect(texture, material, "DiffuseColor")


def _tinted(texture: np.ndarray, color: np.ndarray) -> np.ndarray:
    """The texture [height width 4] times a colour (linear)."""
    if np.abs(color - 1).max() <= 1e-6:
        return texture
    out = texture.copy()
    out[..., :3] = (linear_to_srgb(srgb_to_linear(texture[..., :3] / 255.0) * color) * 255).round()
    return out

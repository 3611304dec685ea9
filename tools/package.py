"""Build the sdist and, from it, the wheel; install that into an empty environment; animate from another folder.

    python tools/package.py

The environment is new and holds the wheel alone; the libraries that jigdoll needs are those of the Python that runs
this, so that none is downloaded again. CI runs it with `make package`.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROMPT = "a fox walks"


def main() -> None:
    """All steps, each said."""
    with tempfile.TemporaryDirectory(prefix="jigdoll-package-") as folder:
        here = Path(folder)
        wheel = build(here)
        environment = install(here, wheel)
        try_it(here, environment)


def build(here: Path) -> Path:
    """The sdist of a copy of the sources and the wheel of the sdist; all that the sources hold must be in both."""
    copy = here / "sources"
    copy.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    wanted = {path.relative_to(copy / "src").as_posix() for path in (copy / "src").rglob("*") if path.is_file()}
    run([sys.executable, "-m", "build", "--outdir", str(here / "dist"), str(copy)], cwd=here)
    [sdist], [wheel] = (here / "dist").glob("*.tar.gz"), (here / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/src/")[2] for name in archive.getnames()}
    for kind, found in (("wheel", inside), ("sdist", packed)):
        if missing := sorted(wanted - found):
            raise SystemExit(f"the {kind} lacks {', '.join(missing)}; name them in pyproject.toml, package-data")
    weights = sorted(name for name in wanted if "/weights/" in name)
    say(f"{sdist.name} {sdist.stat().st_size / 1e6:.1f} MB, {wheel.name} {wheel.stat().st_size / 1e6:.1f} MB: "
        f"{len(wanted)} files, {len(weights)} of weights")  # fmt: skip
    return wheel


def install(here: Path, wheel: Path) -> Path:
    """A new environment with the wheel; the other libraries come from ours, jigdoll itself does not."""
    environment = here / "environment"
    venv.create(environment, with_pip=False, symlinks=os.name != "nt")
    python = python_of(environment)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    run([*pip, str(wheel)], cwd=here)
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    # A path in a .pth file is searched after the environment's own, and the editable install there has no effect.
    (own / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return environment


def try_it(here: Path, environment: Path) -> None:
    """What a newcomer does: ask the doctor, animate, look at what was written."""
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    script = python_of(environment).with_name("jigdoll")
    code = "import jigdoll; print(jigdoll.__file__)"
    place = run([str(python_of(environment)), "-c", code], cwd=elsewhere, env=clean).strip()
    if not Path(place).is_relative_to(environment.resolve()):
        raise SystemExit(f"jigdoll was imported from {place}, not from the wheel")
    doctor = json.loads(run([str(script), "doctor", "--json"], cwd=elsewhere, env=clean))
    if broken := [part["part"] for part in doctor["parts"] if part["state"] == "broken"]:
        raise SystemExit(f"jigdoll doctor says that these are broken: {', '.join(broken)}")
    started = time.monotonic()
    told = json.loads(run([str(script), "animate", PROMPT, "--json"], cwd=elsewhere, env=clean))
    kinds = {Path(file).suffix for file in told["files"] if (elsewhere / file).stat().st_size > 1000}
    if not {".glb", ".bvh", ".mp4", ".png", ".html"} <= kinds:
        raise SystemExit(f"jigdoll animate wrote {told['files']}")
    say(f'jigdoll animate "{PROMPT}" from another folder: {time.monotonic() - started:.0f} s, all files are there')


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(words: list[str], *, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a program; its last lines are shown if it fails."""
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()

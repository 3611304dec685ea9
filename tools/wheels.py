"""Is there a wheel of every dependency for every system? Asks the index through pip, and downloads nothing large.

python tools/wheels.py                # writes the table in docs/install.md
python tools/wheels.py --python 3.13
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
SYSTEMS = {
    "Linux x86-64": ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
    "Linux ARM": ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "Windows x86-64": ["win_amd64"],
    "macOS ARM": ["macosx_14_0_arm64"],
}
"""The tags that pip is given for each system."""
START, END = "<!-- wheels -->", "<!-- /wheels -->"


def wanted() -> dict[str, list[str]]:
    """What the package and each of its extras name, in the versions of the lock files."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = {}
    for lock in ("requirements.lock", "requirements-dev.lock"):
        for line in (ROOT / lock).read_text().splitlines():
            name, sign, version = line.partition("==")
            if sign:
                versions[re.sub(r"[-_.]+", "-", name).lower()] = version
    groups = {"every installation": project["dependencies"], **project["optional-dependencies"]}
    groups.pop("docs")
    found = {}
    for group, needs in groups.items():
        names = [re.match(r"[\w-]+", need)[0] for need in needs]  # type: ignore[index]
        found[group] = [f"{name}=={versions[re.sub(r'[-_.]+', '-', name).lower()]}" for name in names]
    return found


def has_wheel(need: str, tags: list[str], python: str) -> bool:
    """Whether pip finds a wheel of exactly this version for a system."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--no-deps", "--only-binary=:all:"]
    with tempfile.TemporaryDirectory() as folder:
        command += ["--target", folder, "--python-version", python, "--disable-pip-version-check"]
        for tag in tags:
            command += ["--platform", tag]
        return subprocess.run([*command, need], capture_output=True, check=False).returncode == 0


def table(python: str) -> tuple[str, dict[str, dict[str, bool]]]:
    """The table of the manual, and what it says."""
    rows, found = [f"| package | for | {' | '.join(SYSTEMS)} |", f"|---|---|{'---|' * len(SYSTEMS)}"], {}
    for group, needs in wanted().items():
        for need in needs:
            found[need] = {system: has_wheel(need, tags, python) for system, tags in SYSTEMS.items()}
            marks = " | ".join("yes" if there else "**no**" for there in found[need].values())
            rows.append(f"| {need.replace('==', ' ')} | {group} | {marks} |")
            print(rows[-1], flush=True)
    return "\n".join(rows), found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text, found = table(options.python)
    page = PAGE.read_text()
    before, after = page.partition(START)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{text}\n{END}{after}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

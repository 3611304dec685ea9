"""The licences of everything that jigdoll installs, from what the packages say of themselves.

python tools/licences.py              # writes docs/licences.md
python tools/licences.py --check      # fails where the page is old or a licence is not allowed
"""

import argparse
import importlib.metadata
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
LOCKS = {
    "requirements.lock": "every installation",
    "requirements-dev.lock": "extras, tests",
    "requirements-docs.lock": "the manual",
}
"""Files of fixed versions, and what their packages are for; the first that names a package counts."""
ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0"),
    *("CC0-1.0", "CNRI-Python", "ISC", "LicenseRef-TOST-1.0", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib"),
}
"""Licences with which a program may be used, changed and sold without opening its own code. MPL binds only those who
change the package itself; TOST is Apache-2.0 with its clause on trademarks changed (OpenUSD)."""
SAID = {"embreex": "BSD-2-Clause", "gsplat": "Apache-2.0", "ufbx": "MIT"}
"""Where the metadata names none: what the package's own licence file or repository says."""
WORDS = (
    (r"apache", "Apache-2.0"),
    (r"mozilla|^mpl", "MPL-2.0"),
    (r"\bmit\b", "MIT"),
    (r"isc\b", "ISC"),
    (r"bsd.?2|2.clause", "BSD-2-Clause"),
    (r"bsd.?3|3.clause", "BSD-3-Clause"),
    (r"bsd", "BSD"),
    (r"python software", "PSF-2.0"),
)
"""Old ways to write a licence, as SPDX names it; the first that is found counts."""


@dataclass(frozen=True)
class Package:
    """A package of a lock file."""

    name: str
    version: str
    licence: str
    use: str

    @property
    def is_allowed(self) -> bool:
        """Whether one of the choices (OR) consists (AND) of allowed licences only."""
        choices = self.licence.replace("(", "").replace(")", "").split(" OR ")
        return any(all(part.strip() in ALLOWED for part in choice.split(" AND ")) for choice in choices)


def packages() -> list[Package]:
    """All packages of the lock files that are installed here, by name."""
    found: dict[str, Package] = {}
    for lock, use in LOCKS.items():
        for line in (ROOT / lock).read_text().splitlines():
            name, sign, version = line.partition("==")
            if sign and name not in found:
                found[name] = Package(name, version, licence_of(name), use)
    return sorted(found.values(), key=lambda package: package.name.lower())


def licence_of(name: str) -> str:
    """The licence of an installed package in SPDX's words, `not installed` or `unknown`."""
    try:
        about = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
    if "License-Expression" in about:
        return about["License-Expression"]
    if name in SAID:
        return SAID[name]
    words = [entry.rpartition("::")[2].strip() for entry in about.get_all("Classifier") or [] if entry[:7] == "License"]
    text = about["License"] if "License" in about else ""
    if re.fullmatch(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", text) and "-" in text:
        return text  # SPDX already
    for word in (text[:60], *words):
        for pattern, licence in WORDS:
            if re.search(pattern, word, re.I):
                return licence
    return "unknown"


def page(rows: list[Package]) -> str:
    """The page of the manual."""
    table = "\n".join(f"| {row.name} | {row.version} | {row.licence} | {row.use} |" for row in rows)
    return f"""# Licences

jigdoll is under Apache-2.0. This is what it installs. `python tools/licences.py` writes this page from what the
packages say of themselves, and a test fails on a licence that is not on the list in that file: none binds a program
that uses it.

Two things that no metadata says: `imageio-ffmpeg` (BSD) brings a program, ffmpeg, under the GPL 3; jigdoll starts it as
a process of its own and links nothing of it. The CUDA build of torch (see [installation](install.md)) brings NVIDIA's
libraries under NVIDIA's own terms; the CPU build does not.

| package | version | licence | for |
|---|---|---|---|
{table}
"""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    rows = packages()
    wrong = [f"{row.name}: {row.licence}" for row in rows if not row.is_allowed]
    if not check:
        PAGE.write_text(page(rows))
    elif PAGE.read_text() != page(rows):
        wrong.append(f"{PAGE.name} is old: run python tools/licences.py")
    print("\n".join(wrong) or f"{len(rows)} packages, all allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

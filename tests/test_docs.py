"""The manual: short, without dead links, and with names that exist."""

import ast
import re
from pathlib import Path

import pytest

import jigdoll
from jigdoll.cli import GROUPS, VERBS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_the_readme_is_short_and_its_first_snippet_animates() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    first = re.findall(r"```python\n(.*?)```", text, re.S)[0]
    assert "jigdoll.animate(" in first and len(first.strip().splitlines()) <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not re.match(r"https?:|#", link):
            assert (page.parent / link.partition("#")[0]).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_use_names_and_verbs_that_exist(page: Path) -> None:
    text = page.read_text()
    for snippet in re.findall(r"```python\n(.*?)```", text, re.S):
        for node in ast.walk(ast.parse(snippet)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jigdoll":
                assert node.attr in jigdoll.__all__, node.attr
            if isinstance(node, ast.ImportFrom) and node.module == "jigdoll":
                assert {alias.name for alias in node.names} <= set(jigdoll.__all__)
    for shell in re.findall(r"```(?:bash|sh)\n(.*?)```", text, re.S):
        for verb, second in re.findall(r"^jigdoll (\w+) ?(\w*)", shell, re.M):
            assert verb in VERBS, verb
            assert verb not in GROUPS or second in GROUPS[verb], second


def test_every_result_names_its_commit_date_and_command() -> None:
    # The sections below the first table name theirs in words.
    first = (ROOT / "benchmarks" / "RESULTS.md").read_text().split("\n## ", maxsplit=1)[0]
    rows = [line for line in first.splitlines() if line.startswith("| ")]
    figures = [row for row in rows[1:] if row.count(" | ") == 5]
    assert len(figures) >= 15
    for row in figures:
        assert re.search(r"`[0-9a-f]{7}` \| 20\d\d-\d\d-\d\d \| `[^`]+` \|$", row), row


def test_torch_is_fixed_in_the_locks_and_free_in_the_package() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        assert "torch==2.13.0" in (ROOT / name).read_text().splitlines()
    assert '"torch>=' in (ROOT / "pyproject.toml").read_text()
    assert "pip install -q torch==2.13.0" in (ROOT / "Makefile").read_text()


def test_the_container_installs_the_torch_of_the_lock_file() -> None:
    locked = re.findall(r"^torch==(\S+)", (ROOT / "requirements.lock").read_text(), re.M)
    for file in ("Containerfile", "Makefile"):
        assert re.findall(r"torch==([\d.]+)", (ROOT / file).read_text()) == locked, file

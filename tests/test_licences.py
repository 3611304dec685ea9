"""Every dependency has a licence that binds nobody who uses jigdoll, the manual lists them, and nothing is pickled."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from licences import PAGE, Package, packages, page  # noqa: E402


def test_every_dependency_is_under_a_licence_on_the_list() -> None:
    rows = packages()
    assert len(rows) > 60
    assert [f"{row.name}: {row.licence}" for row in rows if row.licence != "not installed" and not row.is_allowed] == []


def test_the_page_of_licences_is_what_the_packages_say() -> None:
    rows = packages()
    if absent := [row.name for row in rows if row.licence == "not installed"]:
        pytest.skip(f"not installed here: {', '.join(absent)}")
    assert PAGE.read_text() == page(rows)


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [("MIT", True), ("GPL-3.0", False), ("MIT AND GPL-3.0", False), ("MIT OR GPL-3.0", True), ("unknown", False)],
)
def test_a_licence_is_allowed_if_one_choice_is_wholly(licence: str, allowed: bool) -> None:
    assert Package("x", "1", licence, "").is_allowed is allowed


FILES = sorted(p for folder in ("src", "benchmarks", "examples", "tools") for p in (ROOT / folder).rglob("*.py"))
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_is_pickled(file: Path) -> None:
    """No module that pickles is imported, nothing that may unpickle is called without being told not to."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.partition(".")[0] for name in names} & PICKLES, f"{file.name} imports {names}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = f"{ast.unparse(node.func.value)}.{node.func.attr}"
            told = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if called in ("torch.load", "torch.jit.load"):
                assert told.get("weights_only") == "True", f"{file.name} line {node.lineno}"
            assert called != "torch.save", f"{file.name} line {node.lineno}: write safetensors"
            if re.fullmatch(r"(np|numpy)\.load", called):
                assert told.get("allow_pickle", "False") == "False", f"{file.name} line {node.lineno}"


def test_no_weights_in_the_package_are_pickles() -> None:
    weights = [path for path in (ROOT / "src").rglob("weights/*") if path.is_file()]
    assert weights and {path.suffix for path in weights} <= {".safetensors", ".json"}

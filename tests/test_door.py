"""The public door: what `import jigdoll` gives, how heavy it is, and what its functions do."""

import inspect
import subprocess
import sys
import typing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import jigdoll
from jigdoll import zoo
from jigdoll.door import load, retarget
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward
from jigdoll.types import Motion, RiggedAsset

VERBS = ("animate", "judge", "load", "render", "retarget", "rig", "save", "track")


@pytest.fixture(scope="module")
def ant() -> RiggedAsset:
    return zoo.make("ant")


def test_importing_jigdoll_loads_nothing_heavy() -> None:
    script = (
        "import jigdoll, sys; "
        "heavy = {'torch', 'numpy', 'scipy', 'numba', 'PIL', 'rich', 'tyro', 'jaxtyping'}; "
        "print(sorted(heavy & set(sys.modules)), len(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy, count = done.stdout.rsplit(" ", 1)
    assert heavy == "[]" and int(count) < 150


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_typed_and_documented(name: str) -> None:
    assert name in jigdoll.__all__
    verb = inspect.unwrap(getattr(jigdoll, name))
    doc = inspect.getdoc(verb)
    assert doc and doc.splitlines()[0].endswith((".", ":"))
    hints = typing.get_type_hints(verb)
    parameters = inspect.signature(verb).parameters
    assert "return" in hints and set(parameters) <= set(hints)
    for parameter in parameters.values():
        if parameter.default is not inspect.Parameter.empty and parameter.name not in ("clip", "clips", "prompt"):
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, parameter.name


def test_types_are_there_for_those_who_check_them() -> None:
    assert (Path(jigdoll.__file__).parent / "py.typed").is_file()


def test_a_room_is_a_verb_and_stays_a_package() -> None:
    import jigdoll.judge.check
    import jigdoll.rig.limbs

    assert callable(jigdoll.judge) and callable(jigdoll.rig) and callable(jigdoll.render)
    assert inspect.ismodule(jigdoll.judge.check) and inspect.ismodule(jigdoll.rig.limbs)
    from jigdoll import judge

    assert judge("zoo:ant", "walk", seconds=0.5).frames == 13
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        jigdoll.fly  # noqa: B018


def test_a_character_is_opened_from_a_file_the_zoo_words_or_itself(ant: RiggedAsset, tmp_path: Path) -> None:
    file = jigdoll.save(tmp_path / "ant.glb", ant)
    for source in ("zoo:ant", file, str(file), "a small ant"):
        assert "ant" in load(source).name and load(source).is_rigged
    with pytest.raises(JigdollError, match="no such file"):
        load("my fox.glb")
    with pytest.raises(JigdollError, match="cannot tell what"):
        load("fox")


def test_a_clip_is_named_in_the_same_way_everywhere(ant: RiggedAsset, tmp_path: Path) -> None:
    walk = zoo_walk(ant)
    file = jigdoll.save(tmp_path / "ant.glb", ant, [walk])
    bvh = jigdoll.save(tmp_path / "walk.bvh", ant, walk)
    frames = {jigdoll.judge(file, clip, fps=12.0).frames for clip in ("stroll", bvh, f"{file}:stroll", walk)}
    assert frames == {len(walk)}
    assert jigdoll.judge(file, "run", seconds=0.5, fps=12.0).frames == 7  # a gait of its body
    for name in ("stroll", f"{file}:stroll"):
        assert jigdoll.render(tmp_path / "a.png", file, name, size=(32, 24), fps=12.0).stat().st_size > 0
    both = [replace(walk, name=f"Rig|{name}") for name in ("Run", "Run_Jump")]
    two = jigdoll.save(tmp_path / "two.glb", ant, both)
    assert jigdoll.judge(two, "run", fps=12.0).frames == len(walk)  # Blender writes ARMATURE|CLIP
    moved = retarget(bvh, ant)
    torch.testing.assert_close(
        forward(ant.skeleton, moved.pose)[..., :3, 3],
        forward(ant.skeleton, walk.pose)[..., :3, 3],
        atol=0.05,
        rtol=0,
    )
    assert len(retarget(walk, "zoo:spider", of=ant)) == len(walk)
    with pytest.raises(JigdollError, match="say whose motion it is"):
        retarget(walk, ant)
    with pytest.raises(JigdollError, match="no clip is called 'swim'"):
        jigdoll.judge(file, "swim")


def zoo_walk(ant: RiggedAsset) -> Motion:
    from dataclasses import replace

    from jigdoll.zoo.gaits import reference_motion

    return replace(reference_motion(ant, "walk", seconds=1.0, fps=12.0), name="stroll")


def test_a_bare_mesh_is_rigged(ant: RiggedAsset) -> None:
    with pytest.warns(UserWarning, match="a new rig takes their place"):
        made = jigdoll.rig(ant, joints=30)
    assert made.is_rigged and made.skeleton.names != ant.skeleton.names and made.source is None

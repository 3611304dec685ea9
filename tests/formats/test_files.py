"""Reading and writing at the border: bounds, whole files or nothing, paths that stay inside."""

import os
import warnings
from pathlib import Path

import pytest

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import atomic_write, inside_folder, read_limited, write_bytes
from jigdoll.formats.joints import unique_names


def test_a_file_of_exactly_the_largest_size_is_read(tmp_path: Path) -> None:
    path = write_bytes(tmp_path / "a.bin", b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(FileFormatError, match=r"a\.bin: 5 bytes are more than the 4 allowed"):
        read_limited(path, 4)


def test_what_is_no_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"nothing\.glb: there is no such file"):
        read_limited(tmp_path / "nothing.glb", 10)
    with pytest.raises(FileFormatError, match="folder"):
        read_limited(tmp_path, 10)
    with pytest.raises(FileFormatError):
        read_limited("a\0b", 10)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_bytes(tmp_path / "clip.glb", b"old")
    with pytest.raises(RuntimeError, match="half way"), atomic_write(path) as temporary:
        temporary.write_bytes(b"ne")
        assert temporary.parent == path.parent
        assert temporary.suffix == ".glb"
        raise RuntimeError("half way")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_made_and_permissions_are_the_users(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write_bytes(tmp_path / "new" / "deep" / "clip.bvh", b"data")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"data"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="folder"):
        write_bytes(tmp_path, b"data")
    file = write_bytes(tmp_path / "file", b"")
    with pytest.raises(FileFormatError, match="cannot be written"):
        write_bytes(file / "below.bin", b"data")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "link/x", "a\0b"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(FileFormatError, match=r"model\.obj"):
        inside_folder(folder, name, of=folder / "model.obj")


def test_names_inside_the_folder_are_found(tmp_path: Path) -> None:
    assert inside_folder(tmp_path, "a/../b.png", of=tmp_path / "m.obj") == (tmp_path / "b.png").resolve()


def test_unique_names_stay_and_others_get_numbers_that_are_free() -> None:
    with pytest.warns(RepairWarning, match=r"file: joint names must be unique: renamed 'a' -> 'a_3'"):
        assert unique_names(["a", "a_2", "a", "", "a"], where="file") == ("a", "a_2", "a_3", "joint_1", "a_4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unique_names(["x", "y"]) == ("x", "y")

"""What a person directs besides the words."""

from pathlib import Path

import numpy as np
import pytest

from jigdoll.directions import read_path, split_frame
from jigdoll.errors import JigdollError


@pytest.mark.parametrize(
    "text",
    ["0 0\n1 2\n3 4", "x,z\n0,0\n1,2\n3,4\n", "# a curve\n0;0\n\n1;2 # corner\n3;4", "[[0, 0], [1, 2], [3, 4]]"],
)
def test_a_path_is_read_from_lines_csv_and_json(tmp_path: Path, text: str) -> None:
    file = tmp_path / "path.txt"
    file.write_text(text)
    assert np.array_equal(read_path(file), [[0, 0], [1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "two finite"),
        ("1 2", "2 to"),
        ("1 2 3\n4 5 6", "two finite"),
        ("0 0\nnan 1", "two finite"),
        ("0 0\n1 east", "not a path"),
        ("[[0, 0], {}]", "path"),
        ("1 1\n1 1", "one place"),
    ],
)
def test_a_bad_path_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(JigdollError, match=words):
        read_path(file)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JigdollError, match="no such file"):
        read_path(tmp_path / "none.csv")


def test_a_frame_is_named_after_the_clip() -> None:
    assert split_frame("walk@12") == ("walk", 12)
    assert split_frame("pack.glb:Run") == ("pack.glb:Run", None)
    with pytest.raises(JigdollError, match="number of a frame"):
        split_frame("walk@last")

"""Files unpacked in a process that may die."""

import sys
from pathlib import Path

import numpy as np
import pytest

from jigdoll.errors import FileFormatError
from jigdoll.formats.apart import unpack_apart
from jigdoll.zoo import make

MEMORY = 256 * 1024**2


def unpack(folder: Path, body: str, *words: str, seconds: float = 60.0) -> tuple[dict, dict]:
    script, file = folder / "script.py", folder / "some.file"
    script.write_text(f"import numpy as np\ndef unpack(path, *words):\n    {body}\n")
    file.write_bytes(b"abc")
    return unpack_apart(script, file, *words, kind="USD", memory=MEMORY, seconds=seconds)


def test_values_and_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    body = "return {'words': words, 'bytes': len(open(path, 'rb').read())}, {'a': np.arange(6.0).reshape(2, 3)}"
    about, arrays = unpack(tmp_path, body, "one", "é")
    assert about == {"words": ["one", "é"], "bytes": 3}
    assert list(arrays) == ["a"]
    np.testing.assert_array_equal(arrays["a"], np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os._exit(7)", "exit code 7"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        ("raise UnicodeDecodeError('utf-8', b'a', 0, 1, 'bad')", "UnicodeDecodeError"),
        ("return {}, {'a': np.ones(2**27)}", "more memory"),
        ("return {}, {'a': np.array([object()])}", "Object arrays"),
    ],
)
def test_whatever_ends_the_process_is_one_line_with_the_file_and_the_reason(
    tmp_path: Path, body: str, reason: str
) -> None:
    with pytest.raises(FileFormatError, match=reason) as caught:
        unpack(tmp_path, body)
    assert "some.file" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"not unpacked in 0\.5 s"):
        unpack(tmp_path, "import time; time.sleep(60)", seconds=0.5)


def test_usd_is_read_without_its_library_in_our_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pxr = pytest.importorskip("pxr", reason="usd-core is not installed")
    from jigdoll.formats import usd

    ant = make("ant")
    file = usd.write(tmp_path / "ant.usdc", ant)
    monkeypatch.delattr(pxr, "Usd")
    monkeypatch.setitem(sys.modules, "pxr.Usd", None)
    assert usd.read(file).skeleton.names == ant.skeleton.names

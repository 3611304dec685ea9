"""An FBX scene under construction: objects with numbers, which belongs to which, and what stands around them."""

from collections import Counter

import numpy as np

from jigdoll import __version__
from jigdoll.formats.fbx.binary import CREATION_TIME, FILE_ID, VERSION, Record, pack

SECOND = 46186158000
"""FBX counts time in these."""
_RATES = {120.0: 1, 100.0: 2, 60.0: 3, 50.0: 4, 48.0: 5, 30.0: 6, 25.0: 10, 24.0: 11, 1000.0: 12}
_CUSTOM_RATE = 14
ROOT = 0
"""The number of the scene itself, above all objects."""


def plain_name(name: str) -> str:
    """A name that FBX can hold: text without the characters that end a name there."""
    text = name.encode("utf-8", "replace").decode()
    return "".join("_" if sign in "\x00\x01" else sign for sign in text)


def full_name(name: str, kind: str) -> str:
    """A name as objects carry it, followed by their kind."""
    return f"{plain_name(name)}\x00\x01{kind}"


class Document:
    """Objects and connections; `finish` gives the file."""

    def __init__(self) -> None:
        self.objects = Record("Objects")
        self.connections = Record("Connections")
        self.takes: list[tuple[str, int]] = []
        self._numbers = 1_000_000

    def add(self, record: str, name: str, kind: str, subtype: str = "") -> tuple[int, Record]:
        """A new object with its number."""
        self._numbers += 1
        return self._numbers, self.objects.add(record, np.int64(self._numbers), full_name(name, kind), subtype)

    def connect(self, child: int, parent: int = ROOT, to: str | None = None) -> None:
        """Tie an object to another (or to the scene), or to one of its properties."""
        ends = (np.int64(child), np.int64(parent))
        self.connections.add("C", "OO", *ends) if to is None else self.connections.add("C", "OP", *ends, to)

    def finish(self, fps: float) -> bytes:
        """The bytes of the file; `fps` is what a timeline should show."""
        top = [
            _header(),
            Record("FileId", (FILE_ID,)),
            Record("CreationTime", (CREATION_TIME,)),
            Record("Creator", (f"jigdoll {__version__}",)),
            self._settings(fps),
            self._documents(),
            Record("References"),
            self._definitions(),
            self.objects,
            self.connections,
            self._takes(),
        ]
        return pack(top)

    def _settings(self, fps: float) -> Record:
        """Y up, Z to the front, X to the right, centimetres."""
        settings = Record("GlobalSettings")
        settings.add("Version", 1000)
        for name, value in (
            *(("UpAxis", 1), ("UpAxisSign", 1), ("FrontAxis", 2), ("FrontAxisSign", 1)),
            *(("CoordAxis", 0), ("CoordAxisSign", 1), ("OriginalUpAxis", 1), ("OriginalUpAxisSign", 1)),
        ):
            settings.set(name, "int", "Integer", "", value)
        settings.set("UnitScaleFactor", "double", "Number", "", 1.0)
        settings.set("OriginalUnitScaleFactor", "double", "Number", "", 1.0)
        settings.set("TimeMode", "enum", "", "", _RATES.get(fps, _CUSTOM_RATE))
        settings.set("TimeSpanStart", "KTime", "Time", "", np.int64(0))
        stop = max((stop for _, stop in self.takes), default=SECOND)
        settings.set("TimeSpanStop", "KTime", "Time", "", np.int64(stop))
        settings.set("CustomFrameRate", "double", "Number", "", float(fps))
        return settings

    def _documents(self) -> Record:
        documents = Record("Documents")
        documents.add("Count", 1)
        document = documents.add("Document", np.int64(1_000_000), "", "Scene")
        document.set("ActiveAnimStackName", "KString", "", "", self.takes[0][0] if self.takes else "")
        document.add("RootNode", np.int64(ROOT))
        return documents

    def _definitions(self) -> Record:
        """How many objects there are of each type."""
        counts = Counter({"GlobalSettings": 1})
        counts.update(record.name for record in self.objects.children)
        definitions = Record("Definitions")
        definitions.add("Version", 100)
        definitions.add("Count", sum(counts.values()))
        for kind, count in counts.items():
            definitions.add("ObjectType", kind).add("Count", count)
        return definitions

    def _takes(self) -> Record:
        takes = Record("Takes")
        takes.add("Current", self.takes[0][0] if self.takes else "")
        for name, stop in self.takes:
            take = takes.add("Take", name)
            take.add("FileName", f"{name}.tak")
            take.add("LocalTime", np.int64(0), np.int64(stop))
            take.add("ReferenceTime", np.int64(0), np.int64(stop))
        return takes


def _header() -> Record:
    header = Record("FBXHeaderExtension")
    header.add("FBXHeaderVersion", 1003)
    header.add("FBXVersion", VERSION)
    header.add("EncryptionType", 0)
    stamp = header.add("CreationTimeStamp")
    for name, value in (("Version", 1000), ("Year", 1970), ("Month", 1), ("Day", 1)):
        stamp.add(name, value)
    for name, value in (("Hour", 10), ("Minute", 0), ("Second", 0), ("Millisecond", 0)):
        stamp.add(name, value)
    header.add("Creator", f"jigdoll {__version__}")
    return header

"""The report, its charts, the VideoPhy pack and the verb judge: what they hold, and that they stand alone."""

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from jigdoll.errors import JigdollError
from jigdoll.judge import Verdict, judge, svg, walk_check
from jigdoll.judge.report import write_report
from jigdoll.judge.table import rows_of
from jigdoll.judge.videophy import Entry, write_pack
from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.render.draw import BACKGROUND, ClipStyle
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Weights
from stand_ins import jigdoll


def puppet(name: str = "puppet") -> RiggedAsset:
    """Two legs as flat triangles: enough to be judged and drawn, quick to make."""
    names = ("root", "left_hip", "left_knee", "left_foot", "right_hip", "right_knee", "right_<foot>")
    places = [(0, 1, 0), (0.2, 0, 0), (0, -0.5, 0), (0, -0.5, 0), (-0.2, 0, 0), (0, -0.5, 0), (0, -0.5, 0)]
    T = torch.eye(4).repeat(7, 1, 1)
    T[:, :3, 3] = torch.tensor(places, dtype=torch.float32)
    corners = torch.tensor([(0.0, 0.0, -0.1), (0.0, 0.0, 0.1), (0.0, 0.9, 0.0)])
    vertices = torch.cat([corners + torch.tensor([x, 0.0, 0.0]) for x in (0.2, -0.2)])
    joints = torch.tensor([[3], [3], [1], [6], [6], [4]])
    mesh = Mesh(vertices, torch.tensor([[0, 1, 2], [3, 4, 5]]), torch.full((6, 3), 0.5))
    return RiggedAsset(name, mesh, make_skeleton(names, (-1, 0, 1, 2, 0, 4, 5), T), Weights(joints, torch.ones(6, 1)))


def striding(name: str, frames: int = 12) -> Motion:
    turn = 2 * np.pi * torch.arange(frames) / frames
    pose = rest_pose(puppet().skeleton, frames=frames)
    for joint, sign in ((1, 1.0), (4, -1.0)):
        angle = 0.3 * sign * turn.sin()
        pose.rotations[:, joint] = torch.stack([(angle / 2).cos(), -(angle / 2).sin(), 0 * angle, 0 * angle], -1)
    way = torch.arange(frames)[:, None] * torch.tensor([0.0, 0.0, 0.05])
    return Motion(Pose(pose.root + way, pose.rotations), 12.0, name)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Verdict]:
    asset, motion = puppet("pup & pet"), striding("<script>alert(1)</script>")
    verdict = judge(asset, motion, reference=striding("the artist's"))
    written = write_report(
        tmp_path_factory.mktemp("report") / "r.html",
        asset,
        motion,
        verdict=verdict,
        prompt='a "puppet" <b>walks</b>',
        facts={"seed": "7"},
        losses={"guidance": [3.0, 2.0, float("nan"), 1.0], "none": []},
        check=walk_check(verdict, verdict),
    )
    return written.read_text(), verdict


class Structure(HTMLParser):
    """Open tags, and what was seen."""

    VOID = ("meta", "img", "path", "line", "rect", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_report_is_one_well_formed_file_that_needs_nothing_else(page: tuple[str, Verdict]) -> None:
    structure = Structure(page[0])
    assert structure.open == []
    assert not [tag for tag, _ in structure.seen if tag in ("script", "link", "iframe")]
    sources = [value for _, attrs in structure.seen for key, value in attrs.items() if key in ("src", "href")]
    assert len(sources) == 2 and all(str(source).startswith("data:") for source in sources)
    assert not re.search(r"(https?:)?//|url\(|@import", re.sub(r"base64,[^\"]*", "", page[0]))


def test_the_report_shows_names_and_prompts_as_they_are(page: tuple[str, Verdict]) -> None:
    words = Structure(page[0]).words
    assert "pup & pet: <script>alert(1)</script>" in words
    assert '“a "puppet" <b>walks</b>”' in words
    assert "right_<foot>" in words or any("right leg" in word for word in words)
    assert {" 7", " pup & pet"} <= set(words)


def test_the_report_holds_the_film_and_the_pictures(page: tuple[str, Verdict]) -> None:
    film, sheet = re.findall(r"base64,([^\"]*)\"", page[0])
    assert base64.b64decode(film)[4:8] == b"ftyp"
    picture = Image.open(io.BytesIO(base64.b64decode(sheet)))
    assert picture.width > 4 * 240 and picture.height > 3 * 180


def test_the_report_holds_every_number_and_that_of_the_reference(page: tuple[str, Verdict]) -> None:
    text, verdict = page
    words = Structure(text).words
    for row in rows_of(verdict):
        assert row.value in words and row.reference in words
    assert "the artist's " in words


def test_bars_stand_where_feet_stand() -> None:
    on = np.array([0, 1, 1, 0, 0, 1, 0, 0], bool)
    chart = svg.timeline([svg.Bars("left", on, "red", ~on, 4.0)], fps=4.0, frames=8, x_label="s")
    root = ElementTree.fromstring(chart)
    bars = [(float(r.get("x", 0)), float(r.get("width", 0))) for r in root.iter("rect") if r.get("fill") == "red"]
    axis = max(root.iter("line"), key=lambda line: float(line.get("x2", 0)) - float(line.get("x1", 0)))
    left, right = float(axis.get("x1", 0)), float(axis.get("x2", 0))
    frame = (right - left) / 8
    assert bars == [
        pytest.approx((left + frame, 2 * frame), abs=0.1),
        pytest.approx((left + 5 * frame, frame), abs=0.1),
    ]
    pale = sum(float(r.get("width", 0)) for r in root.iter("rect") if r.get("class") == "pale")
    assert pale == pytest.approx(5 * frame, abs=0.2)


@pytest.mark.parametrize("log", [False, True])
def test_a_curve_runs_from_corner_to_corner(log: bool) -> None:
    # Powers of ten are a straight line on a logarithmic axis, whole numbers on a plain one.
    y = 10.0 ** np.arange(5) if log else np.arange(5.0)
    chart = svg.line_chart([svg.Line("a", y, "red")], end=4.0, x_label="step", y_label="loss", log=log)
    (path,) = ElementTree.fromstring(chart).iter("path")
    points = np.array([[float(v) for v in word.split()] for word in re.split("[ML]", path.get("d", ""))[1:]])
    steps = np.diff(points, axis=0)
    assert len(points) == 5
    assert np.ptp(steps, axis=0) == pytest.approx([0, 0], abs=0.11)
    assert points[0, 1] - points[-1, 1] == pytest.approx(200 - svg.BOTTOM - svg.TOP, abs=0.2)


def test_a_curve_is_broken_where_it_is_not_a_number() -> None:
    chart = svg.line_chart([svg.Line("a", np.array([1, np.nan, 2, 3.0]), "red")], end=3.0, x_label="", y_label="")
    (path,) = ElementTree.fromstring(chart).iter("path")
    assert re.sub("[^ML]", "", path.get("d", "")) == "MML"


def test_a_constant_curve_and_an_empty_chart_are_drawn() -> None:
    for lines in ([svg.Line("a", np.full(4, 3.0), "red")], []):
        ElementTree.fromstring(svg.line_chart(lines, end=1.0, x_label="", y_label=""))


def test_a_pack_holds_what_videophys_script_reads(tmp_path: Path) -> None:
    captions = ['a "puppet", walks', "two\nlines"]
    entries = [Entry(puppet(), striding("walk", 6), caption) for caption in captions]
    style = ClipStyle(width=64, height=48, ground=False, shadow=False)
    table = write_pack(tmp_path, entries, style=style)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["videopath", "caption"]
    assert [row["caption"] for row in rows] == ['a "puppet", walks', "two lines"]
    films = [tmp_path / row["videopath"] for row in rows]
    assert len(set(films)) == 2 and all(film.read_bytes()[4:8] == b"ftyp" for film in films)
    assert "captions.csv" in (tmp_path / "README.txt").read_text()


def test_a_loss_that_sets_in_later_is_drawn_where_it_did() -> None:
    from jigdoll.judge.report import _losses_block

    text = _losses_block({"always": [1.0] * 11, "ramped": [2.0] * 3, "none": []})
    starts = [float(start) for start in re.findall(r'(?:points="|d="M)\s*([\d.]+)', text)]
    assert len(starts) == 2
    left, right = svg.LEFT, svg.WIDTH - svg.RIGHT
    assert starts[0] == pytest.approx(left, abs=1) and starts[1] == pytest.approx(left + 0.8 * (right - left), abs=1)


def test_videos_of_a_pack_show_no_ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[torch.Tensor] = []
    monkeypatch.setattr("jigdoll.formats.video.write", lambda path, frames, **options: drawn.append(frames))
    write_pack(tmp_path, [Entry(puppet(), striding("walk", 4), "a puppet walks")])
    border = torch.cat([drawn[0][:, 0].flatten(0, 1), drawn[0][:, -1].flatten(0, 1)]).float()
    plain = (torch.tensor(BACKGROUND) * 255).round()
    assert (border - plain).abs().max() <= 1


def test_a_pack_without_clips_or_captions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JigdollError, match="at least one"):
        write_pack(tmp_path, [])
    with pytest.raises(JigdollError, match="caption"):
        write_pack(tmp_path, [Entry(puppet(), striding("walk", 4), " ")])


def test_the_verb_judges_a_clip_of_a_file_beside_a_gait(assets_dir: Path, tmp_path: Path) -> None:
    fox = assets_dir / "rigged" / "khronos" / "Fox.glb"
    run = jigdoll("judge", fox, "Walk", "--against", "Run", "--scale", 0.01)
    assert run.returncode == 0, run.stderr
    assert "skate ratio" in run.stdout and "front legs" in run.stdout
    page = tmp_path / "v.html"
    run = jigdoll("judge", fox, "Walk", "--against", "Run", "--json", "--html", page, "--scale", 0.01)
    read = json.loads(run.stdout)
    assert read["name"] == "Walk" and read["reference"]["name"] == "Run" and read["in_place"]
    assert read["files"] == [str(page)] and "skate ratio" in page.read_text()


def test_the_verb_says_which_clips_there_are(assets_dir: Path, tmp_path: Path) -> None:
    fox = assets_dir / "rigged" / "khronos" / "Fox.glb"
    run = jigdoll("judge", fox, "Fly", "--scale", 0.01)
    assert run.returncode == 1 and "Survey, Walk, Run" in run.stderr and "Traceback" not in run.stderr
    run = jigdoll("judge", fox, "Walk", "--html", tmp_path / "report.pdf")
    assert run.returncode == 1 and ".html" in run.stderr


@pytest.mark.parametrize(
    ("file", "clip", "speed"),
    [
        ("khronos/Fox.glb", "Walk", 0.67),
        ("quaternius/animals_pack/Wolf.glb", "AnimalArmature|Walk", 0.37),
        ("mesh2motion/horse-animations.glb", "Walk", 0.48),
        ("khronos/CesiumMan.glb", "clip_0", 0.63),
        ("threejs/RobotExpressive.glb", "Walking", 1.02),
    ],
)
@pytest.mark.filterwarnings("ignore::jigdoll.errors.RepairWarning")
def test_artists_walks_on_the_spot_are_walks(assets_dir: Path, file: str, clip: str, speed: float) -> None:
    from jigdoll.asset.load import load

    asset = load(assets_dir / "rigged" / file)
    verdict = judge(asset, asset.clips[clip])
    assert verdict.in_place and verdict.heading > 0.99
    assert verdict.travel_speed == pytest.approx(speed, rel=0.1)
    assert all(pair.alternation < -0.7 for pair in verdict.pairs if pair.kind == "leg")
    assert min(leg.direction for leg in verdict.legs) > 0.5
    assert verdict.loop_error < 0.01
    assert len(verdict.legs) == (2 if "Man" in file or "Robot" in file else 4)


@pytest.mark.filterwarnings("ignore::jigdoll.errors.RepairWarning")
@pytest.mark.parametrize(
    ("file", "feet"),
    [
        ("quaternius/animals_pack/Wolf.glb", {"IKFrontLeg.L", "IKBackLeg.L", "IKFrontLeg.R", "IKBackLeg.R"}),
        ("threejs/RobotExpressive.glb", {"Foot.L", "Foot.R"}),
    ],
)
def test_feet_that_hang_on_controls_are_found_by_their_skin(assets_dir: Path, file: str, feet: set[str]) -> None:
    from jigdoll.asset.load import load
    from jigdoll.judge.anatomy import study

    asset = load(assets_dir / "rigged" / file)
    body = study(asset)
    names = [asset.skeleton.names[body.work.joints[leg.ankle]] for leg in body.legs]
    assert set(names) == feet
    for leg, name in zip(body.legs, names, strict=True):
        assert name.endswith({"left": "L", "right": "R"}[leg.side])
        assert len(leg.skin) > 50

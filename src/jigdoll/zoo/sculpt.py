"""A sculptor who lays shapes along a skeleton: limbs, trunks, heads, mirrored in the middle plane."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from jigdoll.types import Skeleton
from jigdoll.zoo.implicit import Shape
from jigdoll.zoo.skeleton import joint_points

Number = float | int
Triple = Sequence[float | int] | ndarray
_FLIP = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True)
class Girth:
    """How stout a body is beside its kind: factors on radii, one being the species' own."""

    torso: float = 1.0
    legs: float = 1.0
    feature: float = 1.0
    """Ears, horns, manes, humps."""


class Sculptor:
    """Collects shapes; every method adds some. Radii and offsets are in metres, head parts in head lengths."""

    def __init__(self, skeleton: Skeleton, girth: Girth) -> None:
        self.skeleton = skeleton
        self.girth = girth
        self.shapes: list[Shape] = []
        self._points = dict(zip(skeleton.names, joint_points(skeleton).numpy(), strict=True))
        head, tip = self.at("head"), self.at("head_tip")
        self.head_length = float(np.linalg.norm(tip - head))
        forward = (tip - head) / self.head_length
        if abs(forward[1]) > 0.8:
            forward = np.array([0.0, 0.0, 1.0])  # An upright head: its tip is the crown, it looks along +Z.
        self.head_frame = np.stack([[1.0, 0.0, 0.0], np.cross(forward, [1.0, 0.0, 0.0]), forward])
        """Rows: left, up, forward."""

    def at(self, name: str, offset: Triple = (0.0, 0.0, 0.0)) -> ndarray:
        """A point beside a joint [m], world."""
        return self._points[name] + np.asarray(offset, dtype=float)

    def has(self, name: str) -> bool:
        """Whether the skeleton has that joint."""
        return name in self._points

    def line(self, stem: str) -> tuple[str, ...]:
        """The joints `stem_1`, `stem_2`, ... in order."""
        names = [f"{stem}_{i}" for i in range(1, 20)]
        return tuple(name for name in names if self.has(name))

    def on_head(self, x: Number, y: Number, z: Number) -> ndarray:
        """A point left of, above and before the head joint, in head lengths."""
        return self.at("head") + self.head_length * (np.array([x, y, z]) @ self.head_frame)

    def cone(
        self,
        a: Triple,
        b: Triple,
        ra: float,
        rb: float,
        owner: str | tuple[str, ...],
        region: str,
        *,
        k: float | None = None,
        flat: tuple[float, float] = (1.0, 1.0),
        side: Triple = (1.0, 0.0, 0.0),
        both: bool = False,
        carve: bool = False,
        soft: float = 1.0,
        joined: bool = False,
    ) -> None:
        """A rounded cone from a to b; `flat` stretches it along `side` and across both."""
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        length = float(np.linalg.norm(b - a))
        axis = (b - a) / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
        frame = _frame(axis, np.asarray(side, dtype=float))
        blend = 0.5 * (ra + rb) * 0.6 if k is None else k
        scale = np.array([flat[0], flat[1], 1.0])
        self._add(
            Shape("cone", a, frame, scale, length, (ra, rb), blend, _names(owner), region, carve, soft, joined), both
        )

    def ball(
        self,
        center: Triple,
        radii: Triple,
        owner: str | tuple[str, ...],
        region: str,
        *,
        k: float | None = None,
        frame: ndarray | None = None,
        both: bool = False,
        carve: bool = False,
        soft: float = 1.0,
    ) -> None:
        """An ellipsoid."""
        scale = np.asarray(radii, dtype=float)
        blend = 0.35 * float(scale.min()) if k is None else k
        turned = np.eye(3) if frame is None else frame
        center = np.asarray(center, dtype=float)
        self._add(
            Shape("cone", center, turned, scale, 0.0, (1.0, 1.0), blend, _names(owner), region, carve, soft), both
        )

    def box(
        self,
        center: Triple,
        half: Triple,
        owner: str | tuple[str, ...],
        region: str,
        *,
        rounding: float,
        k: float = 0.0,
        frame: ndarray | None = None,
        both: bool = False,
        carve: bool = False,
        soft: float = 1.0,
    ) -> None:
        """A box with rounded edges."""
        turned = np.eye(3) if frame is None else frame
        center, half = np.asarray(center, dtype=float), np.asarray(half, dtype=float)
        shape = Shape("box", center, turned, half, 0.0, (rounding, rounding), k, _names(owner), region, carve, soft)
        self._add(shape, both)

    def sheet(
        self, corners: Sequence[Triple], thickness: float, owner: str | tuple[str, ...], region: str, *, k: float
    ) -> None:
        """A triangle of skin on both sides of the body."""
        a, b, c = (np.asarray(corner, dtype=float) for corner in corners)
        frame = np.stack([b, c, np.zeros(3)])
        radii = (0.5 * thickness, 0.5 * thickness)
        self._add(Shape("sheet", a, frame, np.ones(3), 0.0, radii, k, _names(owner), region, soft=12.0), True)

    def head_ball(
        self,
        center: Triple,
        radii: Triple,
        region: str,
        *,
        k: float | None = None,
        owner: str = "head",
        both: bool = False,
        carve: bool = False,
    ) -> None:
        """An ellipsoid on the head, all in head lengths along the head's own axes."""
        h = self.head_length
        frame = self.head_frame
        blend = None if k is None else k * h
        self.ball(
            self.on_head(*center), h * np.asarray(radii), owner, region, k=blend, frame=frame, both=both, carve=carve
        )

    def head_cone(
        self,
        a: Triple,
        b: Triple,
        ra: float,
        rb: float,
        region: str,
        *,
        k: float | None = None,
        flat: tuple[float, float] = (1.0, 1.0),
        side: Triple = (1.0, 0.0, 0.0),
        owner: str = "head",
        both: bool = False,
        carve: bool = False,
    ) -> None:
        """A rounded cone on the head, all in head lengths along the head's own axes."""
        h = self.head_length
        across = np.asarray(side, dtype=float) @ self.head_frame
        ends = self.on_head(*a), self.on_head(*b)
        blend = None if k is None else k * h
        self.cone(*ends, ra * h, rb * h, owner, region, k=blend, flat=flat, side=across, both=both, carve=carve)

    def eyes(self, x: float, y: float, z: float, radius: float, *, look: Triple = (0.75, 0.1, 0.65)) -> None:
        """A pair of eyes in head lengths; they are painted by where they look."""
        gaze = np.asarray(look, dtype=float) @ self.head_frame
        frame = _frame(gaze / np.linalg.norm(gaze), np.array([0.0, 1.0, 0.0]))
        size = radius * self.head_length
        self.ball(self.on_head(x, y, z), (size,) * 3, "head", "eye", k=0.12 * size, frame=frame, both=True)

    def chain(
        self,
        names: Sequence[str],
        radii: Sequence[float],
        owner: tuple[str, ...],
        region: str,
        *,
        k: float | None = None,
        flat: tuple[float, float] = (1.0, 1.0),
        girth: float | None = None,
    ) -> None:
        """Cones from joint to joint with a radius at each; their joints share them smoothly."""
        factor = self.girth.torso if girth is None else girth
        self.tube(
            [(self.at(name), factor * radius) for name, radius in zip(names, radii, strict=True)],
            owner,
            region,
            k=k,
            flat=flat,
        )

    def tube(
        self,
        stations: Sequence[tuple[Triple, float]],
        owner: str | tuple[str, ...],
        region: str,
        *,
        k: float | None = None,
        flat: tuple[float, float] = (1.0, 1.0),
        side: Triple = (1.0, 0.0, 0.0),
        both: bool = False,
        carve: bool = False,
    ) -> None:
        """A smooth tube through points with a radius at each; it blends with the rest as one shape."""
        points = [np.asarray(point, dtype=float) for point, _ in stations]
        radii = [radius for _, radius in stations]
        names = _names(owner)
        for flip in (False, True) if both else (False,):
            turn = _FLIP if flip else np.ones(3)
            mine = tuple(name.replace("left_", "right_") for name in names) if flip else names
            for i in range(len(points) - 1):
                self.cone(
                    points[i] * turn,
                    points[i + 1] * turn,
                    radii[i],
                    radii[i + 1],
                    mine,
                    region,
                    k=k,
                    flat=flat,
                    side=np.asarray(side) * turn,
                    carve=carve,
                    joined=i > 0,
                )

    def leg(
        self, stem: str, radii: Sequence[float], *, region: str = "coat", foot: str = "foot", k: float = 0.5
    ) -> None:
        """Both legs of a rank: cones hip to knee to ankle to toe, with radii at those joints."""
        parts = ("hip", "knee", "ankle", "toe")
        for side in ("left", "right"):
            for i in range(3):
                a, b = f"{side}_{stem}{parts[i]}", f"{side}_{stem}{parts[i + 1]}"
                ra, rb = self.girth.legs * radii[i], self.girth.legs * radii[i + 1]
                shade = foot if i == 2 and foot != "foot" else region
                self.cone(self.at(a), self.at(b), ra, rb, a, shade, k=k * min(ra, rb), joined=i > 0)

    def _add(self, shape: Shape, both: bool) -> None:
        self.shapes.append(shape)
        if both:
            owner = tuple(name.replace("left_", "right_") for name in shape.owner)
            flipped = shape.frame * _FLIP
            mirrored = Shape(
                shape.kind,
                shape.origin * _FLIP,
                flipped,
                shape.scale,
                shape.length,
                shape.radii,
                shape.blend,
                owner,
                shape.region,
                shape.carve,
                shape.soft,
                shape.joined,
            )
            self.shapes.append(mirrored)


def moved(point: ndarray, x: Number, y: Number, z: Number) -> ndarray:
    """A point so far to the left, up and forward of another [m]."""
    return point + np.array([x, y, z])


def _names(owner: str | tuple[str, ...]) -> tuple[str, ...]:
    return (owner,) if isinstance(owner, str) else owner


def _frame(axis: ndarray, side: ndarray) -> ndarray:
    """Rows: `side` made perpendicular to the axis, the third direction, the axis."""
    across = side - (side @ axis) * axis
    if np.linalg.norm(across) < 1e-6:
        across = np.cross(axis, [0.0, 0.0, 1.0] if abs(axis[2]) < 0.9 else [0.0, 1.0, 0.0])
    across = across / np.linalg.norm(across)
    return np.stack([across, np.cross(axis, across), axis])

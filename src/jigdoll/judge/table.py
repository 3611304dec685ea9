"""The verdict as rows for people: one line per metric, with the reference beside it."""

from collections.abc import Callable
from dataclasses import dataclass

from jigdoll.judge.naturalness import Naturalness
from jigdoll.judge.verdict import Verdict
from jigdoll.validators import VALIDATORS

WORSE = 1.5
"""A metric of which less is better is worse beyond so many times the reference's value."""


@dataclass(frozen=True)
class Row:
    """One metric in words."""

    group: str
    label: str
    value: str
    reference: str
    """Empty where there is no reference."""
    unit: str
    worse: bool
    """Whether the clip is clearly worse than its reference (or than nothing, for what ought to be zero)."""
    meaning: str
    """What the number says, in one sentence."""


@dataclass(frozen=True)
class _Metric:
    group: str
    label: str
    of: Callable[[Verdict], float]
    form: str
    unit: str
    meaning: str
    slack: float | None = None
    """For metrics of which less is better: so much more than the reference (or zero) is still as good."""


def _of(field: str, times: float = 1.0) -> Callable[[Verdict], float]:
    """A physical metric of a verdict."""
    return lambda verdict: times * float(getattr(verdict.physical, field, 0.0))


_BODY = "% of body"
_METRICS = (
    _Metric("Travel", "speed", lambda v: v.travel_speed, "{:.2f}", "body lengths/s", "Speed over the ground."),
    _Metric("Travel", "heading", lambda v: v.heading, "{:+.2f}", "", "+1 travels where it faces, -1 backwards."),
    _Metric("Gait", "stride", lambda v: v.stride_frequency, "{:.2f}", "Hz", "Strides a second; 0 without a rhythm."),
    _Metric("Gait", "duty factor", lambda v: v.duty, "{:.2f}", "", "Share of time in which a foot stands."),
    _Metric("Gait", "direction", lambda v: v.direction, "{:+.2f}", "", "+1: feet lift on the way ahead; -1: moonwalk."),
    _Metric("Gait", "leg swing", lambda v: v.amplitude, "±{:.0f}", "°", "Mean amplitude of the legs."),
    _Metric("Feet", "skate ratio", lambda v: 100 * v.skate_ratio, "{:.1f}", "%", "Standing feet that slide.", 5.0),
    _Metric("Feet", "skate", lambda v: 100 * v.skate_distance, "{:.1f}", _BODY, "Slide of a foot in a stride.", 1.0),
    _Metric("Feet", "penetration", lambda v: 100 * v.penetration, "{:.2f}", _BODY, "Deepest skin below ground.", 0.5),
    _Metric("Feet", "floating", lambda v: 100 * v.floating, "{:.2f}", _BODY, "Height where it ought to stand.", 0.5),
    _Metric("Feet", "physical contact", lambda v: v.foot_contact, "{:.3f}", "", "Pushes without a planted foot.", 0.1),
    _Metric("Flow", "angle jerk", lambda v: v.angle_jerk, "{:.0f}", "rad/s³", "Shakiness of the joints.", 100.0),
    _Metric("Flow", "position jerk", lambda v: v.position_jerk, "{:.0f}", "body lengths/s³", "In space.", 10.0),
    _Metric("Flow", "motion", lambda v: v.motion_amount, "{:.2f}", "body lengths/s", "Of joints; 0: a statue."),
    _Metric("Flow", "loop error", lambda v: 100 * v.loop_error, "{:.2f}", _BODY, "Between last and first frame."),
    _Metric("Body", "self-contact", lambda v: 100 * v.self_intersection, "{:.2f}", _BODY, "Bones in each other.", 1.0),
    _Metric("Body", "out of range", lambda v: 100 * v.limit_violations, "{:.1f}", "%", "Joints past a limit.", 2.0),
    _Metric("Body", "largest excess", lambda v: v.limit_excess, "{:.0f}", "°", "Beyond a joint's limit.", 5.0),
)
_VALIDITY = tuple(
    _Metric(
        "Validity",
        row.name.replace("_", " "),
        lambda verdict, name=row.name: 100 * verdict.validity.get(name, 0.0),
        "{:.0f}",
        "% of frames",
        row.sentence,
        10.0,
    )
    for row in VALIDATORS
)
_LEVER = "weights x leg lengths"
_PHYSICS = (
    _Metric("Physics", "root force", _of("root_force"), "{:.3f}", "weights", "Force that no contact can give.", 0.02),
    _Metric("Physics", "root torque", _of("root_torque"), "{:.3f}", _LEVER, "Torque that no contact can give.", 0.05),
    _Metric("Physics", "ballistic", _of("ballistic"), "{:.3f}", "g", "In flight: how far from free fall.", 0.05),
    _Metric("Physics", "in flight", _of("flight", 100.0), "{:.0f}", "%", "Time without a contact."),
    _Metric("Physics", "in the cone", _of("in_cone", 100.0), "{:.0f}", "%", "Contacts that friction could hold."),
    _Metric("Physics", "torque peak", _of("torque_peak"), "{:.2f}", _LEVER, "Largest torque of a joint."),
    _Metric("Physics", "transport", _of("transport"), "{:.2f}", "", "Work of the joints per weight and way."),
    _Metric("Physics", "fell", _of("fell"), "{:.0f}", "", "1: the body tips over or comes down.", 0.5),
)


def rows_of(verdict: Verdict) -> tuple[Row, ...]:
    """All metrics of a verdict, and of the reference that it holds."""
    beside = verdict.reference
    metrics = (*_METRICS, *_VALIDITY) if verdict.physical is None else (*_METRICS, *_VALIDITY, *_PHYSICS)
    rows = [_row(metric, verdict, beside) for metric in metrics]
    places = [i for i, row in enumerate(rows) if row.group == "Gait"]
    return (*rows[: places[-1] + 1], *_pair_rows(verdict), *rows[places[-1] + 1 :])


def _row(metric: _Metric, verdict: Verdict, beside: Verdict | None) -> Row:
    value = metric.of(verdict)
    bound = WORSE * (0.0 if beside is None else metric.of(beside)) + (metric.slack or 0.0)
    # Without a reference only what ought to be zero can be called bad: jerk has no such bound.
    absolute = metric.group in ("Feet", "Body", "Physics")
    worse = metric.slack is not None and value > bound and (beside is not None or absolute)
    reference = "" if beside is None else metric.form.format(metric.of(beside))
    return Row(metric.group, metric.label, metric.form.format(value), reference, metric.unit, worse, metric.meaning)


def _pair_rows(verdict: Verdict) -> list[Row]:
    rows = []
    others = () if verdict.reference is None else verdict.reference.pairs
    for i, pair in enumerate(verdict.pairs):
        other = others[i] if i < len(others) else None
        form = "{:+.2f} · {:.2f} · ±{:.0f}°"
        value = form.format(pair.alternation, pair.phase, pair.amplitude)
        beside = "" if other is None else form.format(other.alternation, other.phase, other.amplitude)
        meaning = "Left against right: -1 alternate, +1 together; phase in turns."
        rows.append(Row("Gait", pair_label(verdict, i), value, beside, "corr · phase · swing", False, meaning))
    return rows


def pair_label(verdict: Verdict, place: int) -> str:
    """`legs`, or `front legs`, `hind legs`, `legs 2` where there are several pairs."""
    pair = verdict.pairs[place]
    ranks = [other.name for other in verdict.pairs if other.kind == pair.kind]
    if len(ranks) == 1:
        return f"{pair.kind}s"
    rank = ranks.index(pair.name)
    if len(ranks) == 2:
        return f"{('front', 'hind')[rank]} {pair.kind}s"
    return f"{pair.kind}s {rank + 1}"


def leg_label(verdict: Verdict, name: str) -> str:
    """`left`, or `left front`, `left hind`, `left 2`: a leg by its name `left_0`."""
    side, rank = name.rsplit("_", 1)
    count = len({leg.name.rsplit("_", 1)[1] for leg in verdict.legs})
    words = {1: ("",), 2: (" front", " hind")}.get(count, tuple(f" {i + 1}" for i in range(count)))
    return side + words[int(rank)]


def natural_lines(natural: Naturalness) -> list[str]:
    """How natural a clip looks, in words."""
    lines = [f"looks natural to {natural.grade:.0%}"]
    lines += [f"fault: {fault.message}" for fault in natural.faults]
    if natural.pose_score >= 0:
        lines.append(f"score of the pose space {natural.pose_score:.2f} (real clips: mostly below 0.4)")
    if natural.action_distance >= 0:
        lines.append(f"{natural.action_distance:.0f} degrees per bone from real clips of what was asked")
    if natural.pose_distance >= 0:
        nearest = "; ".join(natural.nearest)
        lines.append(f"{natural.pose_distance:.0f} degrees per bone from any real pose; nearest: {nearest}")
    heard = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in natural.heard)
    return [*lines, f"the referee hears {heard}"]

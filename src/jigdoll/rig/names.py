"""What a joint's name says: the one reader of joint names."""

import re
from dataclasses import dataclass
from typing import Literal

LimbKind = Literal["leg", "arm", "wing", "fin", "head", "tail", "spine"]
Side = Literal["left", "right", "middle"]

_LEFT, _RIGHT = {"left", "l", "lft", "lf"}, {"right", "r", "rgt", "rt"}
_WORDS: dict[LimbKind, set[str]] = {
    "wing": {"wing", "wings", "pinion"},
    "fin": {"fin", "fins", "flipper", "flippers", "pectoral", "fluke"},
    "leg": set(
        "leg legs upleg upperleg lowerleg midleg thigh calf shin knee ankle foot feet toe toes hip femur tibia hock "
        "hoof paw pastern fetlock cannon stifle metatarsal tarsal haunch trochanter coxa tarsus".split()
    ),
    "arm": set(
        "arm arms forearm upperarm lowerarm shoulder clavicle collar scapula humerus elbow wrist hand hands palm "
        "radius".split()
    ),
    "tail": {"tail", "tails"},
    "head": {"head", "neck", "skull", "cervical"},
    "spine": set("root pelvis hips hip spine chest torso abdomen body back ribcage thorax waist belly center".split()),
}
_IGNORED = set(
    "ik pole target ctrl control helper roll twist hair cloth skirt sec eye eyes eyelid brow ear ears antenna jaw "
    "mouth tongue feather breast weapon prop cape ribbon trunk mane whisker horn lip cheek nose beard scarf "
    "mandible mandibles antennae tusk tusks horns feeler eyebrow upperlip lowerlip masseter caninus".split()
)
_FINGERS = set("thumb index middle ring pinky little finger fingers digit claw".split())


@dataclass(frozen=True)
class JointName:
    """The words of a joint's name and what they mean."""

    tokens: frozenset[str]
    side: Side | None
    kind: LimbKind | None
    ignored: bool
    """A control, a helper, or a part that is no limb (ears, hair, eyes, props)."""
    finger: bool


def read_name(name: str) -> JointName:
    """What a joint's name says: its words, split at case, digits and separators, without the prefix of a tool."""
    bare = re.sub(r"^.*[:|]", "", name)
    bare = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", bare)
    words = [w for w in re.split(r"[^A-Za-z]+", bare.lower().replace("up leg", "upleg")) if w]
    tokens = frozenset(words)
    side: Side | None = "left" if tokens & _LEFT else "right" if tokens & _RIGHT else None
    if side is None:
        side = next(
            ("left" if w.startswith("left") else "right" for w in words if w.startswith(("left", "right"))), None
        )
    kinds: list[LimbKind] = [kind for kind, vocabulary in _WORDS.items() if tokens & vocabulary]
    if side is None and "spine" in kinds:
        kinds = ["spine"]
    elif side is not None:
        kinds = [kind for kind in kinds if kind in ("wing", "fin", "leg", "arm", "tail")]
    kind: LimbKind | None = kinds[0] if kinds else None
    if "shoulder" in tokens and "wing" not in tokens and kind == "leg" and not tokens & {"hip", "back"}:
        kind = "arm"
    finger = bool(tokens & _FINGERS) and not tokens & _WORDS["leg"]
    return JointName(tokens, side, kind, bool(tokens & _IGNORED), finger)

"""Common skeletons by the names of their joints: hints about where knees and elbows are; structure decides.

A profile counts only if all its joints are there, and a limb is split as it says only if its three joints lie on the
limb's chain in their order.
"""

import re
from dataclasses import dataclass, replace

from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.bones import parts_at
from jigdoll.types import Skeleton


@dataclass(frozen=True)
class Profile:
    """What a common skeleton calls the joints of its limbs; `{side}` is what it calls a side."""

    name: str
    sides: tuple[str, str]
    """Left and right."""
    arm: tuple[str, str, str]
    """Shoulder, elbow, wrist."""
    leg: tuple[str, str, str]
    """Hip, knee, ankle."""
    besides: str = ""
    """A joint that tells it from others of the same names."""

    def limbs(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The joints of each limb by kind and side."""
        found = {}
        for side, word in zip(("left", "right"), self.sides, strict=True):
            for kind, names in (("arm", self.arm), ("leg", self.leg)):
                found[kind, side] = tuple(_plain(name.format(side=word)) for name in names)
        return found


PROFILES = (
    Profile(
        "CMU",
        ("Left", "Right"),
        ("{side}Arm", "{side}ForeArm", "{side}Hand"),
        ("{side}UpLeg", "{side}Leg", "{side}Foot"),
        "LHipJoint",
    ),
    Profile(
        "Mixamo",
        ("Left", "Right"),
        ("{side}Arm", "{side}ForeArm", "{side}Hand"),
        ("{side}UpLeg", "{side}Leg", "{side}Foot"),
    ),
    Profile(
        "Unreal",
        ("l", "r"),
        ("upperarm_{side}", "lowerarm_{side}", "hand_{side}"),
        ("thigh_{side}", "calf_{side}", "foot_{side}"),
    ),
    Profile(
        "VRM",
        ("L", "R"),
        ("J_Bip_{side}_UpperArm", "J_Bip_{side}_LowerArm", "J_Bip_{side}_Hand"),
        ("J_Bip_{side}_UpperLeg", "J_Bip_{side}_LowerLeg", "J_Bip_{side}_Foot"),
    ),
    Profile(
        "Unity humanoid",
        ("Left", "Right"),
        ("{side}UpperArm", "{side}LowerArm", "{side}Hand"),
        ("{side}UpperLeg", "{side}LowerLeg", "{side}Foot"),
    ),
    Profile(
        "Rigify",
        ("L", "R"),
        ("upper_arm.{side}", "forearm.{side}", "hand.{side}"),
        ("thigh.{side}", "shin.{side}", "foot.{side}"),
    ),
    Profile(
        "Rocketbox",
        ("L", "R"),
        ("Bip01 {side} UpperArm", "Bip01 {side} Forearm", "Bip01 {side} Hand"),
        ("Bip01 {side} Thigh", "Bip01 {side} Calf", "Bip01 {side} Foot"),
    ),
)


def profile_of(skeleton: Skeleton) -> Profile | None:
    """The common skeleton that this one is, if it is one."""
    names = {_plain(name) for name in skeleton.names}
    for profile in PROFILES:
        wanted = {name for limb in profile.limbs().values() for name in limb}
        if wanted <= names and (not profile.besides or _plain(profile.besides) in names):
            return profile
    return None


def with_profile(anatomy: Anatomy) -> Anatomy:
    """The anatomy with arms and legs split as the profile of a common skeleton says, where their chains agree."""
    profile = profile_of(anatomy.skeleton)
    if profile is None:
        return anatomy
    where = {_plain(name): joint for joint, name in reversed(list(enumerate(anatomy.skeleton.names)))}
    hints = {key: [where[name] for name in names] for key, names in profile.limbs().items()}
    parts = list(anatomy.parts)
    for i, own in enumerate(parts):
        hint = hints.get((own.limb.kind, own.limb.side), [])
        chain = own.limb.joints
        if own.limb.rank or not hint or not set(hint) <= set(chain) or hint == [own.root, own.middle, own.end]:
            continue
        first, middle, last = (chain.index(joint) for joint in hint)
        if first < middle < last:
            parts[i] = parts_at(own.limb, chain, first, middle, last, anatomy.T_rest[:, :3, 3])
    legs = tuple(replace(leg, parts=parts[anatomy.parts.index(leg.parts)]) for leg in anatomy.legs)
    return replace(anatomy, parts=tuple(parts), legs=legs)


def _plain(name: str) -> str:
    """A name in small letters and digits, without the prefixes of tools."""
    bare = re.sub(r"^(.*[:|]|mixamorig\d*[:_]?|DEF-|ORG-)", "", name)
    return re.sub(r"[^a-z0-9]", "", bare.lower())

"""Motions through tokens and codes and back."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy import ndarray

from jigdoll.errors import FileFormatError, RigError
from jigdoll.math.rotations import rotvec_to_quaternion
from jigdoll.memory.codes import Codec, limb_motion_from, open_codec, pack, tokens_of, unpack
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget import LimbMotion, decode, encode
from jigdoll.rig.retarget.limb_motion import cut
from jigdoll.rig.retarget.tokens import RATE, to_6d, to_turns
from jigdoll.rig.retarget.turns import from_rotvec
from jigdoll.types import Motion, Pose
from jigdoll.zoo import make

BODIES = ("human", "ostrich", "fox", "dragon", "ant", "spider")
"""Two legs with arms and with wings, four without and with wings, six, eight."""


@cache
def codec() -> Codec:
    return open_codec()


@cache
def body(species: str) -> Anatomy:
    return anatomy_of(reparent(make(species)).asset)


@cache
def moving(species: str, frames: int = 61, fps: float = 30.0, swing: float = 0.5) -> LimbMotion:
    """All joints sway by themselves while the body walks along a curve."""
    anatomy = body(species)
    seconds = torch.arange(frames) / fps
    random = torch.Generator().manual_seed(len(species))
    joints = len(anatomy.skeleton)
    axis = torch.nn.functional.normalize(torch.randn(joints, 3, generator=random), dim=-1)
    phase, beat = 6.28 * torch.rand(joints, generator=random), 0.5 + torch.rand(joints, generator=random)
    angle = swing * torch.sin(6.28 * beat * seconds[:, None] + phase)
    angle[:, 0] *= 0.2
    turning = 0.6 * seconds
    rotations = rotvec_to_quaternion(angle[..., None] * axis)
    rotations[:, 0] = rotvec_to_quaternion(turning[:, None] * torch.tensor([0.0, 1.0, 0.0]))
    way = torch.stack([torch.sin(turning), torch.zeros(frames), torch.cos(turning)], -1) * anatomy.leg_length
    root = torch.cumsum(way / fps, 0)
    root[:, 1] = 0.05 * anatomy.hip_height * torch.sin(9 * seconds)
    return encode(anatomy, Motion(Pose(root, rotations), fps, "sway"), travel=False)


def test_a_slow_rate_that_would_need_endless_windows_is_refused_at_once() -> None:
    arrays = pack([codec().encode(moving("human"))])
    with pytest.raises(FileFormatError, match="damaged"):
        unpack(arrays | {"fps": np.array([1e-6])})


def degrees(a: ndarray, b: ndarray) -> ndarray:
    return np.degrees(np.arccos(np.clip((np.einsum("...ab,...ab->...", a, b) - 1) / 2, -1, 1)))


def worst_parts(a: LimbMotion, b: LimbMotion) -> dict[str, float]:
    """The mean angle between the turns of each part of two motions."""
    parts = {"root": degrees(a.root, b.root).mean(), "trunk": degrees(a.trunk, b.trunk).mean()}
    for name in ("neck", "tail"):
        first, second = getattr(a, name), getattr(b, name)
        assert (first is None) == (second is None)
        if first is not None:
            parts[name] = degrees(first, second).mean()
    for first, second in zip(a.limbs, b.limbs, strict=True):
        parts[f"{first.limb.side} {first.limb.kind} {first.limb.rank}"] = degrees(first.turns, second.turns).mean()
    return {name: float(value) for name, value in parts.items()}


@pytest.mark.parametrize("species", BODIES)
def test_tokens_at_the_motions_own_frames_tell_it_exactly(species: str) -> None:
    motion = replace(moving(species, 56), fps=RATE)  # 56 frames are whole windows
    back = limb_motion_from(tokens_of(motion))
    assert max(worst_parts(motion, back).values()) < 1e-4
    np.testing.assert_allclose(back.place, motion.place, atol=1e-9)
    np.testing.assert_allclose(back.heading, motion.heading, atol=1e-9)
    for ours, theirs in zip(motion.limbs, back.limbs, strict=True):
        np.testing.assert_allclose(theirs.end, ours.end, atol=1e-9)
        np.testing.assert_array_equal(theirs.has, ours.has)


@pytest.mark.parametrize("species", BODIES)
def test_tokens_of_a_smooth_motion_lose_next_to_nothing_by_their_rate(species: str) -> None:
    motion = moving(species)
    back = limb_motion_from(tokens_of(motion))
    assert max(worst_parts(motion, back).values()) < 0.2
    assert np.abs(back.place - motion.place).max() < 0.01


@pytest.mark.parametrize("species", BODIES)
def test_bodies_with_any_number_of_legs_and_wings_come_back_from_the_same_codes(species: str) -> None:
    motion = moving(species)
    back = codec().decode(codec().encode(motion))
    assert [t.limb.kind for t in back.limbs] == [t.limb.kind for t in motion.limbs]
    assert max(worst_parts(motion, back).values()) < 5.0
    assert np.abs(back.place - motion.place).max() < 0.05
    for ours, theirs in zip(motion.limbs, back.limbs, strict=True):
        assert np.abs(theirs.end - ours.end).mean() < 0.05


@pytest.mark.parametrize("species", ("human", "fox"))
def test_bones_on_the_same_rig_are_within_three_degrees(species: str) -> None:
    motion = moving(species)
    there = decode(motion, body(species), lock=False).pose.rotations
    back = decode(codec().decode(codec().encode(motion)), body(species), lock=False).pose.rotations
    cosine = (there * back).sum(-1).abs().clamp(max=1)
    assert float(torch.rad2deg(2 * cosine.arccos()).mean()) < 3.0


def test_contacts_are_kept_exactly() -> None:
    generator = np.random.default_rng(0)
    motion = moving("fox")
    motion = replace(motion, limbs=tuple(replace(t, contact=generator.random(len(motion)) < 0.5) for t in motion.limbs))
    [codes] = unpack(pack([codec().encode(motion)]))
    for ours, theirs in zip(motion.limbs, codec().decode(codes).limbs, strict=True):
        np.testing.assert_array_equal(theirs.contact, ours.contact)


def test_the_first_and_last_frames_are_not_worse_than_the_middle() -> None:
    ends, middle = [], []
    for species in BODIES:
        motion = moving(species)
        back = codec().decode(codec().encode(motion))
        wrong = np.mean([degrees(a.turns, b.turns).mean(1) for a, b in zip(motion.limbs, back.limbs, strict=True)], 0)
        ends.append(wrong[[0, 1, -2, -1]].mean())
        middle.append(wrong[2:-2].mean())
    assert np.mean(ends) < 1.25 * np.mean(middle)


def test_a_smaller_tolerance_loses_less_and_costs_more() -> None:
    motion = moving("human")
    fine, coarse = (codec().encode(motion, tolerance=np.radians(t)) for t in (0.3, 3.0))
    lost = [np.mean(list(worst_parts(motion, codec().decode(c)).values())) for c in (fine, coarse)]
    size = [sum(a.nbytes for a in pack([c]).values()) for c in (fine, coarse)]
    assert lost[0] < 0.5 * lost[1]
    assert size[0] > size[1]


def test_the_root_meets_its_path_at_every_window_and_does_not_drift() -> None:
    motion = moving("human", 601)
    back = codec().decode(codec().encode(motion))
    np.testing.assert_allclose(back.place[-1, [0, 2]], motion.place[-1, [0, 2]], atol=1e-4)
    assert abs(back.heading[-1] - motion.heading[-1]) < 1e-4
    assert np.abs(back.place - motion.place).max() < 0.05


def test_a_cut_out_of_a_walk_begins_where_it_was_cut() -> None:
    part = cut(moving("human"), 20, 50)
    back = codec().decode(codec().encode(part))
    np.testing.assert_allclose(back.place[0, [0, 2]], part.place[0, [0, 2]], atol=1e-6)
    assert back.heading[0] == pytest.approx(part.heading[0], abs=1e-6)


def test_a_motion_may_be_played_at_another_rate() -> None:
    motion = moving("human", 61, 30.0)
    back = codec().decode(codec().encode(motion), fps=60.0)
    assert (len(back), back.fps) == (121, 60.0)
    plain = codec().decode(codec().encode(motion))
    np.testing.assert_allclose(back.place[::2], plain.place, atol=1e-9)
    np.testing.assert_array_equal(back.limbs[0].contact[::2], plain.limbs[0].contact)


@pytest.mark.parametrize("frames", (1, 2, 3))
def test_motions_of_very_few_frames_come_back(frames: int) -> None:
    motion = cut(moving("spider"), 7, 7 + frames)
    back = codec().decode(codec().encode(motion))
    assert len(back) == frames
    assert max(worst_parts(motion, back).values()) < (0.1 if frames == 1 else 4.0)
    np.testing.assert_allclose(back.place, motion.place, atol=1e-3 if frames == 1 else 0.05)


def test_an_empty_motion_is_refused() -> None:
    with pytest.raises(RigError, match="empty"):
        codec().encode(cut(moving("human"), 0, 0))


def test_a_somersault_is_followed_past_half_a_turn() -> None:
    motion = moving("human")
    spin = np.zeros((len(motion), 3))
    spin[:, 0] = np.linspace(0, 2 * np.pi, len(motion))
    motion = replace(motion, root=from_rotvec(spin), trunk=from_rotvec(spin)[:, None] @ motion.trunk)
    back = codec().decode(codec().encode(motion))
    assert degrees(back.root, motion.root).max() < 8.0


def test_many_motions_survive_being_packed() -> None:
    many = [codec().encode(replace(moving(species), name=f"{species} söm")) for species in BODIES]
    for ours, theirs in zip(many, unpack(pack(many)), strict=True):
        assert (ours.name, ours.kind, ours.fps, ours.frames) == (theirs.name, theirs.kind, theirs.fps, theirs.frames)
        first, second = codec().decode(ours), codec().decode(theirs)
        np.testing.assert_array_equal(first.place, second.place)
        for a, b in zip(first.limbs, second.limbs, strict=True):
            assert a.limb == b.limb
            np.testing.assert_array_equal(a.turns, b.turns)
            np.testing.assert_array_equal(a.rest, b.rest)


def test_no_motions_pack_into_nothing() -> None:
    assert unpack(pack([])) == []


def test_a_person_whose_joints_all_sway_by_themselves_costs_little_more_than_a_kilobyte_per_second() -> None:
    motion = moving("human", 121, swing=0.3)
    assert sum(array.nbytes for array in pack([codec().encode(motion)]).values()) < 4 * 1200


@pytest.mark.parametrize("name", ["window", "window_length", "path", "contact", "rest", "mean", "name", "token_kind"])
def test_codes_that_are_cut_short_or_too_long_are_refused(name: str) -> None:
    arrays = pack([codec().encode(moving("human"))])
    with pytest.raises(FileFormatError, match="damaged"):
        unpack(arrays | {name: arrays[name][:-1]})
    with pytest.raises(FileFormatError, match="damaged"):
        unpack(arrays | {name: np.concatenate([arrays[name], arrays[name][:1]])})
    del arrays[name]
    with pytest.raises(FileFormatError, match="damaged"):
        unpack(arrays)


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", 99), ("token_kind", 99), ("side", 9), ("fps", np.nan), ("fps", 0.0), ("frames", -1), ("path", np.inf)],
)
def test_codes_with_impossible_numbers_are_refused(name: str, value: float) -> None:
    arrays = pack([codec().encode(moving("human"))])
    broken = arrays[name].copy()
    broken[0] = value
    with pytest.raises(FileFormatError, match="damaged"):
        unpack(arrays | {name: broken})


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    import jigdoll.memory.codes as module

    whole = (Path(module.__file__).parent / "weights" / "codec.safetensors").read_bytes()
    assert len(whole) < 2_000_000
    for name, data in (("short", whole[: len(whole) // 2]), ("junk", b"junk" * 100), ("empty", b"")):
        file = tmp_path / f"{name}.safetensors"
        file.write_bytes(data)
        with pytest.raises(FileFormatError, match="motion codec"):
            open_codec(file)
    with pytest.raises(FileFormatError, match="no weights"):
        open_codec(tmp_path / "missing.safetensors")


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.numpy import save_file

    import jigdoll.memory.codes as module

    with safe_open(Path(module.__file__).parent / "weights" / "codec.safetensors", "np") as opened:
        arrays, facts = {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()
    arrays["leg.vectors"][0, 0] = np.nan
    save_file(arrays, tmp_path / "nan.safetensors", metadata=facts)
    with pytest.raises(FileFormatError, match="leg"):
        open_codec(tmp_path / "nan.safetensors")


def test_two_columns_make_the_rotation_that_they_came_from() -> None:
    turns = from_rotvec(np.random.default_rng(1).normal(size=(50, 3)) * 2)
    np.testing.assert_allclose(to_turns(to_6d(turns)), turns, atol=1e-12)

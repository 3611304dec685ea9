"""A clip whose feet stand still where they stand: what friction will do to them anyway, done before it is simulated.

Feet of artists' clips creep, sink in and hover by a few hundredths of the body. A simulated foot cannot, so the body
above it would be dragged along. Here each stance is brought to one place on the ground, legs reach for it, and the
shift fades over to the next stance while the foot swings. Hands, knees and tails that lie on the ground count too.
"""

from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.contacts import Feet, find_stances, foot_velocities
from jigdoll.math.curves import smoothstep
from jigdoll.math.transforms import apply, transform
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.bodies_to_motion import leg_bones, reach
from jigdoll.physics.possible import possible_path
from jigdoll.physics.reference import Reference, feet_of, twists, with_angles

TOUCHES = 0.015
"""Skin that is nearer to the ground than this can be carried by it [body lengths]."""
GROUND = 0.04
"""A stance is one where the foot is not higher above the ground than this [body lengths]."""
MOST = 0.08
"""A foot is moved by at most this [body lengths]: beyond it the clip wants it to slide."""
CLEAR = 0.015
"""How high a foot swings over the ground at least [body lengths]: toes that drag trip the body."""
SMOOTHINGS = 2
"""How often shifts are averaged over three frames: feet come to a stop, they do not freeze."""
SLIDES = 0.1
"""Feet that go so fast over the ground on average [body lengths / s] slide."""
GHOST = 0.015
"""Ends of the body that the clip has so deep below the ground [body lengths] do not meet it."""
LEANS = 0.02
"""Another end of the body that comes as low as this [body lengths] ..."""
LEANS_LONG = 0.2
"""... for this share of the frames stands on the ground as well: hands, knees, a tail."""


def supports(bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"]) -> tuple[tuple[int, ...], ...]:
    """The feet, and the other ends of the body that the clip puts on the ground."""
    low = apply(T, bodies.contacts.expand(len(T), -1, -1, -1))[..., 1].amin(-1)
    down = (low < LEANS * bodies.length).double().mean(0) > LEANS_LONG
    feet = {body for foot in bodies.feet for body in foot}
    ends = set(range(1, len(bodies))) - set(bodies.parents) - feet
    return (*bodies.feet, *((body,) for body in sorted(ends) if bool(down[body])))


def without_ghosts(bodies: Bodies, clip: Reference) -> Bodies:
    """The bodies, with the skin out of the ground's reach of those that the clip lets pass through it for long.

    Weapons and tails do, and hollow hands; legs and what carries them never count.
    """
    low = apply(clip.T_world_body, bodies.contacts.expand(len(clip), -1, -1, -1))[..., 1].amin(-1)
    deep = torch.quantile(low, 0.2, dim=0) < -GHOST * bodies.length
    feet = {body for foot in bodies.feet for body in foot}
    ghosts = [b for b in range(1, len(bodies)) if bool(deep[b]) and b not in bodies.parents and b not in feet]
    if not ghosts:
        return bodies
    contacts = bodies.contacts.clone()
    contacts[ghosts] = 0.0  # at their joint, which their parent carries
    return replace(bodies, contacts=contacts)


def with_slips(bodies: Bodies, clip: Reference) -> Bodies:
    """The bodies, with those feet hardly gripping that slide in a clip on legs of one bone, which cannot lift them.

    With a grip they would stand, and a walk of swinging boxes would be none.
    """
    lone = [foot for foot in bodies.feet if foot[-1] not in leg_bones(bodies, bodies.feet)]
    if not lone or len(clip) < 3:
        return replace(bodies, slips=())
    speeds = foot_velocities(feet_of(bodies, clip.T_world_body, clip.fps, tuple(lone))).norm(dim=-1).mean(0)
    sliding = [foot for foot, speed in zip(lone, speeds, strict=True) if float(speed) > SLIDES * bodies.length]
    return replace(bodies, slips=tuple(body for foot in sliding for body in foot))


def with_stances(bodies: Bodies, reference: Reference) -> Reference:
    """The clip with its stances put in place."""
    names = supports(bodies, reference.T_world_body)
    if not names or len(reference) < 3:
        return reference
    feet, stands = _standing(bodies, reference, names)
    return _moved(bodies, reference, names, torch.zeros_like(feet.joints[:, 0]), stance_shifts(feet, stands))


def with_possible_path(
    bodies: Bodies, reference: Reference, *, friction: float, most: float, seated: bool = False
) -> Reference:
    """The clip with its centre of mass where the ground can carry it, or nearly.

    The body is shifted as a whole, by `most` body lengths on average; feet that stand stay where they stand. Who is
    `seated` never hangs in the air.
    """
    T, fps = reference.T_world_body, reference.fps
    low = apply(T, bodies.contacts.expand(len(T), -1, -1, -1))[..., 1].flatten(1).amin(1)
    touches = (low < TOUCHES * bodies.length) | seated
    centre = centre_of_mass(bodies, T)
    path = possible_path(centre, touches, fps, length=bodies.length, friction=friction, most=most)
    shift = path.centre - centre
    names = supports(bodies, T)
    if not names or len(reference) < 3:
        moved = T.clone()
        moved[..., :3, 3] += shift[:, None]
        return replace(reference, T_world_body=moved, twists=twists(bodies, moved, fps))
    _, stands = _standing(bodies, reference, names)
    swings = torch.stack([_swing(foot, _runs(foot)) if bool(foot.any()) else foot + 1.0 for foot in stands.T], 1)
    return _moved(bodies, reference, names, shift, swings[..., None] * shift[:, None])


def centre_of_mass(bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"]) -> Float[Tensor, "frames 3"]:
    """Where the centre of mass of all bodies is [m]."""
    com = (T[..., :3, :3] @ bodies.com[:, :, None])[..., 0] + T[..., :3, 3]
    return (bodies.mass[:, None] * com).sum(1) / bodies.total_mass


def _standing(
    bodies: Bodies, reference: Reference, names: tuple[tuple[int, ...], ...]
) -> tuple[Feet, Bool[Tensor, "frames feet"]]:
    """The supports of a clip, and when each stands on the ground."""
    T, fps = reference.T_world_body, reference.fps
    feet = feet_of(bodies, T, fps, names)
    travel = (T[-1, 0, :3, 3] - T[0, 0, :3, 3])[[0, 2]] * fps / (len(T) - 1)
    stands = find_stances(feet, travel=travel) & (feet.soles[..., 1].amin(-1) < GROUND * bodies.length)
    return feet, stands


def _moved(
    bodies: Bodies,
    reference: Reference,
    names: tuple[tuple[int, ...], ...],
    shift: Float[Tensor, "frames 3"],
    feet: Float[Tensor, "frames feet 3"],
) -> Reference:
    """The clip shifted as a whole, each foot by its own way; legs reach for their feet."""
    T = reference.T_world_body
    place = T[..., :3, 3] + shift[:, None]
    for index, foot in enumerate(names):
        place[:, list(foot)] = T[:, list(foot), :3, 3] + feet[:, index, None]
    turn, root = reach(bodies, place, T[..., :3, :3], names, limbs_follow=True)
    moved = transform(turn, root)
    own = replace(reference, T_world_body=moved, twists=twists(bodies, moved, reference.fps))
    return with_angles(bodies, own)


def stance_shifts(feet: Feet, stands: Bool[Tensor, "frames feet"]) -> Float[Tensor, "frames feet 3"]:
    """How far each foot has to be moved in each frame so that it stands still, on the ground, while it stands [m]."""
    steps = torch.zeros_like(feet.joints)
    steps[1:, :, [0, 2]] = foot_velocities(feet) / feet.fps
    height, most = feet.soles[..., 1].amin(-1), MOST * feet.length
    shift = torch.zeros_like(steps)
    for foot in range(steps.shape[1]):
        runs = _runs(stands[:, foot])
        for first, last in runs:
            way = torch.zeros_like(steps[first : last + 1, foot])
            way[1:] = steps[first + 1 : last + 1, foot].cumsum(0)
            wished = way.mean(0) - way
            wished[:, 1] = -height[first : last + 1, foot]
            shift[first : last + 1, foot] = wished * (most / wished.norm(dim=-1, keepdim=True).clamp_min(most))
        _fade(shift[:, foot], runs)
        # Toes that dip through the floor are lifted, and a foot that swings keeps clear of it.
        needed = CLEAR * feet.length * _swing(stands[:, foot], runs) - height[:, foot]
        shift[:, foot, 1] = torch.maximum(shift[:, foot, 1], needed.clamp(max=most))
    for _ in range(SMOOTHINGS):
        padded = torch.cat([shift[:1], shift, shift[-1:]])
        shift = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return shift


def _fade(shift: Float[Tensor, "frames 3"], runs: list[tuple[int, int]]) -> None:
    """Fill the swings in place: from the shift at the end of one stance to that at the start of the next."""
    if not runs:
        return
    shift[: runs[0][0]] = shift[runs[0][0]]
    shift[runs[-1][1] + 1 :] = shift[runs[-1][1]]
    for (_, last), (first, _) in pairwise(runs):
        t = smoothstep(torch.linspace(0, 1, first - last + 1, dtype=shift.dtype))[:, None]
        shift[last : first + 1] = (1 - t) * shift[last].clone() + t * shift[first].clone()


def _swing(stands: Bool[Tensor, " frames"], runs: list[tuple[int, int]]) -> Float[Tensor, " frames"]:
    """Zero while a foot stands, one in the middle of its swings; what lies beyond the clip counts as a swing."""
    swing = torch.zeros(len(stands), dtype=torch.float64)
    for first, last in _runs(~stands) if runs else ():
        t = (torch.arange(last - first + 1, dtype=torch.float64) + 1) / (last - first + 2)
        up = t if first else torch.ones_like(t)
        down = 1 - t if last < len(stands) - 1 else torch.ones_like(t)
        swing[first : last + 1] = (3 * torch.minimum(up, down)).clamp(max=1.0)
    return swing


def _runs(flags: Bool[Tensor, " frames"]) -> list[tuple[int, int]]:
    """First and last frame of each stretch that is on."""
    edges = torch.diff(torch.nn.functional.pad(flags.int(), (1, 1)))
    return list(zip((edges == 1).nonzero()[:, 0].tolist(), (edges == -1).nonzero()[:, 0].sub(1).tolist(), strict=True))

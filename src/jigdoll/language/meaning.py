"""What the lexicon does not know, understood by the sentence encoder: strange verbs, strange adverbs."""

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.language.actions import ACTIONS
from jigdoll.language.adverbs import STYLES
from jigdoll.language.fillers import DETERMINERS
from jigdoll.language.read import read
from jigdoll.protocols import TextEncoder
from jigdoll.types import Request, RequestedAction

SURE = 0.6
"""A clause nearer than this to no action is not understood."""
STYLE_SURE = 0.55
"""The same of a strange adverb and a style."""
_CLAUSES = re.compile(
    r"\s*(?:[,;.:!?]|\band then\b|\bthen\b|\band\b|\bbefore\b|\bafter that\b|\bafterwards\b|\bwhile\b|\bbut\b)\s*"
)

MEANINGS = """
walk: walking on foot, walking at an ordinary pace
run: running fast, moving quickly on foot, hurrying off
jump: jumping up in the air, leaping
hop: hopping on one leg, small bouncing hops
idle: standing still, waiting, doing nothing
look_around: looking around, searching with the eyes
turn: turning to the side
turn_around: turning around
spin: spinning around
creep: creeping stealthily, prowling
sneak: sneaking quietly, moving without being noticed
crawl: crawling on hands and knees
march: marching in step like a soldier
limp: limping because of a hurt leg
stagger: staggering, walking unsteadily as if drunk
stomp: stomping with heavy feet
climb: climbing up
climb_stairs: climbing stairs
skate: skating, sliding over the ground
fly: flying through the air, flapping its wings
hover: hovering in the air
land: landing after a flight
dive: diving into the water
swim: swimming in water
slither: wriggling along like a snake
dance: dancing to music
roll: rolling over the ground
flip: doing a flip, a somersault
cartwheel: doing a cartwheel
handstand: standing on the hands
jumping_jacks: doing jumping jacks
push_up: doing push ups
squat: doing squats
exercise: doing exercise, working out
punch: punching, boxing with the fists
kick: kicking with the foot
attack: attacking, striking at an enemy, striking with claws
bite: biting
swordplay: fighting with a sword
shoot: shooting with a gun
cast: casting a spell
block: blocking an attack
dodge: dodging, ducking away
hit_reaction: being hit and flinching
fall: falling down
die: dying, dropping dead
throw: throwing an object
catch: catching a ball
pick_up: picking something up from the ground
put_down: putting something down
carry: carrying something heavy
push: pushing something
pull: pulling something
open: opening a door
knock: knocking at a door
swing: swinging a bat, club or racket, playing golf
work: working with the hands, sweeping, cleaning, hammering
play: playing an instrument
type: typing, using a phone
sit: sitting down on a seat
stand_up: standing up, getting up
lie: lying down flat
sleep: sleeping
kneel: kneeling down
crouch: crouching, squatting low
hang: hanging from a bar
eat: eating food
drink: drinking
yawn: yawning
stretch: stretching the limbs
scratch: scratching oneself
tremble: trembling, shivering
groom: washing or grooming oneself
wave: waving a hand
beckon: beckoning to come closer
salute: saluting
clap: clapping hands
bow: bowing politely
nod: nodding yes
shake_head: shaking the head, saying no
point: pointing at something
cheer: cheering with raised arms, celebrating
shrug: shrugging the shoulders
cross_arms: crossing the arms
talk: talking, telling with gestures
sing: singing
laugh: laughing
cry: crying, weeping
think: thinking, pondering
pray: praying
hug: hugging someone
shake_hands: shaking hands
flex: flexing the muscles
taunt: taunting
roar: roaring
howl: howling at the moon
bark: barking
sniff: sniffing the ground
dig: digging in the ground
rear: rearing up on the hind legs
wag: wagging its tail
walk / tired: walking wearily, dragging oneself along exhausted
walk / proud: strutting proudly, walking with a swagger
walk < sideways: stepping sideways
walk < backward: walking backwards
stagger / like a zombie: walking like a zombie
"""
"""Actions in plain words, some with a style (/) or a way (<)."""


@dataclass(frozen=True)
class Meaning:
    """What one plain description stands for."""

    action: str
    text: str
    style: str | None = None
    way: Literal["backward", "sideways", "circle"] | None = None


@cache
def meanings() -> tuple[Meaning, ...]:
    """The descriptions of `MEANINGS`."""
    rows = []
    for line in MEANINGS.strip().splitlines():
        head, texts = line.split(": ", 1)
        action, _, way = head.partition(" < ")
        action, _, style = action.partition(" / ")
        assert action in ACTIONS, action
        rows += [Meaning(action, text.strip(), style or None, way or None) for text in texts.split(", ")]  # pyright: ignore[reportArgumentType]
    return tuple(rows)


def understood(request: Request, encoder: TextEncoder) -> tuple[Request, tuple[str, ...]]:
    """The request with what the lexicon did not know, and what that was taken for, in words.

    A clause in which no action is known, but some word is unknown, means the action whose description is nearest to
    it. What is near to none stays unknown.
    """
    actions, styles, notes, unknown = [], list(request.style), [], list(request.unknown)
    changed = False
    for clause in _clauses(request.prompt):
        told = read(clause)
        if told.actions or not told.unknown:
            actions += told.actions
            continue
        meaning, likeness = nearest_meaning(_about(clause, told, request), encoder)
        if likeness < SURE:
            continue
        changed = True
        word = " ".join(told.unknown)
        actions.append(RequestedAction(meaning.action, clause, tempo=told.tempo, side=told.side, way=meaning.way))
        styles += [meaning.style] if meaning.style else []
        unknown = [w for w in unknown if w not in told.unknown]
        notes.append(f"{word!r} is taken for: {meaning.text}")
    for word in [w for w in unknown if w.endswith("ly")]:
        style = nearest_style(word, encoder)
        if style is not None:
            styles.append(style)
            unknown.remove(word)
            notes.append(f"{word!r} is taken for: {style}")
    if changed:
        lead = request.action or actions[0]
        request = replace(request, actions=tuple(actions), action=lead)
    return replace(request, style=tuple(dict.fromkeys(styles)), unknown=tuple(unknown)), tuple(notes)


def nearest_meaning(text: str, encoder: TextEncoder) -> tuple[Meaning, float]:
    """The description nearest to a text, and how near it is."""
    rows = meanings()
    likeness = _vectors(encoder, tuple(row.text for row in rows)) @ np.asarray(encoder([text]))[0]
    best = int(likeness.argmax())
    return rows[best], float(likeness[best])


def nearest_style(word: str, encoder: TextEncoder) -> str | None:
    """The style that a strange adverb means, or none."""
    forms = tuple(forms[0] for forms in STYLES.values())
    likeness = _vectors(encoder, tuple(f"walk {form}" for form in forms)) @ np.asarray(encoder([f"walk {word}"]))[0]
    # All of them walk: what is left is how.
    likeness = likeness - np.sort(likeness)[len(likeness) // 2]
    best = int(likeness.argmax())
    return list(STYLES)[best] if likeness[best] > STYLE_SURE else None


def action_likeness(action: RequestedAction, encoder: TextEncoder) -> dict[str, float]:
    """How near each action is to one that is asked for."""
    rows = meanings()
    text = next((row.text for row in rows if row.action == action.name), action.word)
    likeness = _vectors(encoder, tuple(row.text for row in rows)) @ np.asarray(encoder([text]))[0]
    near: dict[str, float] = {}
    for row, value in zip(rows, likeness, strict=True):
        near[row.action] = max(near.get(row.action, -1.0), float(value))
    return near


def _vectors(encoder: TextEncoder, texts: tuple[str, ...]) -> Float[ndarray, "texts width"]:
    return np.asarray(encoder(list(texts)))


def _clauses(prompt: str) -> list[str]:
    return [clause for clause in _CLAUSES.split(prompt.lower()) if clause.strip()]


def _about(clause: str, told: Request, request: Request) -> str:
    """The clause with somebody who does it, where it names nobody."""
    if told.noun or clause.split(maxsplit=1)[0] in DETERMINERS:
        return clause
    return f"a {request.noun or 'person'} {clause}"

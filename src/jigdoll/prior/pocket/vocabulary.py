"""The words that captions of the pocket prior are written with, and the concepts that they carry.

Trained weights carry the vocabulary that they were trained with, and it is found there by name: words, actions and
species that are added to the tables later are unknown to old weights, and nothing else changes for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from jigdoll.errors import JigdollError
from jigdoll.language.actions import ACTIONS as ROWS
from jigdoll.language.actions import among
from jigdoll.language.lexicon import Sense
from jigdoll.language.nouns import FAMILIES, GENERIC, GROUPS, HELD_OUT_SPECIES, NAMES

TRAINED_SPECIES = tuple(name for name in NAMES if name not in HELD_OUT_SPECIES)

ACTIONS = (
    *("walk", "run", "trot", "gallop", "jump", "hop", "idle", "turn_left", "turn_right", "creep", "march", "limp"),
    *("stomp", "dance", "punch", "kick", "wave", "flap", "fly"),
)
"""What training clips show."""
NEGATIVE_KINDS = ("glide", "reversed", "wrong_phase", "wrong_speed", "random", "jitter", "tangled")
UNNATURAL = "unnatural motion"

VERBS: dict[str, tuple[str, ...]] = {
    "walk": ("walk", "step", "pace", "wander", "roam", "go for a walk"),
    "walk slow": ("stroll", "amble", "saunter", "plod"),
    "walk fast": ("power walk",),
    "run": ("run", "scamper", "scurry"),
    "run slow": ("jog",),
    "run fast": ("sprint", "dash", "race", "rush"),
    "trot": ("trot", "move at a trot"),
    "gallop": ("gallop", "bound", "move at a gallop"),
    "gallop slow": ("canter",),
    "jump": ("jump", "leap", "spring up", "take a leap"),
    "hop": ("hop", "skip", "bounce"),
    "idle": ("stand still", "idle", "stand", "rest", "wait", "look around", "stay in place"),
    "turn": ("turn", "veer", "swerve", "curve", "walk in a circle"),
    "creep": ("creep", "sneak", "crawl", "prowl", "stalk", "tiptoe"),
    "march": ("march", "parade", "strut"),
    "limp": ("limp", "hobble"),
    "stomp": ("stomp", "stamp", "tramp"),
    "dance": ("dance", "groove", "boogie"),
    "punch": ("punch", "throw a punch", "jab", "box"),
    "kick": ("kick", "give a kick"),
    "wave": ("wave", "wave hello", "greet"),
    "flap": ("flap its wings", "flap", "beat its wings", "flutter"),
    "fly": ("fly", "soar", "take wing"),
}
"""Verbs that captions are written with, by the action and the tempo that they carry; `language` reads them so too."""
DIRECTIONS: dict[str, tuple[str, ...]] = {
    "left": ("left", "to the left", "leftwards"),
    "right": ("right", "to the right", "rightwards"),
}
TEMPOS: dict[str, tuple[str, ...]] = {
    "slow": ("slowly", "in slow motion", "unhurriedly", "at a slow pace", "leisurely"),
    "fast": ("quickly", "fast", "at full speed", "rapidly", "at a fast pace", "swiftly"),
}
NEGATIVES: dict[str, tuple[str, ...]] = {
    "glide": ("gliding", "sliding", "frozen legs"),
    "reversed": ("backwards", "reversed", "playing in reverse"),
    "wrong_phase": ("uncoordinated", "legs out of step"),
    "wrong_speed": ("skating", "slipping feet", "at the wrong speed"),
    "random": ("thrashing", "random limbs"),
    "jitter": ("jittering", "shaking", "flickering"),
    "tangled": ("tangled", "interpenetrating limbs", "legs through legs"),
}
"""What is wrong with an unnatural motion; these words count only beside "unnatural motion"."""

NEGATIVE_SENSES: dict[str, Sense] = {UNNATURAL: Sense(UNNATURAL, "other", "negative:unnatural")} | {
    word: Sense(word, "other", f"negative:{kind}") for kind, words in NEGATIVES.items() for word in words
}
_UNWRITTEN = ("mammal", "livestock", "monster", "beast", "critter")


@dataclass(frozen=True)
class Vocabulary:
    """What one network was told about: names of concepts and words, in the order of its embeddings."""

    concepts: tuple[str, ...]
    """Every concept; its id is its place plus one, and 0 is padding."""
    words: tuple[str, ...]
    """Every word with a place of its own; its id is its place plus one, and 0 is a word without a place."""

    @cached_property
    def concept_ids(self) -> dict[str, int]:
        return {concept: place + 1 for place, concept in enumerate(self.concepts)}

    @cached_property
    def word_ids(self) -> dict[str, int]:
        return {word: place + 1 for place, word in enumerate(self.words)}

    @cached_property
    def own_actions(self) -> frozenset[str]:
        """The actions that have a concept."""
        return frozenset(name.removeprefix("action:") for name in self.concepts if name.startswith("action:"))

    @cached_property
    def actions(self) -> frozenset[str]:
        """All actions that can be told in its concepts, by themselves or by what they are ways of."""
        return frozenset(name for name in ROWS if among(name, self.own_actions))


def present_vocabulary() -> Vocabulary:
    """The vocabulary that captions have today: what is trained now is trained with it."""
    written = [name for species in TRAINED_SPECIES for name in NAMES[species]]
    written += [noun for noun in (*GROUPS, *GENERIC) if noun not in _UNWRITTEN]
    for table in (VERBS, DIRECTIONS, TEMPOS, {"": (UNNATURAL,)}, NEGATIVES):
        written += [word for words in table.values() for word in words]
    concepts = (
        *(f"species:{name}" for name in TRAINED_SPECIES),
        *(f"family:{name}" for name in (*FAMILIES, "any")),
        *(f"action:{name}" for name in dict.fromkeys(action.split("_")[0] for action in ACTIONS)),
        *("direction:left", "direction:right", "tempo:slow", "tempo:fast", "negative:unnatural"),
        *(f"negative:{kind}" for kind in NEGATIVE_KINDS),
    )
    return Vocabulary(concepts, tuple(written))


def vocabulary_in(facts: Mapping, *, source: object) -> Vocabulary:
    """The vocabulary that the header of a weights file holds."""
    stored = facts.get("vocabulary")
    lists = [stored.get(name) for name in ("concepts", "words")] if isinstance(stored, dict) else []
    for names in lists or [None]:
        good = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
        if not good or len(set(names or ())) != len(names or ()):
            raise JigdollError(
                f"{source}: these weights do not say which words they were trained with; train them anew"
            )
    concepts, words = lists
    return Vocabulary(tuple(concepts or ()), tuple(words or ()))

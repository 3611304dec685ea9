"""The words that the pocket prior knows, and the concepts that they carry.

A word is known by its base form ("stand still"); each carries a few concepts ("action:idle"). Words that the caption
grammar writes have a place of their own in `WORDS`; all others speak through their concepts alone. The order of both
tuples is part of trained weights: words that are added later go to the tables of words that are only understood.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from jigdoll.language.looks import COLORS, SHAPES, SIZES
from jigdoll.language.nouns import FAMILIES, GENERIC, GROUPS, KIN, NAMES, family_of, plural

HELD_OUT_SPECIES = ("fox", "tiger", "horse", "camel", "pig", "child", "velociraptor", "ostrich")
"""Never shown to the prior in training: their names carry only their family."""
TRAINED_SPECIES = tuple(name for name in NAMES if name not in HELD_OUT_SPECIES)

ACTIONS = (
    *("walk", "run", "trot", "gallop", "jump", "hop", "idle", "turn_left", "turn_right", "creep", "march", "limp"),
    *("stomp", "dance", "punch", "kick", "wave", "flap", "fly"),
)
NEGATIVE_KINDS = ("glide", "reversed", "wrong_phase", "wrong_speed", "random", "jitter", "tangled")
UNNATURAL = "unnatural motion"

Kind = Literal["noun", "action", "direction", "tempo", "negative", "look", "manner", "filler"]

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
"""Verbs that captions are written with, by the concepts that they carry."""

MORE_VERBS: dict[str, tuple[str, ...]] = {
    "walk": ("move", "tread", "waddle", "go", "travel", "hike", "advance", "approach", "patrol", "traipse", "toddle"),
    "walk slow": ("trudge", "meander", "mosey", "lumber", "promenade", "shamble"),
    "walk fast": ("stride",),
    "run": ("scuttle", "chase", "flee", "lope", "romp"),
    "run fast": ("charge", "bolt", "hurry", "tear along", "hurtle"),
    "jump": ("spring", "vault", "pounce", "jump up", "lunge"),
    "hop": ("hop along", "prance", "frolic", "bob", "jump up and down"),
    "idle": (
        *("breathe", "stay", "pause", "do nothing", "watch", "relax", "stand around", "linger", "freeze"),
        *("remain still", "keep still", "stay still", "hold still", "be still", "stop"),
    ),
    "turn": ("turn around", "spin", "pivot", "rotate", "circle", "wheel", "steer", "bend", "walk in circles"),
    "creep": ("slink", "skulk", "sidle", "crouch walk", "steal", "lurk"),
    "march": ("high step", "goose step", "swagger"),
    "limp": ("stagger", "stumble", "falter", "shuffle"),
    "stomp": ("trample", "thump", "pound the ground"),
    "dance": ("sway", "twirl", "jive", "waltz", "shimmy", "boogie down"),
    "punch": ("hit", "strike", "swing a fist", "spar"),
    "kick": ("kick out", "boot", "lash out"),
    "wave": ("wave goodbye", "salute", "beckon", "wave its hand", "wave his hand", "wave her hand", "say hello"),
    "flap": ("spread its wings", "flap his wings", "flap her wings", "beat his wings", "beat her wings"),
    "fly": ("glide", "hover", "take off", "take flight", "flit", "swoop"),
}
"""Verbs that are only understood."""

DIRECTIONS: dict[str, tuple[str, ...]] = {
    "left": ("left", "to the left", "leftwards"),
    "right": ("right", "to the right", "rightwards"),
}
MORE_DIRECTIONS: dict[str, tuple[str, ...]] = {
    "left": ("leftward", "to its left", "anticlockwise", "counterclockwise", "to his left", "to her left"),
    "right": ("rightward", "to its right", "clockwise", "to his right", "to her right"),
}

TEMPOS: dict[str, tuple[str, ...]] = {
    "slow": ("slowly", "in slow motion", "unhurriedly", "at a slow pace", "leisurely"),
    "fast": ("quickly", "fast", "at full speed", "rapidly", "at a fast pace", "swiftly"),
}
MORE_TEMPOS: dict[str, tuple[str, ...]] = {
    "slow": (
        "slow",
        "lazily",
        "sluggishly",
        "unhurried",
        "gently",
        "calmly",
        "slower",
        "sluggish",
        "lazy",
        "gradually",
    ),
    "fast": (
        *(
            "quick",
            "rapid",
            "swift",
            "hastily",
            "hurriedly",
            "full speed",
            "top speed",
            "faster",
            "speedily",
            "briskly",
        ),
        *("in a hurry", "energetically", "frantically", "brisk", "at speed", "at high speed"),
    ),
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

MANNERS = (
    *("happily", "sadly", "angrily", "proudly", "carefully", "cautiously", "nervously", "gracefully", "heavily"),
    *(
        "lightly",
        "quietly",
        "softly",
        "stealthily",
        "playfully",
        "clumsily",
        "elegantly",
        "majestically",
        "happy",
        "sad",
    ),
    *(
        "angry",
        "proud",
        "tired",
        "excited",
        "scared",
        "drunk",
        "joyful",
        "joyfully",
        "confidently",
        "smoothly",
        "wildly",
    ),
)
"""Understood, but the prior has learned no such difference."""

LOOKS = (
    *("old", "wild", "friendly", "fluffy", "furry", "shaggy", "spotted", "striped", "scaly", "cartoon", "low poly"),
    *(
        "realistic",
        "grown",
        "handsome",
        "pretty",
        "beautiful",
        "ugly",
        "strange",
        "scary",
        "clay",
        "colourful",
        "armored",
    ),
    *("colorful", "domestic", "shiny", "metal", "wooden", "plain", "simple", "3d", "hairy", "feathered", "bright"),
    *(
        "dappled",
        "ginger",
        "blond",
        "stylized",
        "medium sized",
        "sized",
        "winged",
        "tailed",
        "bearded",
        "armed",
        "maned",
    ),
)
"""How something looks, beside the words of `zoo.looks`: no matter to its motion."""

FILLERS = (
    *("a", "an", "the", "one", "some", "this", "that", "it", "its", "his", "her", "their", "he", "she", "they", "is"),
    *("are", "be", "being", "was", "who", "which", "and", "with", "of", "in", "on", "at", "to", "from", "by", "for"),
    *("over", "across", "along", "around", "through", "up", "down", "while", "as", "into", "toward", "towards", "very"),
    *(
        "really",
        "quite",
        "just",
        "bit",
        "little bit",
        "ahead",
        "forward",
        "forwards",
        "straight",
        "away",
        "past",
        "off",
    ),
    *("forth", "back and forth", "about", "like", "then", "video", "animation", "clip", "film", "footage", "shot"),
    *("cycle", "loop", "scene", "view", "side view", "camera", "gait", "motion", "movement", "pace", "speed", "way"),
    *("ground", "floor", "checkered floor", "grass", "field", "meadow", "forest", "street", "road", "desert", "sand"),
    *("snow", "beach", "park", "studio", "room", "plain background", "background", "air", "sky", "place", "spot"),
    *("line", "circle", "legs", "leg", "feet", "foot", "paw", "paws", "hand", "hands", "arm", "arms", "wing", "wings"),
    *("tail", "head", "body", "fur", "tracking shot", "white background", "rendering", "render", "model", "showing"),
    *(
        "shows",
        "seen",
        "scenery",
        "path",
        "hill",
        "day",
        "sun",
        "sunny",
        "himself",
        "herself",
        "itself",
        "does",
        "doing",
    ),
    *("jungle", "moon", "mountain", "mountains", "savannah", "savanna", "garden", "river", "water", "lake", "city"),
    *("village", "house", "farm", "night", "morning", "evening", "rain", "wind", "ice", "stage", "track", "arena"),
    *("castle", "bridge", "hall", "lawn", "pasture", "prairie", "valley", "swamp", "cave", "island", "outdoors"),
    *("outside", "inside", "woods", "trees", "stone", "stones", "sidewalk", "pavement", "looping", "seamless", "make"),
    *(
        "let",
        "please",
        "me",
        "my",
        "your",
        "show",
        "new",
        "all",
        "again",
        "near",
        "beside",
        "between",
        "under",
        "behind",
    ),
    *("starts", "starting", "begins", "continues", "keeps", "can", "there", "step by step", "high", "low", "highly"),
)
"""Words that hold a sentence together or set a scene."""


@dataclass(frozen=True)
class Word:
    """A known word or phrase in its base form."""

    base: str
    kind: Kind
    concepts: tuple[str, ...]
    """Names of concepts, none for words that do not steer the motion."""
    written: bool
    """Whether captions are written with it; if not, it has no place in `WORDS`."""


def inflect(verb: str) -> tuple[str, str, str, tuple[str, ...]]:
    """Base, third person, -ing form and past forms of a verb; in a phrase the first word changes."""
    first, _, rest = verb.partition(" ")
    rest = f" {rest}" if rest else ""
    if first == "be":
        return verb, f"is{rest}", f"being{rest}", (f"was{rest}",)
    third = first + ("es" if first.endswith(("s", "x", "ch", "sh", "o", "z")) else "s")
    double = bool(re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]|spar", first))
    stem = first + first[-1] if double else first.removesuffix("e")
    past = stem + "ed"
    if first.endswith("y") and first[-2] not in "aeiou":
        third, past = first[:-1] + "ies", first[:-1] + "ied"
    if first.endswith("ee"):
        stem = first
    if first == "tiptoe":
        stem = "tiptoe"
    pasts = tuple(form + rest for form in (past, *_PAST.get(first, ())))
    return verb, third + rest, stem + "ing" + rest, pasts


_PAST = {
    "run": ("ran",),
    "creep": ("crept",),
    "fly": ("flew", "flown"),
    "stand": ("stood",),
    "leap": ("leapt",),
    "spring": ("sprang",),
    "spin": ("spun",),
    "sneak": ("snuck",),
    "throw": ("threw",),
    "take": ("took",),
    "give": ("gave",),
    "go": ("went", "gone"),
    "beat": ("beat",),
    "keep": ("kept",),
    "hold": ("held",),
    "swing": ("swung",),
    "strike": ("struck",),
    "hit": ("hit",),
    "bend": ("bent",),
    "flee": ("fled",),
    "freeze": ("froze",),
    "say": ("said",),
    "steal": ("stole",),
    "slink": ("slunk",),
    "do": ("did",),
}


def verb_concepts(key: str) -> tuple[str, ...]:
    """The concepts behind a key of the verb tables: "run fast" is the action run and the tempo fast."""
    action, *tempo = key.split()
    return (f"action:{action}", *(f"tempo:{word}" for word in tempo))


_UNWRITTEN = ("mammal", "livestock", "monster", "beast", "critter")


def _nouns() -> list[Word]:
    words = []
    for species in NAMES:
        trained = species in TRAINED_SPECIES
        family = f"family:{family_of(species)}"
        concepts = (f"species:{species}", family) if trained else (family,)
        words += [Word(name, "noun", concepts, trained) for name in NAMES[species]]
        words += [Word(name, "noun", (family,), False) for name in KIN[species]]
    words += [Word(name, "noun", (f"family:{fam}",), name not in _UNWRITTEN) for name, fam in GROUPS.items()]
    words += [Word(name, "noun", ("family:any",), name not in _UNWRITTEN) for name in GENERIC]
    return words


def _rest() -> list[Word]:
    words = []
    for table, written in ((VERBS, True), (MORE_VERBS, False)):
        words += [Word(verb, "action", verb_concepts(key), written) for key, verbs in table.items() for verb in verbs]
    for table, written in ((DIRECTIONS, True), (MORE_DIRECTIONS, False)):
        words += [Word(w, "direction", (f"direction:{key}",), written) for key, ws in table.items() for w in ws]
    for table, written in ((TEMPOS, True), (MORE_TEMPOS, False)):
        words += [Word(w, "tempo", (f"tempo:{key}",), written) for key, ws in table.items() for w in ws]
    words.append(Word(UNNATURAL, "negative", ("negative:unnatural",), True))
    words += [Word(w, "negative", (f"negative:{key}",), True) for key, ws in NEGATIVES.items() for w in ws]
    words += [Word(w, "manner", (), False) for w in MANNERS]
    words += [Word(w, "look", (), False) for w in (*SIZES, *SHAPES, *COLORS, *LOOKS)]
    words += [Word(w, "filler", (), False) for w in FILLERS]
    return words


LEXICON: tuple[Word, ...] = (*_nouns(), *_rest())

CONCEPTS: tuple[str, ...] = (
    *(f"species:{name}" for name in TRAINED_SPECIES),
    *(f"family:{name}" for name in (*FAMILIES, "any")),
    *(f"action:{name}" for name in dict.fromkeys(action.split("_")[0] for action in ACTIONS)),
    *("direction:left", "direction:right", "tempo:slow", "tempo:fast", "negative:unnatural"),
    *(f"negative:{kind}" for kind in NEGATIVE_KINDS),
)
"""Every concept; its id is its place plus one, and 0 is padding."""
WORDS: tuple[str, ...] = tuple(word.base for word in LEXICON if word.written)
"""Every word that captions are written with; its id is its place plus one, and 0 is a word without a place."""


def fingerprint() -> str:
    """A short mark of both tuples: weights fit the words of one fingerprint only."""
    text = "\n".join((*CONCEPTS, "", *WORDS))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def surface_forms(word: Word) -> tuple[str, ...]:
    """All the ways in which a word is written."""
    if word.kind == "noun":
        return (word.base, plural(word.base))
    if word.kind == "action":
        base, third, ing, pasts = inflect(word.base)
        return (base, third, ing, *pasts)
    return (word.base,)

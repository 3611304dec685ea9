"""English forms: how verbs change with person and time."""

import re

_PAST = {
    "run": ("ran",),
    "creep": ("crept",),
    "fly": ("flew", "flown"),
    "stand": ("stood",),
    "leap": ("leapt",),
    "spring": ("sprang",),
    "spin": ("spun",),
    "sneak": ("snuck",),
    "throw": ("threw", "thrown"),
    "take": ("took", "taken"),
    "give": ("gave", "given"),
    "go": ("went", "gone"),
    "come": ("came",),
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
    "do": ("did", "done"),
    "get": ("got",),
    "sit": ("sat",),
    "swim": ("swam", "swum"),
    "fall": ("fell", "fallen"),
    "lie": ("lay", "lain"),
    "eat": ("ate", "eaten"),
    "drink": ("drank",),
    "bite": ("bit", "bitten"),
    "catch": ("caught",),
    "dig": ("dug",),
    "shoot": ("shot",),
    "cast": ("cast",),
    "fight": ("fought",),
    "sing": ("sang", "sung"),
    "sleep": ("slept",),
    "wake": ("woke",),
    "awake": ("awoke",),
    "rise": ("rose", "risen"),
    "hang": ("hung",),
    "ride": ("rode",),
    "drive": ("drove",),
    "kneel": ("knelt",),
    "speak": ("spoke",),
    "weep": ("wept",),
    "shake": ("shook", "shaken"),
    "dive": ("dove",),
    "draw": ("drew",),
    "put": ("put",),
    "set": ("set",),
    "sweep": ("swept",),
    "slide": ("slid",),
    "think": ("thought",),
    "write": ("wrote",),
    "make": ("made",),
    "have": ("had",),
    "begin": ("began",),
    "break": ("broke",),
    "burst": ("burst",),
    "feed": ("fed",),
    "blow": ("blew",),
    "tread": ("trod",),
    "grind": ("ground",),
    "lay": ("laid",),
}
_DOUBLED = ("spar", "backflip", "kidnap")
_THIRD = {"have": "has", "do": "does", "go": "goes"}


def inflect(verb: str) -> tuple[str, str, str, tuple[str, ...]]:
    """Base, third person, -ing form and past forms of a verb; in a phrase the first word changes."""
    first, _, rest = verb.partition(" ")
    rest = f" {rest}" if rest else ""
    if first == "be":
        return verb, f"is{rest}", f"being{rest}", tuple(f"{form}{rest}" for form in ("are", "was", "were", "been"))
    third = _THIRD.get(first) or first + ("es" if first.endswith(("s", "x", "ch", "sh", "o", "z")) else "s")
    double = bool(re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", first)) or first in _DOUBLED
    stem = first + first[-1] if double else first.removesuffix("e")
    past = stem + "ed"
    if first.endswith("y") and first[-2] not in "aeiou":
        third, past = first[:-1] + "ies", first[:-1] + "ied"
    if first.endswith("ie"):
        stem = first[:-2] + "y"
    if first.endswith("ee") or first == "tiptoe":
        stem = first
    pasts = tuple(form + rest for form in (past, *_PAST.get(first, ())))
    return verb, third + rest, stem + "ing" + rest, pasts

"""What characters are asked to do: one row per action.

To add an action, add a row. Whoever performs (a prior, a memory of clips, a procedural gait) knows some of the names;
for the others `general` says what may be done in their place, and `nearest` what comes close without being it.
In a verb `~` stands for any article or possessive: "shake ~ head" is also "shakes her head".
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from jigdoll.language.inflect import inflect

GaitKind = Literal["walk", "run", "jump", "dance", "fly", "still"]
"""How a body gets along: by steps, by steps with flight, in leaps, on the spot with steps, in the air, not at all."""


@dataclass(frozen=True)
class Action:
    """One thing to do."""

    name: str
    verbs: tuple[str, ...]
    """Verbs and phrases in their base form, the plainest first."""
    slow: tuple[str, ...] = ()
    """Verbs that are slow themselves: a stroll is a slow walk."""
    fast: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    """Names of it that are no verbs: death, hit reaction."""
    gait: GaitKind = "still"
    froude: float = 0.0
    """Of the usual speed v along the ground: v^2 / (g L) with the leg length L."""
    general: str | None = None
    """What it is a way of: who cannot sneak creeps."""
    nearest: tuple[str, ...] = ()
    """Other actions that come close to it, but are not it."""


_ROWS = (
    # Getting along.
    Action(
        "walk",
        (
            *("walk", "step", "pace", "wander", "roam", "go for a walk", "move", "tread", "waddle", "go", "travel"),
            *("hike", "advance", "approach", "patrol", "traipse", "toddle", "come", "proceed", "wade", "walk around"),
            *("follow", "enter", "cross", "return", "walk up", "walk down", "walk away", "walk over", "take a walk"),
        ),
        slow=(
            *("stroll", "amble", "saunter", "plod", "trudge", "meander", "mosey", "lumber", "promenade", "shamble"),
            *("take a stroll", "drift"),
        ),
        fast=("power walk", "stride", "speed walk"),
        gait="walk",
        froude=0.15,
    ),
    Action(
        "run",
        ("run", "scamper", "scurry", "scuttle", "chase", "flee", "lope", "romp", "run away", "escape", "run around"),
        slow=("jog",),
        fast=("sprint", "dash", "race", "rush", "charge", "bolt", "hurry", "tear along", "hurtle", "dart", "speed"),
        gait="run",
        froude=1.5,
    ),
    Action("trot", ("trot", "move at a trot"), gait="run", froude=0.75),
    Action("gallop", ("gallop", "bound", "move at a gallop"), slow=("canter",), gait="run", froude=2.0),
    Action(
        "jump",
        (
            *("jump", "leap", "spring up", "take a leap", "spring", "vault", "jump up", "lunge", "hurdle", "jump over"),
            *("jump down", "jump off", "leap up", "long jump", "high jump", "jump for joy", "jump with joy"),
        ),
        gait="jump",
        froude=0.035,
    ),
    Action(
        "hop",
        ("hop", "skip", "bounce", "hop along", "prance", "frolic", "bob", "jump up and down", "hop around", "caper"),
        gait="jump",
        froude=0.22,
    ),
    Action(
        "idle",
        (
            *("stand still", "idle", "stand", "rest", "wait", "stay in place", "breathe", "stay", "pause"),
            *("do nothing", "watch", "relax", "stand around", "linger", "freeze", "remain still", "keep still"),
            *("stay still", "hold still", "be still", "stop", "stand there", "stand idle", "stand in place", "halt"),
            *("do not move", "not move", "stand guard", "stand motionless", "come to a stop", "come to a halt"),
            *("remain", "loiter", "be idle", "remain standing", "stand at attention", "slow to a stop", "stop moving"),
        ),
    ),
    Action(
        "look_around",
        (
            *("look around", "look about", "look left and right", "look right and left", "look from side to side"),
            *("glance around", "look back", "look", "peer", "glance", "gaze", "stare", "look up", "look down"),
            *("search", "look over ~ shoulder", "turn ~ head", "scan ~ horizon", "look behind", "look left"),
            "look right",
        ),
        general="idle",
    ),
    Action("turn", ("turn", "veer", "swerve", "curve", "pivot", "rotate", "wheel", "steer"), gait="walk", froude=0.07),
    Action(
        "circle",
        ("circle", "walk in a circle", "walk in circles", "walk around in circles", "go round in circles", "orbit"),
        general="turn",
        gait="walk",
        froude=0.07,
    ),
    Action(
        "spin",
        ("spin", "spin around", "whirl", "twist around", "spin in circles", "spin in a circle", "spin in place"),
        general="turn",
        gait="walk",
        froude=0.07,
    ),
    Action(
        "turn_around",
        ("turn around", "turn back", "turn round", "about face", "about turn", "u turn", "make a u turn"),
        general="turn",
        gait="walk",
        froude=0.07,
    ),
    Action(
        "creep",
        ("creep", "prowl", "stalk", "tiptoe", "slink", "skulk", "sidle", "crouch walk", "steal", "lurk", "tip toe"),
        gait="walk",
        froude=0.03,
    ),
    Action("sneak", ("sneak", "sneak around", "sneak up"), general="creep", gait="walk", froude=0.03),
    Action(
        "crawl",
        ("crawl", "crawl on ~ hands and knees", "crawl on all fours", "army crawl", "go on all fours", "inch along"),
        general="creep",
        gait="walk",
        froude=0.03,
    ),
    Action(
        "march",
        ("march", "parade", "strut", "high step", "goose step", "swagger", "march in place", "catwalk"),
        gait="walk",
        froude=0.1,
    ),
    Action("limp", ("limp", "hobble", "falter", "shuffle", "drag ~ foot", "drag ~ leg"), gait="walk", froude=0.08),
    Action(
        "stagger",
        ("stagger", "stumble", "reel", "wobble", "totter", "teeter", "lurch", "sway drunkenly", "stumble around"),
        general="limp",
        gait="walk",
        froude=0.08,
    ),
    Action("stomp", ("stomp", "stamp", "tramp", "trample", "thump", "pound the ground", "stamp ~ feet", "stamp ~ foot"),
           gait="walk", froude=0.08),
    Action("slither", ("slither", "wriggle", "snake", "writhe", "squirm", "undulate"), gait="walk", froude=0.03,
           nearest=("creep",)),
    Action("climb", ("climb", "clamber", "climb up", "climb down", "ascend", "climb over"),
           nearest=("creep", "walk")),
    Action("climb_stairs", ("climb stairs", "climb ~ stairs", "walk up stairs", "walk up ~ stairs", "go up ~ stairs",
                            "climb up ~ stairs", "walk down ~ stairs", "go upstairs", "walk upstairs"),
           gait="walk", froude=0.1, nearest=("walk", "march")),
    Action("skate", ("skate", "skateboard", "ice skate", "roller skate", "ski", "surf", "snowboard"), gait="walk",
           froude=0.15, nearest=("walk", "run")),
    Action("slide", ("slide", "skid", "slip"), nearest=("walk", "fall")),
    Action("ride", ("ride", "drive", "ride ~ horse", "ride ~ bike", "ride ~ bicycle", "pedal", "drive ~ car"),
           nearest=("gallop", "trot")),
    # In the air and in the water.
    Action("flap", ("flap its wings", "flap", "beat its wings", "flutter", "spread its wings", "flap his wings",
                    "flap her wings", "beat his wings", "beat her wings", "flap ~ wings", "beat ~ wings",
                    "spread ~ wings", "flutter ~ wings", "flap ~ arms")),
    Action("fly", ("fly", "soar", "take wing", "flit", "swoop", "fly away", "fly around", "fly off"),
           gait="fly", froude=0.5),
    Action("hover", ("hover", "float", "levitate", "fly in place", "hang in the air"), general="fly", gait="fly"),
    Action("glide", ("glide",), general="fly", gait="fly", froude=0.5),
    Action("take_off", ("take off", "take flight", "lift off", "fly up"), nouns=("takeoff",), general="fly", gait="fly",
           froude=0.5),
    Action("land", ("land", "touch down", "alight", "come in to land"), nouns=("landing",), gait="fly",
           nearest=("fly", "jump")),
    Action("dive", ("dive", "plunge", "nosedive", "dive down", "dive in"), gait="fly", froude=0.5,
           nearest=("jump", "fly")),
    Action("swim", ("swim", "paddle", "tread water", "do the breaststroke", "swim around", "dog paddle", "snorkel"),
           gait="fly", froude=0.1, nearest=("fly", "walk")),
    # Dances and acrobatics.
    Action(
        "dance",
        (
            *("dance", "groove", "boogie", "sway", "twirl", "jive", "waltz", "shimmy", "boogie down", "breakdance"),
            *("tango", "salsa", "tap dance", "twerk", "belly dance", "moonwalk", "do the macarena", "do ballet"),
            *("dance around", "headbang", "disco dance", "break dance", "dance hip hop", "dance salsa"),
        ),
        gait="dance",
    ),
    Action("pirouette", ("pirouette",), general="dance", gait="dance"),
    Action("roll", ("roll", "roll over", "tumble", "barrel roll", "roll around", "roll forward", "roll on ~ back"),
           nearest=("hop", "dance")),
    Action("flip", ("flip", "backflip", "somersault", "frontflip", "back flip", "front flip", "do a flip", "handspring",
                    "back handspring", "do flips", "salto", "do a back somersault"),
           gait="jump", froude=0.035, nearest=("jump",)),
    Action("cartwheel", ("cartwheel", "turn cartwheels", "do cartwheels"), nearest=("jump", "dance")),
    Action("handstand", ("handstand", "do a handstand", "stand on ~ hands", "walk on ~ hands", "headstand"),
           nearest=("idle", "walk")),
    Action("jumping_jacks", ("do jumping jacks", "jumping jack"), nouns=("jumping jacks",), gait="jump",
           nearest=("hop", "jump")),
    Action("push_up", ("do push ups", "do pushups", "do a push up"), nouns=("push ups", "pushups", "push up"),
           nearest=("creep", "idle")),
    Action("sit_up", ("do sit ups", "do situps", "do crunches"), nouns=("sit ups", "situps"), nearest=("idle",)),
    Action("squat", ("squat", "do squats", "do a squat"), nearest=("idle", "hop")),
    Action("exercise", ("exercise", "work out", "warm up", "do yoga", "do tai chi", "do karate", "do gymnastics",
                        "lift weights", "train"),
           nearest=("dance", "march")),
    # Fights.
    Action(
        "punch",
        (
            *("punch", "throw a punch", "jab", "box", "hit", "strike", "swing ~ fist", "spar", "slap", "shadow box"),
            *("uppercut", "shadowbox", "throw punches", "land a punch", "right hook", "left hook", "smack"),
        ),
    ),
    Action("kick", ("kick", "give a kick", "kick out", "boot", "lash out", "roundhouse kick", "karate kick", "dropkick",
                    "high kick", "kick ~ ball", "fly kick", "side kick", "front kick")),
    Action("attack", ("attack", "fight", "brawl", "claw", "maul", "swipe", "ambush", "battle", "pummel", "assault",
                      "headbutt", "butt", "ram", "gore", "wrestle"), nearest=("punch", "kick")),
    Action("bite", ("bite", "snap", "snap ~ jaws", "gnaw", "sting"), nearest=("punch", "idle")),
    Action("pounce", ("pounce", "pounce on"), general="jump", gait="jump",
           froude=0.035),
    Action(
        "swordplay",
        (
            *("swing ~ sword", "fence", "slash", "stab", "swordfight", "sword fight", "duel", "wield ~ sword"),
            *("brandish", "swing ~ axe", "swing ~ blade", "thrust", "fight with a sword", "draw ~ sword", "lunge with"),
            *("slash with ~ sword", "attack with a sword", "swing ~ staff", "swing ~ weapon", "wield"),
            "thrust ~ spear",
        ),
        nouns=("swordplay", "sword slash", "sword attack"),
        nearest=("punch", "wave"),
    ),
    Action("shoot", ("shoot", "fire", "aim", "shoot ~ gun", "fire ~ gun", "shoot ~ arrow", "shoot ~ bow", "draw ~ bow",
                     "fire ~ rifle", "aim ~ gun", "fire ~ arrow", "reload", "shoot arrows"), nearest=("punch", "wave")),
    Action("cast", ("cast", "cast ~ spell", "cast spells", "cast magic", "conjure", "do magic", "summon",
                    "cast ~ fireball"), nouns=("spellcast", "spell cast"), nearest=("wave", "punch")),
    Action("block", ("block", "defend", "guard", "parry", "raise ~ shield", "shield", "defend itself", "block ~ attack",
                     "defend himself", "defend herself"), nearest=("punch", "idle")),
    Action("dodge", ("dodge", "duck", "evade", "sidestep", "weave", "side step", "jump aside", "avoid", "duck away"),
           nearest=("hop", "creep")),
    Action(
        "hit_reaction",
        (
            *("get hit", "be hit", "flinch", "recoil", "take a hit", "take damage", "get hurt", "be struck", "wince"),
            *("get punched", "be punched", "get kicked", "be kicked", "take a punch", "receive a punch", "get shot"),
            *("be shot", "get struck", "receive a hit", "receive a blow", "take a blow", "get slapped", "be slapped"),
            *("get attacked", "be attacked", "react to a hit", "get hit hard", "get smacked", "be knocked back"),
            *("get knocked back", "react to being hit", "be wounded", "get wounded"),
        ),
        nouns=("hit reaction", "hit react", "damage reaction"),
        nearest=("limp", "idle"),
    ),
    Action("fall", ("fall", "fall down", "fall over", "collapse", "topple", "faint", "keel over", "get knocked down",
                    "be knocked down", "trip", "trip over", "fall to the ground", "fall backwards", "fall on ~ face",
                    "trip and fall", "drop to the ground", "topple over", "pass out", "fall off", "get knocked out",
                    "be knocked out", "fall flat", "fall forward"), nearest=("limp", "jump")),
    Action("die", ("die", "drop dead", "be killed", "get killed", "perish", "play dead", "fall dead", "be defeated",
                   "be slain", "get defeated", "expire", "bleed out"), nouns=("death", "dying"),
           nearest=("idle", "limp")),
    # Things in the hands.
    Action("throw", ("throw", "toss", "hurl", "fling", "pitch", "lob", "throw away", "chuck", "throw ~ ball",
                     "throw ~ spear", "throw ~ stone", "bowl"), nearest=("punch", "wave")),
    Action("catch", ("catch", "catch ~ ball", "intercept"), nearest=("jump", "wave")),
    Action("pick_up", ("pick up", "lift up", "lift", "grab", "gather", "collect", "pick", "pick ~ box up", "take out",
                       "reach for", "reach down", "reach out", "reach", "snatch", "grab hold of", "pick something up",
                       "pick it up", "loot", "harvest"), nearest=("creep", "wave")),
    Action("put_down", ("put down", "drop", "set down", "place", "lay down ~ sword", "put ~ box down", "put it down",
                        "put"), nearest=("creep", "wave")),
    Action("carry", ("carry", "haul", "carry ~ box", "lug", "bear"), gait="walk", froude=0.1, nearest=("walk",)),
    Action("push", ("push", "shove", "press", "push away", "push against", "push ~ box"), nearest=("punch", "walk")),
    Action("pull", ("pull", "drag", "tug", "yank", "tow", "pull ~ rope"), nearest=("walk", "creep")),
    Action("open", ("open", "open ~ door", "unlock", "close", "close ~ door", "shut", "open ~ chest"),
           nearest=("wave", "punch")),
    Action("knock", ("knock", "knock on ~ door", "knock at ~ door", "ring ~ bell"), nearest=("punch", "wave")),
    Action("swing", ("swing", "swing ~ bat", "swing ~ club", "swing ~ golf club", "bat", "swing ~ racket",
                     "swing ~ hammer"), nearest=("punch", "dance")),
    Action("work", ("work", "hammer", "chop wood", "chop", "sweep", "mop", "rake", "paint", "cook", "stir",
                    "sweep the floor", "sew", "clean", "build", "water ~ plants", "swing ~ pickaxe"),
           nearest=("punch", "wave")),
    Action("play", ("play", "play ~ guitar", "play guitar", "play ~ piano", "play ~ drums", "play ~ violin", "drum",
                    "play ~ flute", "strum", "dribble", "play basketball", "play football", "play tennis", "play golf",
                    "play soccer", "play with ~ ball", "conduct"), nearest=("dance", "wave")),
    Action("juggle", ("juggle", "juggle balls"), nearest=("wave", "dance")),
    Action("type", ("type", "write", "read", "read ~ book", "type on ~ keyboard", "draw", "use ~ phone",
                    "talk on ~ phone", "answer ~ phone"), nearest=("idle",)),
    Action("fish", ("fish", "cast ~ line", "go fishing"), nearest=("wave", "idle")),
    # Places to be: on the seat, on the knees, on the ground.
    Action("sit", ("sit", "sit down", "take a seat", "be seated", "sit on ~ chair", "sit up", "have a seat"),
           nearest=("idle",)),
    Action("stand_up", ("stand up", "get up", "rise", "arise", "get to ~ feet", "rise to ~ feet", "jump to ~ feet",
                        "get back up", "stand back up", "stand up from"), nearest=("idle", "jump")),
    Action("lie", ("lie down", "lie", "lay down", "lie on ~ back", "be lying", "recline", "lounge", "lay"),
           nearest=("idle",)),
    Action("sleep", ("sleep", "nap", "snooze", "doze", "take a nap", "fall asleep", "snore", "be asleep", "doze off",
                     "hibernate"), nearest=("idle",)),
    Action("wake_up", ("wake up", "awake", "awaken", "wake"), nearest=("idle",)),
    Action("kneel", ("kneel", "kneel down", "genuflect", "go down on one knee", "drop to ~ knees", "fall to ~ knees",
                     "take a knee"), nearest=("creep", "idle")),
    Action("crouch", ("crouch", "crouch down", "squat down", "duck down", "hunker", "hunker down", "bend", "bend down",
                      "bend over", "bend ~ knees", "cower", "stoop", "bend forward", "huddle", "hide"),
           nearest=("creep", "idle")),
    Action("hang", ("hang", "dangle", "hang from"), nearest=("idle",)),
    # Bodily needs.
    Action("eat", ("eat", "chew", "feed", "munch", "graze", "nibble", "devour", "peck", "peck at", "swallow", "feast",
                   "chomp", "eat ~ apple"), nearest=("idle",)),
    Action("drink", ("drink", "sip", "slurp", "lap", "gulp", "take a sip", "drink water"), nearest=("idle",)),
    Action("yawn", ("yawn",), nearest=("idle",)),
    Action("sneeze", ("sneeze", "cough", "vomit", "throw up", "puke", "hiccup"), nearest=("idle",)),
    Action("stretch", ("stretch", "stretch ~ arms", "stretch ~ legs", "stretch out"), nearest=("idle",)),
    Action("scratch", ("scratch", "scratch ~ head", "scratch itself", "scratch ~ ear", "itch", "scratch himself"),
           nearest=("wave", "kick")),
    Action("tremble", ("tremble", "shiver", "shake", "shudder", "quiver", "quake", "shake itself", "shake off water",
                       "vibrate", "shake ~ body"), nearest=("dance", "idle")),
    Action("groom", ("groom", "lick", "preen", "wash", "groom itself", "lick ~ paw", "wash itself", "brush",
                     "lick itself", "comb ~ hair", "brush ~ teeth", "shave"), nearest=("idle", "wave")),
    # Gestures and feelings.
    Action("wave", ("wave", "wave hello", "greet", "wave goodbye", "wave ~ hand", "say hello", "wave ~ arms", "say hi",
                    "say goodbye", "wave ~ arm", "wave its hand", "wave his hand", "wave her hand", "wave ~ hands")),
    Action("beckon", ("beckon", "signal", "gesture", "gesticulate", "beckon over"), general="wave"),
    Action("salute", ("salute", "give a salute"), nearest=("wave", "march")),
    Action("clap", ("clap", "applaud", "clap ~ hands", "clap along"), nearest=("wave", "dance")),
    Action("bow", ("bow", "take a bow", "curtsy", "bow down", "bow ~ head"), nearest=("idle", "wave")),
    Action("nod", ("nod", "nod ~ head", "agree", "say yes"), nearest=("idle",)),
    Action("shake_head", ("shake ~ head", "say no", "refuse", "disagree", "shake its head"), nouns=("head shake",),
           nearest=("idle",)),
    Action("point", ("point", "point at", "point to", "point ~ finger", "aim ~ finger"), nearest=("wave", "punch")),
    Action("cheer", ("cheer", "celebrate", "rejoice", "raise ~ arms", "throw ~ arms up", "victory dance", "pump ~ fist",
                     "cheer up", "exult", "raise ~ hands", "do a victory pose", "raise ~ hand", "raise ~ fist"),
           nouns=("victory", "victory pose"), nearest=("wave", "jump")),
    Action("shrug", ("shrug", "shrug ~ shoulders"), nearest=("idle", "wave")),
    Action("cross_arms", ("cross ~ arms", "fold ~ arms", "put ~ hands on ~ hips"), nearest=("idle",)),
    Action("talk", ("talk", "speak", "chat", "argue", "discuss", "explain", "say", "shout", "yell", "scream",
                    "converse", "tell", "lecture", "give a speech", "whisper", "call", "chatter", "complain"),
           nearest=("idle", "wave")),
    Action("sing", ("sing", "chant", "hum", "sing a song"), nearest=("idle", "dance")),
    Action("laugh", ("laugh", "giggle", "chuckle", "smile", "grin", "snicker", "cackle"), nearest=("idle", "dance")),
    Action("cry", ("cry", "weep", "sob", "mourn", "wail", "grieve"), nearest=("idle",)),
    Action("think", ("think", "ponder", "wonder", "contemplate", "meditate", "hesitate"), nearest=("idle",)),
    Action("pray", ("pray", "worship", "beg", "plead"), nearest=("idle", "wave")),
    Action("hug", ("hug", "embrace", "cuddle", "kiss", "hold hands", "blow a kiss"), nearest=("wave", "idle")),
    Action("shake_hands", ("shake hands", "high five", "shake ~ hand", "fist bump", "give a high five"),
           nouns=("handshake",), nearest=("wave",)),
    Action("flex", ("flex", "flex ~ muscles", "pose", "strike a pose", "show off"), nearest=("idle", "wave")),
    Action("taunt", ("taunt", "mock", "tease", "provoke", "beat ~ chest", "pound ~ chest", "threaten"),
           nearest=("wave", "stomp")),
    # What animals do.
    Action("roar", ("roar", "growl", "snarl", "hiss", "bellow", "breathe fire", "spit fire", "breathe flames", "rage"),
           nearest=("idle", "stomp")),
    Action("howl", ("howl", "howl at the moon", "bay"), nearest=("idle",)),
    Action("bark", ("bark", "woof", "yap", "meow", "moo", "neigh", "whinny", "bleat", "squeak", "chirp", "quack",
                    "crow", "caw", "oink", "purr", "croak", "buzz"), nearest=("idle",)),
    Action("sniff", ("sniff", "smell", "sniff around", "sniff the ground", "snuffle"), nearest=("idle", "creep")),
    Action("dig", ("dig", "burrow", "dig a hole", "paw ~ ground", "shovel", "dig up"), nearest=("stomp", "creep")),
    Action("rear", ("rear", "rear up", "rear back", "stand on ~ hind legs", "buck", "rise on ~ hind legs"),
           nearest=("jump", "kick")),
    Action("wag", ("wag ~ tail", "wag", "swish ~ tail", "whip ~ tail", "flick ~ tail"), nearest=("idle", "dance")),
)  # fmt: skip

ACTIONS: dict[str, Action] = {row.name: row for row in _ROWS}
"""Every action by its name."""

_ANY_ARTICLE = ("its", "a", "an", "the", "his", "her", "their", "my", "your", "some", "both")


def spellings(phrase: str) -> tuple[str, ...]:
    """The phrase with every article that its `~` stands for; the first one is its base form."""
    if "~" not in phrase:
        return (phrase,)
    return tuple(phrase.replace("~", article) for article in _ANY_ARTICLE)


@cache
def verb_forms(verb: str) -> tuple[tuple[str, bool], ...]:
    """All forms of a verb or phrase, each with whether it is the -ing form."""
    forms: list[tuple[str, bool]] = []
    for phrase in spellings(verb):
        base, third, ing, pasts = inflect(phrase)
        forms += [(base, False), (third, False), (ing, True), *((past, False) for past in pasts)]
    return tuple(dict.fromkeys(forms))


def general_of(name: str) -> tuple[str, ...]:
    """The action, what it is a way of, and so on."""
    chain = [name]
    while (general := ACTIONS[chain[-1]].general) is not None:
        chain.append(general)
    return tuple(chain)


def among(name: str, known: frozenset[str]) -> str | None:
    """The action itself or what it is a way of, whichever is known first; None if neither is."""
    return next((action for action in general_of(name) if action in known), None)

"""Words for how something is done: how fast, to which side, which way, in which mood."""

TEMPOS: dict[str, tuple[str, ...]] = {
    "slow": (
        *("slowly", "in slow motion", "unhurriedly", "at a slow pace", "leisurely", "slow", "lazily", "sluggishly"),
        *("unhurried", "gently", "calmly", "slower", "sluggish", "lazy", "gradually", "at a leisurely pace"),
        *("steadily",),
        *("very slowly", "at a snails pace", "relaxed", "casually", "casual", "ponderously", "slow motion"),
    ),
    "fast": (
        *("quickly", "fast", "at full speed", "rapidly", "at a fast pace", "swiftly", "quick", "rapid", "swift"),
        *("hastily", "hurriedly", "full speed", "top speed", "faster", "speedily", "briskly", "in a hurry"),
        *("energetically", "frantically", "brisk", "at speed", "at high speed", "at top speed", "at full tilt"),
        *("as fast as he can", "as fast as she can", "as fast as it can", "as fast as possible", "hurried", "suddenly"),
        *("vigorously", "furiously", "very fast", "at a brisk pace", "flat out", "like the wind", "full throttle"),
    ),
}
"""How fast."""

SIDES: dict[str, tuple[str, ...]] = {
    "left": (
        *("left", "to the left", "leftwards", "leftward", "to its left", "anticlockwise", "counterclockwise"),
        *("to his left", "to her left", "to their left", "counter clockwise", "anti clockwise", "left handed"),
        *("with its left hand", "with his left hand", "with her left hand", "left hand", "left arm", "left leg"),
        *("left foot", "left paw", "left wing"),
    ),
    "right": (
        *("right", "to the right", "rightwards", "rightward", "to its right", "clockwise", "to his right"),
        *("to her right", "to their right", "right handed", "with its right hand", "with his right hand"),
        *("with her right hand", "right hand", "right arm", "right leg", "right foot", "right paw", "right wing"),
    ),
}
"""To which side, or with which limb."""

WAYS: dict[str, tuple[str, ...]] = {
    "backward": ("backwards", "backward", "in reverse"),
    "sideways": ("sideways", "sideward", "sidewards", "from side to side", "side to side", "laterally"),
    "circle": (
        *("in circles", "in a circle", "around in circles", "round and round", "around and around", "in a ring"),
        *("in a big circle", "in small circles", "in large circles", "in a wide circle", "in a small circle"),
        *("in a large circle", "in a spiral", "in wide circles"),
    ),
}
"""Which way, where it is not straight ahead."""

TIMES: dict[str, tuple[str, ...]] = {
    "2": ("twice", "two times"),
    "3": ("thrice", "three times"),
    "4": ("four times",),
    "5": ("five times",),
    "10": ("ten times",),
}
"""How often."""

STYLES: dict[str, tuple[str, ...]] = {
    "happy": (
        *("happily", "happy", "joyful", "joyfully", "cheerfully", "cheerful", "merrily", "gleefully", "merry", "jolly"),
        *("with joy", "gladly", "smilingly"),
    ),
    "sad": (
        *("sadly", "sad", "depressed", "gloomily", "mournfully", "dejectedly", "unhappy", "unhappily", "miserably"),
        *("sorrowfully", "heartbroken", "gloomy", "with a heavy heart", "in a sad way", "dejected"),
    ),
    "angry": ("angrily", "angry", "furious", "aggressively", "aggressive", "mad", "ferociously", "fiercely", "fierce"),
    "proud": ("proudly", "proud", "arrogantly", "regally", "pompously", "haughtily", "with pride", "heroically"),
    "tired": (
        *("tired", "wearily", "weary", "exhausted", "tiredly", "sleepily", "sleepy", "exhaustedly", "out of breath"),
        *("fatigued", "worn out", "drowsily"),
    ),
    "drunk": ("drunk", "drunkenly", "drunken", "tipsy", "tipsily", "intoxicated", "dizzily", "dizzy"),
    "scared": (
        *("scared", "nervously", "nervous", "fearfully", "frightened", "anxiously", "timidly", "afraid", "terrified"),
        *("in panic", "in fear", "anxious", "in a panic", "panicked", "shyly", "shy", "timid"),
    ),
    "excited": ("excited", "excitedly", "enthusiastically", "eagerly", "with excitement", "eager"),
    "careful": ("carefully", "cautiously", "warily", "cautious", "careful", "gingerly", "hesitantly"),
    "quiet": ("quietly", "softly", "stealthily", "silently", "sneakily", "secretly", "sneaky", "silent", "quiet"),
    "graceful": (
        "gracefully",
        "elegantly",
        "majestically",
        "graceful",
        "elegant",
        "majestic",
        "daintily",
        "delicately",
    ),
    "heavy": ("heavily", "heavy footed", "clumsily", "clumsy", "awkwardly", "lumberingly", "awkward"),
    "light": ("lightly", "light footed", "nimbly", "bouncily", "nimble", "airily", "bouncy"),
    "playful": ("playfully", "playful", "mischievously", "funnily", "funny", "goofily", "goofy", "sillily", "silly"),
    "confident": ("confidently", "confident", "boldly", "bravely", "with confidence", "brave", "cool", "coolly"),
    "smooth": ("smoothly", "fluidly", "fluently"),
    "wild": ("wildly", "dramatically", "chaotically", "violently", "crazily", "crazy", "madly", "hysterically"),
    "strong": ("powerfully", "forcefully", "hard", "with force", "mightily", "with power", "strongly"),
    "weak": ("weakly", "feebly", "weak"),
    "injured": ("injured", "wounded", "hurt", "in pain", "painfully", "with an injured leg", "with a hurt leg"),
    "stiff": ("stiffly", "robotically", "mechanically", "rigidly", "woodenly", "robotic", "stiff", "jerkily"),
    "formal": ("politely", "formally", "respectfully", "solemnly"),
}
"""In which mood or manner."""

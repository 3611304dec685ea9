"""Everyday names of characters: which built-in species a noun means, or comes nearest to.

Species and families are plain words here; a test holds them against the zoo.
"""

from typing import Literal

BodyFamily = Literal["quadruped", "lizard", "dragon", "humanoid", "biped", "insect", "spider"]
FAMILIES: tuple[BodyFamily, ...] = ("quadruped", "lizard", "dragon", "humanoid", "biped", "insect", "spider")
"""How bodies are built."""
HELD_OUT_SPECIES = ("fox", "tiger", "horse", "camel", "pig", "child", "velociraptor", "ostrich")
"""Never shown to what learns (the pocket prior, the pose space): they tell how it does on bodies that it never saw."""

NAMES: dict[str, tuple[str, ...]] = {
    "fox": ("fox", "vixen"),
    "dog": ("dog", "puppy", "hound", "doggy"),
    "cat": ("cat", "kitten", "kitty", "house cat"),
    "lion": ("lion", "lioness"),
    "tiger": ("tiger", "tigress"),
    "horse": ("horse", "stallion", "mare"),
    "cow": ("cow", "cattle", "dairy cow"),
    "pig": ("pig", "hog", "swine", "piglet"),
    "sheep": ("sheep", "lamb", "ewe"),
    "deer": ("deer", "stag", "doe"),
    "elephant": ("elephant", "african elephant"),
    "giraffe": ("giraffe",),
    "rhino": ("rhino", "rhinoceros"),
    "camel": ("camel", "dromedary"),
    "rabbit": ("rabbit", "bunny", "hare"),
    "turtle": ("turtle", "tortoise"),
    "crocodile": ("crocodile", "alligator", "croc"),
    "dragon": ("dragon",),
    "human": ("human", "person", "man", "woman", "guy"),
    "child": ("child", "kid", "boy", "girl", "toddler"),
    "robot": ("robot", "android", "droid"),
    "astronaut": ("astronaut", "spaceman", "cosmonaut"),
    "ostrich": ("ostrich",),
    "penguin": ("penguin", "emperor penguin"),
    "t_rex": ("t rex", "tyrannosaurus", "trex", "tyrannosaur", "tyrannosaurus rex"),
    "velociraptor": ("velociraptor", "raptor"),
    "kangaroo": ("kangaroo", "wallaby"),
    "ant": ("ant",),
    "spider": ("spider", "tarantula"),
}
"""The names that mean exactly this species, its usual name first."""

KIN: dict[str, tuple[str, ...]] = {
    "fox": ("jackal", "coyote", "fennec", "raccoon", "red panda", "mongoose"),
    "dog": (
        *("wolf", "werewolf", "bear", "polar bear", "grizzly", "panda", "hyena", "dingo", "husky", "poodle", "beagle"),
        *("dachshund", "corgi", "greyhound", "labrador", "retriever", "terrier", "bulldog", "shepherd dog"),
        *("badger", "wolverine", "otter", "beaver", "anteater", "sloth", "bear cub", "wolf cub"),
    ),
    "cat": ("lynx", "bobcat", "ocelot", "caracal", "ferret", "weasel", "tomcat", "marten", "skunk", "meerkat", "lemur"),
    "lion": ("lion cub", "sphinx", "griffin", "gryphon", "chimera"),
    "tiger": ("leopard", "snow leopard", "panther", "jaguar", "cheetah", "puma", "cougar", "big cat", "sabertooth"),
    "horse": ("pony", "foal", "donkey", "mule", "zebra", "unicorn", "steed", "colt", "mustang", "okapi"),
    "cow": ("bull", "ox", "calf", "buffalo", "bison", "yak", "water buffalo", "heifer", "gnu", "wildebeest"),
    "pig": ("boar", "wild boar", "warthog", "tapir", "capybara", "sow", "peccary"),
    "sheep": ("goat", "ram", "mountain goat", "ibex", "kid goat"),
    "deer": ("fawn", "elk", "moose", "reindeer", "caribou", "antelope", "gazelle", "impala", "buck", "roe", "oryx"),
    "elephant": ("mammoth", "mastodon", "tusker", "elephant calf"),
    "giraffe": ("brachiosaurus", "diplodocus", "sauropod", "brontosaurus", "apatosaurus"),
    "rhino": ("hippo", "hippopotamus", "triceratops", "stegosaurus", "ankylosaurus"),
    "camel": ("llama", "alpaca", "bactrian camel", "vicuna"),
    "rabbit": (
        *("mouse", "rat", "hamster", "guinea pig", "squirrel", "chipmunk", "gerbil", "vole", "mole", "hedgehog"),
        *("porcupine", "chinchilla", "marmot", "armadillo", "shrew", "rodent"),
    ),
    "turtle": ("terrapin", "sea turtle", "snapping turtle"),
    "crocodile": (
        *("gecko", "iguana", "komodo dragon", "chameleon", "salamander", "newt", "monitor lizard", "caiman"),
        *("skink", "toad", "frog", "axolotl", "bearded dragon", "basilisk"),
    ),
    "dragon": ("wyvern", "drake", "pegasus", "hippogriff", "gargoyle", "hydra"),
    "human": (
        *("knight", "soldier", "zombie", "warrior", "wizard", "witch", "ninja", "samurai", "pirate", "king", "queen"),
        *("prince", "princess", "dancer", "athlete", "boxer", "runner", "farmer", "doctor", "nurse", "chef", "clown"),
        *("policeman", "cowboy", "viking", "elf", "orc", "ogre", "troll", "giant", "vampire", "skeleton", "mummy"),
        *("ghost", "superhero", "hero", "heroine", "villain", "monk", "gorilla", "ape", "monkey", "chimpanzee"),
        *("orangutan", "bigfoot", "yeti", "minotaur", "demon", "angel", "teacher", "student", "businessman"),
        *("lady", "gentleman", "archer", "barbarian", "mannequin", "adult", "people", "grandmother", "grandfather"),
        *("guard", "player", "actor", "sailor", "caveman", "goddess", "god", "scientist", "worker", "builder"),
        *("jogger", "ballerina", "gymnast", "thief", "acrobat", "swimmer", "climber", "walker", "skater", "fighter"),
        *("burglar", "robber", "spy", "assassin", "hunter", "fisherman", "wrestler", "footballer", "goalkeeper"),
        *("soccer player", "basketball player", "martial artist", "cheerleader", "waiter", "waitress", "bandit"),
        *("mother", "father", "mom", "dad", "brother", "sister", "friend", "grandma", "grandpa", "bride", "priest"),
        *("nun", "gladiator", "sorcerer", "sorceress", "mage", "paladin", "druid", "cop", "police officer", "officer"),
        *("detective", "agent", "musician", "singer", "guitarist", "drummer", "conductor", "magician", "mime"),
        *("tourist", "traveler", "hiker", "skier", "surfer", "cyclist", "biker", "rider", "driver", "mechanic"),
        *("carpenter", "painter", "artist", "lawyer", "boss", "manager", "office worker", "fellow", "dude", "bloke"),
        *("lad", "blacksmith", "lumberjack", "miner", "gardener", "drunkard", "beggar", "patient", "speaker"),
        *("tightrope walker", "karate master", "ballet dancer", "fencer", "swordsman", "actress", "servant", "slave"),
        *("superheroine", "werecat", "mermaid", "fairy", "satyr", "faun", "harpy", "cultist", "peasant", "nobleman"),
        *("stuntman", "stranger", "jester", "rogue", "wanderer", "butler", "maid", "passenger", "customer", "shopper"),
    ),
    "child": ("baby", "dwarf", "goblin", "gnome", "hobbit", "imp", "doll", "puppet", "teenager", "leprechaun"),
    "robot": ("mech", "cyborg", "automaton", "golem", "machine", "terminator", "stormtrooper", "snowman"),
    "astronaut": ("diver", "spacewoman", "fireman", "firefighter", "alien", "pilot"),
    "ostrich": (
        *("emu", "flamingo", "crane", "stork", "heron", "rhea", "cassowary", "turkey", "peacock", "goose", "swan"),
        *("chicken", "hen", "rooster", "eagle", "hawk", "owl", "crow", "raven", "pigeon", "dove", "chocobo", "dodo"),
        *("seagull", "gull", "pelican", "vulture", "falcon", "parrot", "sparrow", "robin", "chick", "ibis", "quail"),
    ),
    "penguin": ("duck", "duckling", "puffin", "platypus"),
    "t_rex": ("allosaurus", "carnotaurus", "spinosaurus", "theropod", "godzilla", "giganotosaurus"),
    "velociraptor": ("deinonychus", "compsognathus", "dromaeosaur", "gallimimus", "utahraptor"),
    "kangaroo": ("jerboa", "potoroo"),
    "ant": (
        *("beetle", "ladybug", "ladybird", "cockroach", "cricket", "grasshopper", "locust", "bee", "wasp", "hornet"),
        *("bumblebee", "mantis", "praying mantis", "termite", "scarab", "stick insect", "mosquito", "butterfly"),
        *("moth", "dragonfly", "earwig", "flea", "weevil", "housefly", "firefly", "louse", "roach"),
        *("a fly", "the fly"),
    ),
    "spider": (
        "scorpion",
        "crab",
        "tick",
        "mite",
        "black widow",
        "wolf spider",
        "daddy longlegs",
        "octopus",
        "lobster",
    ),
}
"""Other creatures, under the built-in species whose body comes nearest."""

GROUPS: dict[str, BodyFamily] = {
    "four legged": "quadruped",
    "quadruped": "quadruped",
    "mammal": "quadruped",
    "livestock": "quadruped",
    "lizard": "lizard",
    "reptile": "lizard",
    "winged beast": "dragon",
    "winged creature": "dragon",
    "winged monster": "dragon",
    "humanoid": "humanoid",
    "two legged character": "humanoid",
    "two legged figure": "humanoid",
    "biped": "biped",
    "two legged": "biped",
    "bird": "biped",
    "dinosaur": "biped",
    "marsupial": "biped",
    "insect": "insect",
    "bug": "insect",
    "six legged": "insect",
    "arachnid": "spider",
    "eight legged": "spider",
}
"""Words that say only how a body is built."""

TYPICAL: dict[str, str] = {
    "quadruped": "dog",
    "lizard": "crocodile",
    "dragon": "dragon",
    "humanoid": "human",
    "biped": "ostrich",
    "insect": "ant",
    "spider": "spider",
}
"""The species that stands for a family when only the family is named."""

_FAMILY_MEMBERS: dict[BodyFamily, tuple[str, ...]] = {
    "quadruped": (
        *("fox", "dog", "cat", "lion", "tiger", "horse", "cow", "pig", "sheep", "deer", "elephant", "giraffe", "rhino"),
        *("camel", "rabbit", "turtle"),
    ),
    "lizard": ("crocodile",),
    "dragon": ("dragon",),
    "humanoid": ("human", "child", "robot", "astronaut"),
    "biped": ("ostrich", "penguin", "t_rex", "velociraptor", "kangaroo"),
    "insect": ("ant",),
    "spider": ("spider",),
}

HEAVY = ("elephant", "rhino")
"""Species whose fastest gait is a quick walk."""
HOPPERS = ("kangaroo",)
"""Species that have no walk: both legs go at once."""
FLIGHTLESS = ("ostrich", "penguin", "emu", "chicken", "hen", "rooster", "chick", "rhea", "cassowary", "dodo", "chocobo")
"""Who has wings and does not fly."""

SWIMMING_MAMMALS = frozenset(
    "whale beluga dolphin porpoise orca narwhal seal leopardseal walrus manatee dugong otter mermaid".split()
)
"""Who beats its tail up and down in the water; fish beat theirs to the sides."""

PRONOUNS: tuple[str, ...] = ("he", "she", "someone", "somebody", "anyone", "everyone", "everybody", "we", "i")
"""Words for a person where no noun names one."""

BODILESS: dict[str, tuple[str, ...]] = {
    "fish": (
        *("fish", "shark", "whale", "dolphin", "salmon", "goldfish", "orca", "ray", "manta ray", "eel", "carp", "tuna"),
        *("seahorse", "jellyfish", "koi", "clownfish", "piranha", "trout"),
    ),
    "snake": ("snake", "cobra", "python", "viper", "worm", "serpent", "rattlesnake", "anaconda", "caterpillar", "slug"),
    "seal": ("seal", "walrus", "sea lion"),
    "bat": ("bat", "vampire bat", "pterodactyl", "pterosaur"),
}
"""Creatures that no built-in body comes near to, by how they are built."""

GENERIC: tuple[str, ...] = ("creature", "animal", "character", "figure", "being", "monster", "beast", "critter")
"""Words for any body."""

_IRREGULAR = {
    "wolf": "wolves",
    "werewolf": "werewolves",
    "mouse": "mice",
    "goose": "geese",
    "ox": "oxen",
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "persons",
    "calf": "calves",
    "elf": "elves",
    "louse": "lice",
    "guy": "guys",
    "boy": "boys",
    "monkey": "monkeys",
    "donkey": "donkeys",
    "turkey": "turkeys",
    "hero": "heroes",
    "mosquito": "mosquitoes",
    "buffalo": "buffaloes",
    "thief": "thieves",
    "fish": "fish",
    "shark": "sharks",
    "dwarf": "dwarves",
}


def plural(noun: str) -> str:
    """The plural of an English noun; only its last word changes, and -man becomes -men."""
    *before, last = noun.split()
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    elif last.endswith("man") and last not in ("human",):
        last = last[:-3] + "men"
    elif last.endswith(("s", "x", "ch", "sh")):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return " ".join((*before, last))


def family_of(species: str) -> BodyFamily:
    """How a built-in species is built."""
    return next(family for family, names in _FAMILY_MEMBERS.items() if species in names)


SPECIES_OF: dict[str, str] = {
    form: species
    for table in (KIN, NAMES)
    for species in NAMES
    for noun in table[species]
    for form in (noun, plural(noun))
}
"""Every known noun, singular and plural, with the built-in species that it means or comes nearest to."""

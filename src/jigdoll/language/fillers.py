"""Words that hold a sentence together, set a scene or name things: none of them moves a character."""

DETERMINERS = (
    *("a", "an", "the", "one", "some", "this", "that", "its", "his", "her", "their", "my", "your", "our", "another"),
    *("these", "those", "two", "three", "four", "five", "each", "every", "many", "several", "couple of", "both", "any"),
    *("no", "all"),
)
"""A noun follows."""

LIGHT_VERBS = (
    *("do", "perform", "make", "take", "give", "have", "execute", "try", "attempt", "start", "begin", "continue"),
    *("keep", "show", "get", "break", "burst", "practice", "demonstrate", "finish", "end", "let", "want", "decide"),
    *("need", "like", "seem", "appear", "use", "become", "launch", "deliver", "love", "help", "manage", "prepare"),
)
"""Verbs that leave it to another word to say what is done: "does a backflip"."""

PREPOSITIONS = ("in", "at", "into", "for", "with", "by", "then")
"""What an action may follow as a noun: "at a trot", "for a swim"."""

NEGATORS = ("without", "not", "never", "doesnt", "dont", "cannot", "cant", "isnt", "instead of", "didnt", "wont", "no")
"""The action that follows is not done."""

FILLERS = (
    *("it", "they", "them", "him", "is", "are", "be", "was", "were", "been", "am", "who", "which", "and"),
    *("with", "of", "in", "on", "at", "to", "from", "by", "for", "over", "across", "along", "around", "through", "up"),
    *("down", "while", "as", "into", "toward", "towards", "very", "really", "quite", "just", "bit", "little bit"),
    *("ahead", "forward", "forwards", "straight", "away", "past", "off", "forth", "back", "back and forth", "about"),
    *("like",),
    *("then", "video", "animation", "clip", "film", "footage", "shot", "cycle", "loop", "scene", "view", "side view"),
    *("camera", "gait", "motion", "movement", "pace", "speed", "way", "ground", "floor", "checkered floor", "grass"),
    *("field", "meadow", "forest", "street", "road", "desert", "sand", "snow", "beach", "park", "studio", "room"),
    *("plain background", "background", "air", "sky", "place", "in place", "spot", "on the spot", "line", "circle"),
    *("legs", "leg", "feet", "foot", "paw", "paws", "hand", "hands", "arm", "arms", "wing", "wings", "tail", "head"),
    *("body", "fur", "tracking shot", "white background", "rendering", "render", "model", "showing", "shows", "seen"),
    *("scenery", "path", "hill", "day", "sun", "sunny", "himself", "herself", "itself", "jungle", "moon", "mountain"),
    *("mountains", "savannah", "savanna", "garden", "river", "water", "lake", "city", "village", "house", "farm"),
    *("night", "morning", "evening", "rain", "wind", "ice", "stage", "track", "arena", "castle", "bridge", "hall"),
    *("lawn", "pasture", "prairie", "valley", "swamp", "cave", "island", "outdoors", "outside", "inside", "woods"),
    *("trees", "stone", "stones", "sidewalk", "pavement", "looping", "seamless", "please", "animate", "me", "new"),
    *("again",),
    *("near", "beside", "between", "under", "behind", "can", "there", "step by step", "high", "low", "highly"),
    *("after", "before", "finally", "first", "next", "later", "once", "until", "when", "where", "but", "or", "so"),
    *("also", "too", "now", "here", "still", "even", "only", "almost", "more", "less", "much", "against", "onto"),
    *("out", "upon", "above", "below", "beneath", "within", "around the corner", "in front of", "next to", "front"),
    *("left and right", "right away", "right now", "after that", "as if", "as though", "such", "couple", "pair"),
    *("pair of", "group", "group of", "kind", "sort", "pose"),
    *("time", "moment", "second", "seconds", "minute", "minutes", "while", "will", "would", "should", "could", "may"),
    *("must", "might", "has", "how", "what", "same", "other", "others", "something", "nothing", "anything", "own"),
    *("shoulder", "shoulders", "knee", "knees", "hip", "hips", "neck", "back legs", "hind legs", "front legs", "hind"),
    *("fist", "fists", "finger", "fingers", "chest", "belly", "face", "eyes", "eye", "ears", "ear", "mouth", "jaws"),
    *("shirt", "dress", "hat", "suit", "armor", "armour", "coat", "trousers", "shoes", "boots", "cape", "mask"),
    *("side", "sides", "top", "bottom", "middle", "center", "corner", "edge", "end", "start", "beginning", "joy"),
    *("music", "rhythm", "beat", "steps", "stairs", "staircase", "upstairs", "downstairs", "ladder", "wall", "fence"),
    *("tree", "bush", "rock", "rocks", "log", "puddle", "pond", "sea", "ocean", "pool", "mud", "dirt", "gym", "ring"),
    *("battle", "battlefield", "war", "dungeon", "school", "office", "kitchen", "home", "store", "market", "space"),
    *("character animation", "animated", "game", "character sheet", "3d model", "mid air", "midair"),
    *("pain", "fear", "anger", "style", "manner", "fashion", "mood", "long", "far", "close", "nearby", "alone"),
    *("together", "slightly", "somewhat", "extremely", "super", "rather", "fully", "completely", "all the way"),
    *("yes", "ok", "dead", "alive", "awake", "asleep", "empty", "full", "ready", "shaped", "sized"),
)
"""Words that hold a sentence together or set a scene."""

THINGS = (
    *("ball", "box", "sword", "shield", "branch", "goal", "axe", "gun", "rifle", "pistol", "bow", "arrow"),
    *("spear", "staff", "stick", "club", "bat", "hammer", "knife", "dagger", "blade", "weapon", "rope"),
    *("chair", "table", "bench", "bed", "sofa", "couch", "door", "window", "car", "bike", "bicycle", "boat", "ship"),
    *("book", "phone", "computer", "cup", "glass", "bottle", "plate", "food", "meal", "apple", "banana", "bread"),
    *("meat", "bone", "carrot", "leaves", "leaf", "flower", "hay", "coin", "gold", "treasure"),
    *("bag", "backpack", "suitcase", "basket", "bucket", "barrel", "crate", "cart", "wagon", "wheel", "flag", "torch"),
    *("lamp", "light", "lantern", "fire", "fireball", "spell", "magic", "wand", "potion", "key", "letter"),
    *("guitar", "piano", "drums", "drum", "violin", "flute", "trumpet", "football", "basketball", "racket"),
    *("golf club",),
    *("blow", "attack", "enemy", "opponent", "target", "prey", "victim"),
    *("bullet", "grenade", "bomb", "obstacle", "hurdle", "gap", "hole", "fence", "gate", "pole", "cliff"),
    *("button", "lever", "crowd", "audience", "camera man", "paper", "pen", "umbrella", "cigarette", "coffee", "tea"),
    *("beer", "wine", "cake", "snack", "dinner", "lunch", "breakfast", "toy", "doll", "mirror", "picture", "song"),
    *("weight", "object", "thing", "item", "stuff", "broom", "shovel", "pickaxe", "hook"),
    *("watch", "teddy bear", "nut", "cane", "pot", "pan", "pile", "trunk", "cannon", "wire", "rum", "peel", "hoop"),
    *("wood", "net", "lasso", "frisbee", "dart", "snowball", "pillow", "blanket", "tennis ball"),
)
"""What is held, hit, eaten or met."""

LOOKS = (
    *("old", "wild", "friendly", "fluffy", "furry", "shaggy", "spotted", "striped", "scaly", "cartoon", "low poly"),
    *("realistic", "grown", "handsome", "pretty", "beautiful", "ugly", "strange", "scary", "clay", "colourful"),
    *("armored", "colorful", "domestic", "shiny", "metal", "wooden", "plain", "simple", "3d", "hairy", "feathered"),
    *("bright", "dappled", "ginger", "blond", "stylized", "medium sized", "winged", "tailed", "bearded", "armed"),
    *("maned", "blonde", "bald", "evil", "magical", "mighty", "female", "male", "hooded", "masked", "dressed", "naked"),
    *("hungry", "thirsty", "lonely", "lost", "elderly", "middle aged", "teenage", "athletic", "undead", "mechanical"),
    *("mythical", "fantasy", "ancient", "medieval", "modern", "wet", "dirty", "broken", "fallen", "curious", "loud"),
    *("good", "bad", "nice", "powerful", "noble", "royal", "arctic", "polar", "stray"),
)
"""How something looks, beside the words of `looks`: no matter to its motion."""

"""How long the legs of animals are: the same gait is slower on longer legs."""

_METRES = {
    0.03: "mouse rat olm frog hamster lizard gecko chick robin blackbird bird sparrow",
    0.08: "rabbit hare bunny squirrel ferret guinea opossum iguana chicken crocodile turtle tortoise hedgehog kitten",
    0.16: "otter beaver badger monitor turkey goose duck pug dachshund raccoon alligator penguin owl eagle parrot",
    0.25: "cat fox beagle corgi pumba piglet jackal lynx puppy monkey fawn lamb velociraptor oviraptor raptor",
    0.4: "dog husky wolf sleddog pig goat sheep hyena leopard snowleopard wildboar boar coyote tapir lycaenops",
    0.55: "lion lioness tiger smilodon bear panda deer donkey reindeer entelodon labrador panther kangaroo child",
    0.8: "horse wildhorse zebra cow bull bison yak muskox oryx gnu llama polarbear ostrich nandu hippo pony unicorn"
    " carnotaurus gastornis ridehorse rideox man woman person human",
    1.1: "camel moose rhino woollyrhino ankylosaurus nigersaurus",
    1.5: "elephant mammoth deinotherium giraffe stegosaurus triceratops dragon wyvern",
    2.2: "apatosaurus brontosaurus diplodocus brachiosaurus tyrannosaurus trex t_rex",
}
LEG_LENGTHS: dict[str, float] = {name: metres for metres, names in _METRES.items() for name in names.split()}
"""From the hip to the ground, roughly, of who is called so [m]; who is not here is of any size."""
SLOWEST, FASTEST = 0.5, 1.6
"""Nobody's tempo is changed by more than this on account of size."""


def tempo_by_size(who_moved: str | None, who_moves: str | None) -> float:
    """How much faster a gait is on another animal's legs: walks are alike where v^2 / (g L) is (Alexander), so that
    times go with the square root of lengths; 1 where a size is not known."""
    before, now = LEG_LENGTHS.get(who_moved or ""), LEG_LENGTHS.get(who_moves or "")
    if before is None or now is None:
        return 1.0
    return min(max((before / now) ** 0.5, SLOWEST), FASTEST)

"""Which sculptor, palette and brush each species has."""

from collections.abc import Callable
from dataclasses import dataclass

from jigdoll.zoo.bodies import arthropods, bipeds, birds, carnivores, farm, people, quadrupeds, reptiles, suits, wild
from jigdoll.zoo.paint import Canvas
from jigdoll.zoo.sculpt import Sculptor


@dataclass(frozen=True)
class Body:
    """How a species looks."""

    sculpt: Callable[[Sculptor], None]
    paint: Callable[[Canvas], None]
    vertices: int = 12000
    """About how many the full mesh has."""
    lens: float = 0.75
    """Radius of the finely meshed ball around the head, in head lengths."""
    shrink: float = 0.42
    """Cell size there, as a share of the body's."""


BODIES: dict[str, Body] = {
    "fox": Body(carnivores.sculpt_fox, carnivores.paint_fox),
    "dog": Body(carnivores.sculpt_dog, carnivores.paint_dog),
    "cat": Body(carnivores.sculpt_cat, carnivores.paint_cat),
    "lion": Body(carnivores.sculpt_lion, carnivores.paint_lion),
    "tiger": Body(carnivores.sculpt_tiger, carnivores.paint_tiger),
    "horse": Body(farm.sculpt_horse, farm.paint_horse),
    "cow": Body(farm.sculpt_cow, farm.paint_cow),
    "pig": Body(farm.sculpt_pig, farm.paint_pig),
    "sheep": Body(farm.sculpt_sheep, farm.paint_sheep),
    "deer": Body(wild.sculpt_deer, wild.paint_deer),
    "giraffe": Body(wild.sculpt_giraffe, wild.paint_giraffe),
    "camel": Body(wild.sculpt_camel, wild.paint_camel),
    "elephant": Body(quadrupeds.sculpt_elephant, quadrupeds.paint_elephant),
    "rhino": Body(quadrupeds.sculpt_rhino, quadrupeds.paint_rhino),
    "rabbit": Body(quadrupeds.sculpt_rabbit, quadrupeds.paint_rabbit),
    "turtle": Body(quadrupeds.sculpt_turtle, quadrupeds.paint_turtle),
    "human": Body(people.sculpt_human, people.paint_human, vertices=13500, lens=0.55, shrink=0.22),
    "child": Body(people.sculpt_child, people.paint_child, vertices=13000, lens=0.55, shrink=0.25),
    "robot": Body(suits.sculpt_robot, suits.paint_robot, lens=0.7, shrink=0.33),
    "astronaut": Body(suits.sculpt_astronaut, suits.paint_astronaut, lens=0.7, shrink=0.33),
    "ostrich": Body(birds.sculpt_ostrich, birds.paint_ostrich),
    "penguin": Body(birds.sculpt_penguin, birds.paint_penguin),
    "t_rex": Body(bipeds.sculpt_t_rex, bipeds.paint_t_rex),
    "velociraptor": Body(bipeds.sculpt_velociraptor, bipeds.paint_velociraptor),
    "kangaroo": Body(bipeds.sculpt_kangaroo, bipeds.paint_kangaroo),
    "crocodile": Body(reptiles.sculpt_crocodile, reptiles.paint_crocodile),
    "dragon": Body(reptiles.sculpt_dragon, reptiles.paint_dragon, vertices=12600),
    "ant": Body(arthropods.sculpt_ant, arthropods.paint_ant),
    "spider": Body(arthropods.sculpt_spider, arthropods.paint_spider),
}

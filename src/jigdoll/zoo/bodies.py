"""Which sculptor, palette and brush each species has."""

from collections.abc import Callable
from dataclasses import dataclass

from jigdoll.zoo import bodies_beasts as beasts
from jigdoll.zoo import bodies_bipeds as bipeds
from jigdoll.zoo import bodies_carnivores as carnivores
from jigdoll.zoo import bodies_hoofed as hoofed
from jigdoll.zoo import bodies_humanoids as humanoids
from jigdoll.zoo import bodies_quadrupeds as quadrupeds
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
    "horse": Body(hoofed.sculpt_horse, hoofed.paint_horse),
    "cow": Body(hoofed.sculpt_cow, hoofed.paint_cow),
    "pig": Body(hoofed.sculpt_pig, hoofed.paint_pig),
    "sheep": Body(hoofed.sculpt_sheep, hoofed.paint_sheep),
    "deer": Body(hoofed.sculpt_deer, hoofed.paint_deer),
    "giraffe": Body(hoofed.sculpt_giraffe, hoofed.paint_giraffe),
    "camel": Body(hoofed.sculpt_camel, hoofed.paint_camel),
    "elephant": Body(quadrupeds.sculpt_elephant, quadrupeds.paint_elephant),
    "rhino": Body(quadrupeds.sculpt_rhino, quadrupeds.paint_rhino),
    "rabbit": Body(quadrupeds.sculpt_rabbit, quadrupeds.paint_rabbit),
    "turtle": Body(quadrupeds.sculpt_turtle, quadrupeds.paint_turtle),
    "human": Body(humanoids.sculpt_human, humanoids.paint_human, lens=0.7, shrink=0.33),
    "child": Body(humanoids.sculpt_child, humanoids.paint_child, lens=0.7, shrink=0.33),
    "robot": Body(humanoids.sculpt_robot, humanoids.paint_robot, lens=0.7, shrink=0.33),
    "astronaut": Body(humanoids.sculpt_astronaut, humanoids.paint_astronaut, lens=0.7, shrink=0.33),
    "ostrich": Body(bipeds.sculpt_ostrich, bipeds.paint_ostrich),
    "penguin": Body(bipeds.sculpt_penguin, bipeds.paint_penguin),
    "t_rex": Body(bipeds.sculpt_t_rex, bipeds.paint_t_rex),
    "velociraptor": Body(bipeds.sculpt_velociraptor, bipeds.paint_velociraptor),
    "kangaroo": Body(bipeds.sculpt_kangaroo, bipeds.paint_kangaroo),
    "crocodile": Body(beasts.sculpt_crocodile, beasts.paint_crocodile),
    "dragon": Body(beasts.sculpt_dragon, beasts.paint_dragon, vertices=12600),
    "ant": Body(beasts.sculpt_ant, beasts.paint_ant),
    "spider": Body(beasts.sculpt_spider, beasts.paint_spider),
}

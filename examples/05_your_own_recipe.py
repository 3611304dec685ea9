"""Distil with your own settings and watch the losses: every part of the recipe can be changed.

    python examples/05_your_own_recipe.py

Here the motion is one value per frame with a smoothness term, as in the AKD paper, instead of harmonics of the stride.
"""

from jigdoll import zoo
from jigdoll.distill.loop import StepReport, distill
from jigdoll.distill.options import AnimateOptions, CurveOptions, LossWeights
from jigdoll.distill.scene import make_scene
from jigdoll.judge import judge
from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.rig.anatomy import anatomy_of


def watch(now: StepReport) -> None:
    """Every tenth step: where it is and what it pays."""
    if now.step % 10 == 0:
        paid = ", ".join(f"{name} {value:.3g}" for name, value in now.losses.items())
        print(f"{now.fraction:4.0%}  {paid}")


dog = zoo.make("dog")
options = AnimateOptions(
    iterations=40, refine_steps=60, curves=CurveOptions(basis="frames"), losses=LossWeights(smooth=3000.0)
)
scene = make_scene(anatomy_of(dog), "a dog walks", open_pocket(), options)
made = distill(scene, watch=watch)
verdict = judge(dog, made.motion)
for pair in verdict.pairs:
    print(f"{pair.kind}: left against right {pair.alternation:+.2f}, swings by {pair.amplitude:.0f} degrees")

"""The judge against truth: reference gaits pass, broken ones are told by exactly the metric that they break."""

import pytest

from jigdoll import zoo
from jigdoll.judge import judge, walk_check
from jigdoll.zoo.gaits import reference_clip


@pytest.mark.parametrize("species", ["fox", "human", "spider"])
def test_a_reference_walk_is_a_walk(species: str) -> None:
    asset = zoo.make(species)
    clip = reference_clip(asset, "walk", seconds=2.0)
    verdict = judge(asset, clip.motion)
    assert walk_check(verdict, verdict).passed
    assert verdict.skate_ratio == 0
    assert verdict.stride_frequency == pytest.approx(1 / clip.period, rel=0.02)

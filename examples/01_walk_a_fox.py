"""Make a built-in fox, let it walk with its reference gait, and write a GLB that Blender and game engines open.

python examples/01_walk_a_fox.py out/fox_walk.glb
"""

import sys

from jigdoll import save, zoo
from jigdoll.zoo.gaits import reference_motion

fox = zoo.make("fox")
walk = reference_motion(fox, "walk", seconds=2.0, fps=24.0, loop=True)
path = save(sys.argv[1] if len(sys.argv) > 1 else "out/fox_walk.glb", fox, walk)
print(f"{path}: {len(fox.mesh.vertices)} vertices, {len(fox.skeleton)} joints, {len(walk)} frames")

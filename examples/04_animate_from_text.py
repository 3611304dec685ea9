"""A character and a sentence in, an animation out, with the built-in prior: one call.

    python examples/04_animate_from_text.py zoo:fox "a fox walks" out/fox

The folder then holds motion.glb, motion.bvh, motion.mp4, a contact sheet and report.html. Stopped half way, the same
command goes on. The first argument may be a file of your own (.glb, .fbx, .obj ...), rigged or not.
"""

import sys

import jigdoll

character = sys.argv[1] if len(sys.argv) > 1 else "zoo:fox"
prompt = sys.argv[2] if len(sys.argv) > 2 else "a fox walks"
made = jigdoll.animate(character, prompt, out=sys.argv[3] if len(sys.argv) > 3 else "out/fox-walks")
print(f"feet slide in {made.verdict.skate_ratio:.0%} of their stance, legs cycle {made.verdict.direction:+.2f}")
for name, path in made.files.items():
    print(f"{name:8} {path}")

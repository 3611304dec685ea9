"""Open a rigged character, make a clip for it, and add the clip to the original file.

    python examples/02_add_a_clip_to_your_file.py character.glb out/nodding.glb

Materials, textures, names and the clips that are there stay as they are. Without arguments a built-in horse is used.
"""

import sys
from dataclasses import replace

import torch

from jigdoll import load, save
from jigdoll.kinematics import rest_pose, rest_transforms
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_inverse, quaternion_multiply, rotvec_to_quaternion
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import Motion

asset = load(sys.argv[1] if len(sys.argv) > 1 else "zoo:horse")
limbs = {limb.kind: limb for limb in find_limbs(asset.skeleton)}
neck = limbs["head"].joints[0]

# Turn the neck about the world's X axis: conjugate by the joint's rest orientation to get its local rotation.
frames = 48
angle = 0.35 * torch.sin(torch.linspace(0, 2 * torch.pi, frames))
nod = rotvec_to_quaternion(torch.stack([angle, 0 * angle, 0 * angle], -1))
rest = matrix_to_quaternion(rest_transforms(asset.skeleton)[neck, :3, :3]).expand(frames, 4)
pose = rest_pose(asset.skeleton, frames=frames)
rotations = pose.rotations.clone()
rotations[:, neck] = quaternion_multiply(quaternion_multiply(quaternion_inverse(rest), nod), rest)

motion = Motion(replace(pose, rotations=rotations), fps=24.0, name="nod")
path = save(sys.argv[2] if len(sys.argv) > 2 else "out/nodding.glb", asset, motion)
print(f"{path}: the clip 'nod' turns {asset.skeleton.names[neck]}")

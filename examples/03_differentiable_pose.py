"""Find the joint angles that put a foot on a point, by gradient descent through forward kinematics.

    python examples/03_differentiable_pose.py

The same gradients flow through skinning and the splat rasterizer.
"""

import torch

from jigdoll import zoo
from jigdoll.kinematics import forward
from jigdoll.math.rotations import compound_to_quaternion
from jigdoll.types import Pose

skeleton = zoo.make("human").skeleton
toe = skeleton.index("left_toe")
leg = [skeleton.index(name) for name in ("left_hip", "left_knee", "left_ankle")]
target = torch.tensor([0.1, 0.35, 0.45])

angles = torch.zeros(len(skeleton), 3, requires_grad=True)
optimizer = torch.optim.Adam([angles], lr=0.05)
free = torch.zeros(len(skeleton), 1)
free[leg] = 1.0
for _step in range(200):
    pose = Pose(torch.zeros(3), compound_to_quaternion(angles * free, skeleton.axes))
    miss = (forward(skeleton, pose)[toe, :3, 3] - target).norm()
    optimizer.zero_grad()
    miss.backward()
    optimizer.step()
print(f"the toe misses its target by {float(miss.detach()) * 1000:.1f} mm")

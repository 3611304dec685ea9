"""Linear blend skinning of any points (AKD Eq. 5)."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.rig.kinematics import skin_transforms
from jigdoll.types import Pose, RiggedAsset, Weights


def deform_reference(
    points: Float[Tensor, "points 3"], weights: Weights, transforms: Float[Tensor, "*batch joints 4 4"]
) -> Float[Tensor, "*batch points 3"]:
    """Skinning by dense products: phi(x) = sum_i w_i (R_i x + T_i). Exact and slow, the truth for `deform`."""
    dense = weights.dense(transforms.shape[-3])
    blended = torch.einsum("pj,...jab->...pab", dense, transforms[..., :3, :])
    return (blended[..., :3] @ points[:, :, None])[..., 0] + blended[..., 3]


deform = deform_reference


def deform_mesh(asset: RiggedAsset, pose: Pose) -> Float[Tensor, "*batch vertices 3"]:
    """The asset's vertices in a pose [m], world."""
    return deform(asset.mesh.vertices, asset.weights, skin_transforms(asset.skeleton, pose))

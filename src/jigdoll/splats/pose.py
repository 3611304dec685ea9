"""Splats that follow a skeleton: AKD Eq. 2 with the skinning of Eq. 5.

phi(x) = sum_i w_i (R_i x + T_i), so grad phi = sum_i w_i R_i: a blend of rotations, in general not a rotation itself.
A kernel moves to phi(x) and its covariance becomes grad_phi Sigma grad_phi^T.
"""

from typing import Any, no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.kinematics import skin_transforms
from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.skin.threads import on_torch_threads
from jigdoll.types import Gaussians, Pose, Skeleton, SkinnedGaussians, Weights


def pose_splats(splats: SkinnedGaussians, skeleton: Skeleton, pose: Pose) -> Gaussians:
    """The splats as they stand in a pose, or in each pose of a batch; differentiable in the pose and in the splats."""
    return pose_by_transforms(splats, skin_transforms(skeleton, pose))


def rest_splats(splats: SkinnedGaussians) -> Gaussians:
    """The splats as they stand at rest."""
    return Gaussians(splats.means, covariances(splats.quats, splats.scales), splats.opacities, splats.colors)


def pose_by_transforms(splats: SkinnedGaussians, transforms: Float[Tensor, "*batch joints 4 4"]) -> Gaussians:
    """The splats moved by skin transforms (T_world_joint @ inverse(T_world_joint at rest)), compiled on a CPU."""
    weights = splats.weights
    if weights.values.shape[0] != splats.means.shape[0]:
        raise RigError(f"{weights.values.shape[0]} rows of weights for {splats.means.shape[0]} splats")
    dtype = torch.promote_types(splats.means.dtype, transforms.dtype)
    if splats.means.device.type != "cpu" or dtype not in (torch.float32, torch.float64):
        return pose_reference(splats, transforms)
    batch, num_joints, count = transforms.shape[:-3], transforms.shape[-3], splats.means.shape[0]
    if weights.joints.numel() and not 0 <= int(weights.joints.min()) <= int(weights.joints.max()) < num_joints:
        raise RigError(f"the splats' weights name a joint outside the {num_joints} that have transforms")
    rows = transforms[..., :3, :].to(dtype).reshape(-1, num_joints, 12)
    rest = covariances(splats.quats, splats.scales).to(dtype)
    moved: Any = _Pose.apply(splats.means.to(dtype), rest, weights.joints, weights.values.to(dtype), rows)
    means, posed = moved
    return Gaussians(
        means.reshape(*batch, count, 3), posed.reshape(*batch, count, 3, 3), splats.opacities, splats.colors
    )


def pose_reference(splats: SkinnedGaussians, transforms: Float[Tensor, "*batch joints 4 4"]) -> Gaussians:
    """Eq. 2 and 5 written down; exact and slow, the truth for `pose_by_transforms`."""
    blended = torch.einsum("pj,...jab->...pab", splats.weights.dense(transforms.shape[-3]), transforms[..., :3, :])
    grad_phi = blended[..., :3]
    means = (grad_phi @ splats.means[:, :, None])[..., 0] + blended[..., 3]
    rest = covariances_reference(splats.quats, splats.scales)
    return Gaussians(means, grad_phi @ rest @ grad_phi.mT, splats.opacities, splats.colors)


def covariances(
    quats: Float[Tensor, "gaussians 4"], scales: Float[Tensor, "gaussians 3"]
) -> Float[Tensor, "gaussians 3 3"]:
    """Sigma = R S S^T R^T of splats with these axes (quaternions of any length) and standard deviations."""
    if quats.device.type != "cpu" or quats.dtype != scales.dtype or quats.dtype not in (torch.float32, torch.float64):
        return covariances_reference(quats, scales)
    sigma: Any = _Covariances.apply(quats, scales)
    return sigma


def covariances_reference(
    quats: Float[Tensor, "gaussians 4"], scales: Float[Tensor, "gaussians 3"]
) -> Float[Tensor, "gaussians 3 3"]:
    """Sigma in plain torch, the truth for `covariances`."""
    stretched = quaternion_to_matrix(quats) * scales[..., None, :]
    return stretched @ stretched.mT


def select(splats: SkinnedGaussians, keep: Tensor) -> SkinnedGaussians:
    """Some of the splats, by index or mask."""
    return SkinnedGaussians(
        splats.means[keep],
        splats.quats[keep],
        splats.scales[keep],
        splats.opacities[keep],
        splats.colors[keep],
        Weights(splats.weights.joints[keep], splats.weights.values[keep]),
    )


class _Covariances(torch.autograd.Function):
    """The compiled kernels as one differentiable operation."""

    @staticmethod
    def forward(ctx: Any, quats: Tensor, scales: Tensor) -> Tensor:
        ctx.save_for_backward(quats, scales)
        sigma = torch.empty(*scales.shape, 3, dtype=scales.dtype)
        _sigma_forward(_array(quats), _array(scales), sigma.numpy())
        return sigma

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        quats, scales = ctx.saved_tensors
        grad_quats, grad_scales = (torch.empty(t.shape, dtype=t.dtype) for t in (quats, scales))
        arrays = [_array(tensor) for tensor in (quats, scales, grads[0], grad_quats, grad_scales)]
        _sigma_backward(*arrays)
        return grad_quats, grad_scales


class _Pose(torch.autograd.Function):
    """The compiled kernels as one differentiable operation (weights are data, not variables)."""

    @staticmethod
    def forward(
        ctx: Any, means: Tensor, rest: Tensor, joints: Tensor, values: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(means, rest, joints, values, rows)
        frames, count = rows.shape[0], means.shape[0]
        moved = torch.empty(frames, count, 3, dtype=rows.dtype)
        posed = torch.empty(frames, count, 3, 3, dtype=rows.dtype)
        if moved.numel():
            arrays = [_array(tensor) for tensor in (means, rest, joints, values, rows, moved, posed)]
            on_torch_threads(_pose_forward, *arrays)
        return moved, posed

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, Tensor | None]:
        means, rest, joints, values, rows = ctx.saved_tensors
        want_splats = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        grad_rows = torch.zeros_like(rows)
        frames, count = (rows.shape[0], means.shape[0]) if want_splats else (0, 0)
        # One slice per frame, added up afterwards, so that the threads never meet and the sum has one order.
        grad_means = torch.zeros(frames, count, 3, dtype=rows.dtype)
        grad_rest = torch.zeros(frames, count, 3, 3, dtype=rows.dtype)
        if grads[0].numel():
            results = (grad_rows, grad_means, grad_rest)
            arrays = [_array(tensor) for tensor in (means, rest, joints, values, rows, *grads, *results)]
            on_torch_threads(_pose_backward, *arrays)
        if not want_splats:
            return None, None, None, None, grad_rows
        return grad_means.sum(0), grad_rest.sum(0), None, None, grad_rows


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


@numba.njit(cache=True, inline="always")
@no_type_check
def _turn(w, x, y, z, R):
    """The rotation matrix of a unit quaternion."""
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)


@numba.njit(cache=True, error_model="numpy")
@no_type_check
def _sigma_forward(quats, scales, sigma):
    """sigma = M M^T with M = R S."""
    R = np.empty((3, 3), quats.dtype)
    for p in range(quats.shape[0]):
        w, x, y, z = quats[p]
        norm = np.sqrt(w * w + x * x + y * y + z * z)
        _turn(w / norm, x / norm, y / norm, z / norm, R)
        a, b, c = scales[p, 0] ** 2, scales[p, 1] ** 2, scales[p, 2] ** 2
        for i in range(3):
            for j in range(3):
                sigma[p, i, j] = a * R[i, 0] * R[j, 0] + b * R[i, 1] * R[j, 1] + c * R[i, 2] * R[j, 2]


@numba.njit(cache=True, error_model="numpy")
@no_type_check
def _sigma_backward(quats, scales, grad, grad_quats, grad_scales):
    """dL/dM = (G + G^T) M, from there to R and S, from R to the unit quaternion, from there to its length."""
    R, D = np.empty((3, 3), quats.dtype), np.empty((3, 3), quats.dtype)
    for p in range(quats.shape[0]):
        w, x, y, z = quats[p]
        norm = np.sqrt(w * w + x * x + y * y + z * z)
        w, x, y, z = w / norm, x / norm, y / norm, z / norm
        _turn(w, x, y, z, R)
        G = grad[p]
        for k in range(3):
            s = scales[p, k]
            slope = 0 * s
            for i in range(3):
                d = s * ((G[i, 0] + G[0, i]) * R[0, k] + (G[i, 1] + G[1, i]) * R[1, k] + (G[i, 2] + G[2, i]) * R[2, k])
                slope += d * R[i, k]
                D[i, k] = d * s
            grad_scales[p, k] = slope
        xy, xz, yz = D[0, 1] + D[1, 0], D[0, 2] + D[2, 0], D[1, 2] + D[2, 1]
        gw = 2 * (x * (D[2, 1] - D[1, 2]) + y * (D[0, 2] - D[2, 0]) + z * (D[1, 0] - D[0, 1]))
        gx = 2 * (-2 * x * (D[1, 1] + D[2, 2]) + y * xy + z * xz + w * (D[2, 1] - D[1, 2]))
        gy = 2 * (x * xy - 2 * y * (D[0, 0] + D[2, 2]) + z * yz + w * (D[0, 2] - D[2, 0]))
        gz = 2 * (x * xz + y * yz - 2 * z * (D[0, 0] + D[1, 1]) + w * (D[1, 0] - D[0, 1]))
        along = gw * w + gx * x + gy * y + gz * z
        grad_quats[p, 0], grad_quats[p, 1] = (gw - along * w) / norm, (gx - along * x) / norm
        grad_quats[p, 2], grad_quats[p, 3] = (gy - along * y) / norm, (gz - along * z) / norm


@numba.njit(parallel=True, fastmath=True, cache=True, error_model="numpy")
@no_type_check
def _pose_forward(means, rest, joints, values, rows, moved, posed):
    """moved[f, p] = M (x, 1) and posed[f, p] = A Sigma A^T, with M = sum_k w_k T_k = [A | t]."""
    for f in numba.prange(rows.shape[0]):
        M = np.empty(12, rows.dtype)
        for p in range(means.shape[0]):
            for i in range(12):
                M[i] = 0
            for k in range(joints.shape[1]):
                w = values[p, k]
                if w != 0:
                    T = rows[f, joints[p, k]]
                    for i in range(12):
                        M[i] += w * T[i]
            x, y, z = means[p, 0], means[p, 1], means[p, 2]
            s00, s01, s02 = rest[p, 0, 0], rest[p, 0, 1], rest[p, 0, 2]
            s11, s12, s22 = rest[p, 1, 1], rest[p, 1, 2], rest[p, 2, 2]
            to, cov = moved[f, p], posed[f, p]
            a0, a1, a2, b0, b1, b2, c0, c1, c2 = M[0], M[1], M[2], M[4], M[5], M[6], M[8], M[9], M[10]
            to[0] = a0 * x + a1 * y + a2 * z + M[3]
            to[1] = b0 * x + b1 * y + b2 * z + M[7]
            to[2] = c0 * x + c1 * y + c2 * z + M[11]
            p0, p1, p2 = a0 * s00 + a1 * s01 + a2 * s02, a0 * s01 + a1 * s11 + a2 * s12, a0 * s02 + a1 * s12 + a2 * s22
            q0, q1, q2 = b0 * s00 + b1 * s01 + b2 * s02, b0 * s01 + b1 * s11 + b2 * s12, b0 * s02 + b1 * s12 + b2 * s22
            r0, r1, r2 = c0 * s00 + c1 * s01 + c2 * s02, c0 * s01 + c1 * s11 + c2 * s12, c0 * s02 + c1 * s12 + c2 * s22
            cov[0, 0], cov[1, 1], cov[2, 2] = (
                p0 * a0 + p1 * a1 + p2 * a2,
                q0 * b0 + q1 * b1 + q2 * b2,
                r0 * c0 + r1 * c1 + r2 * c2,
            )
            cov[0, 1] = cov[1, 0] = p0 * b0 + p1 * b1 + p2 * b2
            cov[0, 2] = cov[2, 0] = p0 * c0 + p1 * c1 + p2 * c2
            cov[1, 2] = cov[2, 1] = q0 * c0 + q1 * c1 + q2 * c2


@numba.njit(parallel=True, fastmath=True, cache=True, error_model="numpy")
@no_type_check
def _pose_backward(means, rest, joints, values, rows, grad_moved, grad_posed, grad_rows, grad_means, grad_rest):
    """Gradients of `_pose_forward`: dL/dA = g x^T + (G + G^T) A Sigma, dL/dt = g, dL/dx = A^T g, dL/dSigma = A^T G A.

    `grad_means` and `grad_rest` hold one slice per frame; empty arrays say that nobody asks for them.
    """
    want_splats = grad_means.size > 0
    for f in numba.prange(rows.shape[0]):
        M, D = np.empty(12, rows.dtype), np.empty(12, rows.dtype)
        B, H = np.empty((3, 3), rows.dtype), np.empty((3, 3), rows.dtype)
        for p in range(means.shape[0]):
            for i in range(12):
                M[i] = 0
            for k in range(joints.shape[1]):
                w = values[p, k]
                if w != 0:
                    T = rows[f, joints[p, k]]
                    for i in range(12):
                        M[i] += w * T[i]
            g, G, S = grad_moved[f, p], grad_posed[f, p], rest[p]
            for i in range(3):
                for j in range(3):
                    B[i, j] = M[4 * i] * S[0, j] + M[4 * i + 1] * S[1, j] + M[4 * i + 2] * S[2, j]
                    H[i, j] = G[i, j] + G[j, i]
            for i in range(3):
                for j in range(3):
                    D[4 * i + j] = g[i] * means[p, j] + H[i, 0] * B[0, j] + H[i, 1] * B[1, j] + H[i, 2] * B[2, j]
                D[4 * i + 3] = g[i]
            for k in range(joints.shape[1]):
                w = values[p, k]
                if w != 0:
                    to = grad_rows[f, joints[p, k]]
                    for i in range(12):
                        to[i] += w * D[i]
            if want_splats:
                for j in range(3):
                    grad_means[f, p, j] = M[j] * g[0] + M[4 + j] * g[1] + M[8 + j] * g[2]
                for i in range(3):
                    for j in range(3):
                        B[i, j] = G[i, 0] * M[j] + G[i, 1] * M[4 + j] + G[i, 2] * M[8 + j]
                for i in range(3):
                    for j in range(3):
                        grad_rest[f, p, i, j] = M[i] * B[0, j] + M[4 + i] * B[1, j] + M[8 + i] * B[2, j]

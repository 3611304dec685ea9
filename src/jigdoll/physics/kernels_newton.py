"""What acts on the bodies in one substep, as Warp kernels: joints, upright help, ground.

Newton's own joint kernel has one attachment stiffness for all joints, too soft for a pelvis where a paw must stay
stable; its contacts come from a broad search, where a corner of a cuboid against a plane is one subtraction. Each
kernel here does one thing, so it compiles in seconds and its adjoint is exact. Quaternions are Warp's xyzw.
"""

from typing import no_type_check

import warp as wp  # noqa: TID253


@wp.func
@no_type_check
def compound_angles(q: wp.quat):
    """The angles of R = Rx(a) Ry(b) Rz(c)."""
    ex = wp.quat_rotate(q, wp.vec3(1.0, 0.0, 0.0))
    ey = wp.quat_rotate(q, wp.vec3(0.0, 1.0, 0.0))
    ez = wp.quat_rotate(q, wp.vec3(0.0, 0.0, 1.0))
    middle = wp.asin(wp.clamp(ez[0], -0.9999, 0.9999))
    return wp.vec3(wp.atan2(-ez[1], ez[2]), middle, wp.atan2(-ey[0], ex[0]))


@wp.kernel
@no_type_check
def joint_forces(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    body_com: wp.array(dtype=wp.vec3),
    parent: wp.array(dtype=int),
    X_parent_joint: wp.array(dtype=wp.transform),
    X_body_joint: wp.array(dtype=wp.transform),
    attach_ke: wp.array(dtype=float),
    attach_kd: wp.array(dtype=float),
    target_ke: wp.array(dtype=wp.vec3),
    target_kd: wp.array(dtype=wp.vec3),
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    limit_ke: wp.array(dtype=wp.vec3),
    targets: wp.array(dtype=float, ndim=2),
    step: int,
    body_f: wp.array(dtype=wp.spatial_vector),
):
    """Springs hold each body to its parent; each axis is driven by tau = ke (target - angle) - kd rate (AKD Eq. 12)."""
    child = wp.tid() + 1
    above = parent[child]
    X_p = body_q[above] * X_parent_joint[child]
    X_c = body_q[child] * X_body_joint[child]
    x_p = wp.transform_get_translation(X_p)
    x_c = wp.transform_get_translation(X_c)
    r_p = x_p - wp.transform_point(body_q[above], body_com[above])
    r_c = x_c - wp.transform_point(body_q[child], body_com[child])
    w_p = wp.spatial_bottom(body_qd[above])
    w_c = wp.spatial_bottom(body_qd[child])
    v_p = wp.spatial_top(body_qd[above]) + wp.cross(w_p, r_p)
    v_c = wp.spatial_top(body_qd[child]) + wp.cross(w_c, r_c)
    force = (x_p - x_c) * attach_ke[child] + (v_p - v_c) * attach_kd[child]

    q_p = wp.transform_get_rotation(X_p)
    q_c = wp.transform_get_rotation(X_c)
    angles = compound_angles(wp.quat_inverse(q_p) * q_c)
    axis_0 = wp.quat_rotate(q_p, wp.vec3(1.0, 0.0, 0.0))
    turn = q_p * wp.quat_from_axis_angle(wp.vec3(1.0, 0.0, 0.0), angles[0])
    axis_1 = wp.quat_rotate(turn, wp.vec3(0.0, 1.0, 0.0))
    axis_2 = wp.quat_rotate(q_c, wp.vec3(0.0, 0.0, 1.0))
    w = w_c - w_p
    first = 7 + 3 * wp.tid()
    aim = wp.vec3(targets[step, first], targets[step, first + 1], targets[step, first + 2])
    rate = wp.vec3(wp.dot(axis_0, w), wp.dot(axis_1, w), wp.dot(axis_2, w))
    tau = wp.cw_mul(target_ke[child], aim - angles) - wp.cw_mul(target_kd[child], rate)
    beyond = angles - wp.max(wp.min(angles, upper[child]), lower[child])
    tau = tau - wp.cw_mul(limit_ke[child], beyond)
    torque = axis_0 * tau[0] + axis_1 * tau[1] + axis_2 * tau[2]
    wp.atomic_add(body_f, child, wp.spatial_vector(force, torque + wp.cross(r_c, force)))
    wp.atomic_sub(body_f, above, wp.spatial_vector(force, torque + wp.cross(r_p, force)))


@wp.kernel
@no_type_check
def root_help(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    help: wp.array(dtype=float),
    targets: wp.array(dtype=float, ndim=2),
    step: int,
    body_f: wp.array(dtype=wp.spatial_vector),
):
    """The virtual force of AKD's appendix D: turn the first body upright. It never carries or pushes."""
    q = wp.transform_get_rotation(body_q[0])
    aim = wp.quat(targets[step, 3], targets[step, 4], targets[step, 5], targets[step, 6])
    off = aim * wp.quat_inverse(q)
    sign = 1.0
    if off[3] < 0.0:
        sign = -1.0
    away = wp.vec3(off[0], off[1] * help[2], off[2]) * (2.0 * sign)
    w = wp.spatial_bottom(body_qd[0])
    torque = away * help[0] - wp.vec3(w[0], w[1] * help[2], w[2]) * help[1]
    wp.atomic_add(body_f, 0, wp.spatial_vector(wp.vec3(0.0, 0.0, 0.0), torque))


@wp.kernel
@no_type_check
def ground_forces(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    body_com: wp.array(dtype=wp.vec3),
    corner_body: wp.array(dtype=int),
    corner_place: wp.array(dtype=wp.vec3),
    ground: wp.array(dtype=float),
    anchors: wp.array(dtype=wp.vec3),
    anchors_next: wp.array(dtype=wp.vec3),
    body_f: wp.array(dtype=wp.spatial_vector),
):
    """A contact below its margin is pushed up by a damped spring and held by another to where it touched down.

    The second spring yields at the friction cone: its anchor slides along (Cundall and Strack's contact). Friction that
    only sees velocity would let a loaded foot creep.
    """
    corner = wp.tid()
    body = corner_body[corner]
    x = wp.transform_point(body_q[body], corner_place[corner])
    anchor = wp.vec3(x[0], 0.0, x[2])
    y = x[1] - ground[7 * corner + 6]
    if y < 0.0:
        r = x - wp.transform_point(body_q[body], body_com[body])
        v = wp.spatial_top(body_qd[body]) + wp.cross(wp.spatial_bottom(body_qd[body]), r)
        ke = ground[7 * corner]
        # Quadratic in the first instants and linear below: the derivative has no jump at touchdown.
        normal = ke * y * y / (ground[7 * corner + 5] - y) * wp.max(1.0 - ground[7 * corner + 1] * v[1], 0.0)
        most = ground[7 * corner + 2] * normal
        kt = ground[7 * corner + 3]
        gap = wp.vec3(x[0] - anchors[corner][0], 0.0, x[2] - anchors[corner][2])
        damp = wp.vec3(v[0], 0.0, v[2]) * ground[7 * corner + 4]
        drag = gap * (-kt) - damp
        # |drag| / (|drag|^8 + most^8)^(1/8): all of it well inside the cone, the cone's edge far outside, no kink.
        size = wp.sqrt(wp.dot(drag, drag) + 1.0e-12)
        largest = wp.max(size, most)
        a = (size / largest) * (size / largest)
        b = (most / largest) * (most / largest)
        drag = drag * (most / largest / wp.sqrt(wp.sqrt(wp.sqrt(a * a * a * a + b * b * b * b))))
        anchor = wp.vec3(x[0], 0.0, x[2]) + (drag + damp) * (1.0 / kt)
        force = wp.vec3(drag[0], normal, drag[2])
        wp.atomic_add(body_f, body, wp.spatial_vector(force, wp.cross(r, force)))
    anchors_next[corner] = anchor

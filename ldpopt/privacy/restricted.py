"""Restricted divergences of one pair of distributions p, q: bounds from a convex program and its dual.

The bounds hold even if the solver fails to reach the optimum. The adversary's class H is the span of the columns of
`basis`, which include the constant. By duality, the restricted divergence is the smallest unrestricted
divergence from q of a distribution r that no function of H distinguishes from p:

    KL_H(p, q)       = sup_a a.E_p phi - log E_q exp(a.phi)       = min KL(r || q)        over laws r  [CIM, Lem 1]
    ||p||_H,A        = sup_h E_p h / (E_q |h|^A)^(1/A)            = min (sum q |r/q|^alpha)^(1/alpha), r signed
    TV_H(p, q)       = sup E_p h - E_q h, 0 <= h <= 1             = min sum (w)_+         over signed w = r - q

subject to E_r phi = E_p phi for all phi in H. Every h gives a lower bound and every r an upper bound. A and alpha are
dual exponents, and the restricted Rényi divergence is alpha/(alpha - 1) log ||p||_H,A [CIM, eq. 3].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import CLASS_RANK, MIN_FACE_WEIGHT, MOMENT_TOLERANCE, NULL_SPACE
from ldpopt.privacy.loss import privacy_loss, shift
from ldpopt.values.distribution import Array

Bracket = tuple[float, float]

_MAX_STEPS = 200
_MAX_EXPONENT_STEP = 40.0


def restricted_kl(p: Array, q: Array, basis: Array) -> Bracket:
    """Bound the restricted KL divergence of distributions p, q (m,) for a class `basis` (m, r)."""
    moments = basis.T @ p
    face_outputs = _face(p, q, basis, moments)
    if face_outputs is None:
        return np.inf, np.inf
    face_basis, face_law = basis[face_outputs][:, 1:], q[face_outputs]
    target = moments[1:]
    law_means = face_law @ face_basis / face_law.sum()
    a = np.zeros(face_basis.shape[1])
    value, tilted_law = _log_partition(a, face_basis, face_law, target)
    for _ in range(_MAX_STEPS):
        gradient = target - tilted_law @ face_basis
        step = _weighted(tilted_law, face_basis, gradient)
        # Far from the optimum the tilted law may be concentrated on one output and show no curvature.
        step = step * min(1.0, _MAX_EXPONENT_STEP / max(float(np.ptp(face_basis @ step)), _MAX_EXPONENT_STEP))
        decrement = float(gradient @ step)
        if not decrement > 1e-32 * max(1.0, abs(value)):
            break
        step_size = 1.0
        while step_size > 1e-12:
            next_value, next_law = _log_partition(a + step_size * step, face_basis, face_law, target)
            if next_value >= value + 1e-4 * step_size * decrement or (
                step_size == 1.0 and decrement < 1e-10 and next_value >= value
            ):
                break
            step_size /= 2
        if step_size <= 1e-12 or next_value <= value:
            break
        a, value, tilted_law = a + step_size * step, next_value, next_law
    # The moments of the tilted law differ from those of p by the last gradient; one more small tilt corrects that.
    corrected_law = tilted_law
    for _ in range(3):
        if corrected_law.min() < 0 or not np.isfinite(corrected_law).all():
            break
        tilted_law = corrected_law
        corrected_law = tilted_law * (
            1
            + (face_basis - tilted_law @ face_basis)
            @ _weighted(tilted_law, face_basis, target - tilted_law @ face_basis)
        )
    residual = np.abs(target - tilted_law @ face_basis) + 4 * ULP * (
        np.abs(face_basis).T @ (tilted_law + face_law) + np.abs(target)
    )
    residual_bound = 2 * float(np.abs(a) @ residual) + 8 * ULP * float(np.abs(a) @ np.abs(law_means - target))
    unrestricted_value = privacy_loss(p[None], q[None]).mean_upper[0]
    dual_value = float(privacy_loss(tilted_law[None], face_law[None]).mean_upper[0]) - float(np.log(face_law.sum()))
    # The rounding of the logarithm of a sum near one.
    log_error = ULP * (16 + 8 * value + 8 * float(np.abs((face_basis - target) @ a).max()))
    return max(value - residual_bound - log_error, 0.0), float(
        min(dual_value * (1 + 8 * ULP) + residual_bound, unrestricted_value)
    )


def _log_partition(a: Array, basis: Array, law: Array, target: Array) -> tuple[float, Array]:
    """a.target - log sum law exp(a.phi), and the tilted law."""
    x = (basis - target) @ a
    max_exponent = float(x.max())
    weights = law * np.exp(x - max_exponent)
    total = float(weights.sum())
    return -(max_exponent + float(np.log(total))), weights / total


def _weighted(law: Array, basis: Array, target: Array) -> Array:
    """The solution of Cov_law(phi) step = right, through the square root of the covariance."""
    root = np.sqrt(law)[:, None] * (basis - law @ basis)
    _, s, vt = np.linalg.svd(root, full_matrices=False)
    is_in_range = s > CLASS_RANK * max(float(s.max(initial=0.0)), 1e-300)
    return np.asarray(vt[is_in_range].T @ ((vt[is_in_range] @ target) / s[is_in_range] ** 2))


def _face(p: Array, q: Array, basis: Array, moments: Array) -> npt.NDArray[np.intp] | None:
    """The outputs that some r << q with the moments of p can have; None if no such distribution exists."""
    support_outputs = np.flatnonzero(q > 0)
    if (p[support_outputs] > 0).all() and (p[q == 0] == 0).all():
        return support_outputs
    from scipy.optimize import linprog

    # r = t (u + v), u <= 1: the largest sum of u gives weight to every possible output. The solver's tolerance
    # can make the face too small, or empty, which only raises the divergence and is therefore safe.
    n = len(support_outputs)
    support_basis = basis[support_outputs].T
    equality_rows = np.hstack([support_basis, support_basis, -moments[:, None]])
    solution = linprog(
        -np.concatenate([np.ones(n), np.zeros(n + 1)]), A_eq=equality_rows, b_eq=np.zeros(len(equality_rows)),
        bounds=[(0, 1)] * n + [(0, None)] * (n + 1), method="highs",
    )  # fmt: skip
    if solution.status != 0 or solution.x[-1] < MOMENT_TOLERANCE:
        return None
    face_outputs = support_outputs[solution.x[:n] + solution.x[n:-1] > MIN_FACE_WEIGHT]
    return face_outputs if len(face_outputs) else None


def restricted_power(p: Array, q: Array, basis: Array, order: float) -> Bracket:
    """Bound the restricted Rényi divergence of `order` > 1 of p, q (m,) for `basis` (m, r)."""
    is_in_support = q > 0
    support_basis, law = basis[is_in_support], q[is_in_support]
    moments = basis.T @ p
    weighted_moments = law[:, None] * support_basis
    # Scaled by sqrt(q), outputs of small probability neither blur the constraints nor make large steps.
    law_roots = np.sqrt(law)[:, None]
    moment_inverse = np.asarray(
        np.linalg.pinv((law_roots * support_basis).T, rcond=NULL_SPACE) / law_roots, dtype=np.float64
    )
    start: Array = moment_inverse @ moments
    if np.abs(weighted_moments.T @ start - moments).max() > MOMENT_TOLERANCE:
        return np.inf, np.inf
    dual_order = order / (order - 1)
    if order >= 2:
        _, s, vt = np.linalg.svd((law_roots * support_basis).T)
        free_directions = vt[int((s > NULL_SPACE * s[0]).sum()) :].T / law_roots
        g = start
        for power in [*(2.0**n for n in range(1, 64) if 2.0**n < order), order]:
            g = _least_power(law, g, free_directions, power)
        h = np.sign(g) * (np.abs(g) / np.abs(g).max()) ** (order - 1)
    else:
        theta = moments / (moments @ moments)
        _, _, vt = np.linalg.svd(moments[None])
        free_directions = support_basis @ vt[1:].T
        # Functions that are zero, up to rounding, wherever q has mass cannot make h smaller there.
        _, s, vt = np.linalg.svd(law_roots * free_directions, full_matrices=False)
        h = _least_power(law, support_basis @ theta, free_directions @ vt[s > CLASS_RANK].T, dual_order)
        g = np.sign(h) * (np.abs(h) / np.abs(h).max()) ** (dual_order - 1)
        g = g * float((law * g) @ np.ones(len(g))) ** -1 if (law @ g) > 0 else start
    for _ in range(3):
        g = g + _spread(law, support_basis, moments - weighted_moments.T @ g, np.abs(g), moment_inverse)
    theta = np.linalg.lstsq(np.sqrt(law)[:, None] * support_basis, np.sqrt(law) * h, rcond=None)[0]
    h = support_basis @ theta
    primal_norm = float(moments @ theta) / _norm(law, h, dual_order)
    residual = np.abs(moments - weighted_moments.T @ g) + 8 * ULP * (
        np.abs(weighted_moments).T @ np.abs(g) + np.abs(moments)
    )
    residual_bound = sum(
        float(r) * _norm(law, column, order) for r, column in zip(residual, moment_inverse.T, strict=True)
    )
    dual_norm = (_norm(law, g, order) + residual_bound) * (1 + 64 * ULP)
    unrestricted_value = float(privacy_loss(p[None], q[None]).divergence(np.array([order - 1]))[1][0])
    low = dual_order * np.log(max(primal_norm * (1 - 64 * ULP) - residual_bound, 1.0))
    return float(low), float(
        min(max(dual_order * np.log(dual_norm), 0.0) * (1 + 8 * ULP) + 4 * ULP, unrestricted_value)
    )


def _norm(law: Array, v: Array, power: float) -> float:
    """The norm (sum law |v|^power)^(1/power) without overflow."""
    largest = float(np.abs(v).max())
    return largest * float((law * (np.abs(v) / largest) ** power).sum()) ** (1 / power) if largest > 0 else 0.0


def _spread(law: Array, basis: Array, residual: Array, size: Array, moment_inverse: Array) -> Array:
    """A change of g that has the given moments and is large only where g is large."""
    scaled_roots = np.sqrt(law) * (size + 1e-8 * float(size.max()))
    scaled_change = np.linalg.lstsq((scaled_roots[:, None] * basis).T * np.sqrt(law), residual, rcond=NULL_SPACE)[0]
    change = scaled_change * (size + 1e-8 * float(size.max()))
    achieved_change = (law[:, None] * basis).T @ change
    return np.asarray(change + moment_inverse @ (residual - achieved_change))


def _least_power(law: Array, v: Array, free_directions: Array, power: float) -> Array:
    """Minimize sum law |v + free z|^power, power >= 2, by Newton's method with an exact line search."""
    if not free_directions.shape[1]:
        return v
    for _ in range(_MAX_STEPS):
        v_top = float(np.abs(v).max())
        if v_top == 0:
            break
        relative_sizes = np.abs(v) / v_top
        curvature_roots = np.sqrt(law) * np.maximum(relative_sizes, 1e-12) ** ((power - 2) / 2)
        step = (
            free_directions
            @ np.linalg.lstsq(
                curvature_roots[:, None] * free_directions, -curvature_roots * v / (power - 1), rcond=1e-15
            )[0]
        )

        def slope(t: float, v: Array = v, step: Array = step, top: float = v_top) -> float:
            moved_point = (v + t * step) / top
            scale = max(float(np.abs(moved_point).max()), 1e-300)
            return float((law * np.sign(moved_point) * (np.abs(moved_point) / scale) ** (power - 1)) @ step)

        if not slope(0.0) < 0:
            break
        low, high = 0.0, 1.0
        while slope(high) < 0 and high < 1e6:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        norm_before = _norm(law, v, power)
        v = v + high * step
        if not _norm(law, v, power) < norm_before * (1 - 2 * ULP):
            break
    return v


def restricted_total_variation(p: Array, q: Array, basis: Array) -> Bracket:
    """Bound the largest E_p h - E_q h over h in the class with values in [0, 1]."""
    from scipy.optimize import linprog

    is_possible = (p > 0) | (q > 0)
    row_shift = shift(p[None], q[None])  # the rows may not sum to one
    correction = np.expm1(row_shift.value[0]) * q
    basis_with_mass, difference = basis[is_possible], (((p - q) - correction) / (1 + row_shift.defect[0]))[is_possible]
    difference_error = float((4 * ULP * (np.abs(p - q) + np.abs(correction)) + 2 * row_shift.error[0] * q).sum())
    target = basis_with_mass.T @ difference
    n, scale = len(difference), max(float(np.abs(difference).max()), 1e-300)  # the solver's tolerances are absolute
    unrestricted_value = float(np.maximum(difference, 0).sum()) * (1 + (n + 4) * ULP) + difference_error
    solution = linprog(
        np.concatenate([np.ones(n), np.zeros(n)]), A_eq=np.hstack([basis_with_mass.T, -basis_with_mass.T]),
        b_eq=target / scale, bounds=(0, None), method="highs",
    )  # fmt: skip
    if solution.status != 0:
        return 0.0, unrestricted_value
    w = scale * (solution.x[:n] - solution.x[n:])
    repair = np.linalg.pinv(basis_with_mass.T)
    for _ in range(2):
        w = w + repair @ (target - basis_with_mass.T @ w)
    residual = np.abs(target - basis_with_mass.T @ w) + 4 * ULP * (
        np.abs(basis_with_mass).T @ (np.abs(w) + np.abs(difference))
    )
    pad = float(residual @ np.abs(repair).sum(axis=0))
    h = basis_with_mass @ np.asarray(solution.eqlin.marginals)
    lower = float(h @ difference) / max(1.0, float(np.ptp(h)) * (1 + 4 * ULP))
    upper = float(np.maximum(w, 0).sum()) * (1 + n * ULP) + pad
    lower -= (n + 4) * ULP * float(np.abs(difference).sum()) + difference_error
    return max(lower, 0.0), min(upper + difference_error, unrestricted_value, 1.0)

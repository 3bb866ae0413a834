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
    face = _face(p, q, basis, moments)
    if face is None:
        return np.inf, np.inf
    inner, law = basis[face][:, 1:], q[face]
    target = moments[1:]
    centre = law @ inner / law.sum()
    a = np.zeros(inner.shape[1])
    value, tilted_law = _log_partition(a, inner, law, target)
    for _ in range(_MAX_STEPS):
        gradient = target - tilted_law @ inner
        step = _weighted(tilted_law, inner, gradient)
        # Far from the optimum the tilted law may be concentrated on one output and show no curvature.
        step = step * min(1.0, _MAX_EXPONENT_STEP / max(float(np.ptp(inner @ step)), _MAX_EXPONENT_STEP))
        decrement = float(gradient @ step)
        if not decrement > 1e-32 * max(1.0, abs(value)):
            break
        size = 1.0
        while size > 1e-12:
            new, law_new = _log_partition(a + size * step, inner, law, target)
            if new >= value + 1e-4 * size * decrement or (size == 1.0 and decrement < 1e-10 and new >= value):
                break
            size /= 2
        if size <= 1e-12 or new <= value:
            break
        a, value, tilted_law = a + size * step, new, law_new
    # The moments of the tilted law differ from those of p by the last gradient; one more small tilt corrects that.
    corrected_law = tilted_law
    for _ in range(3):
        if corrected_law.min() < 0 or not np.isfinite(corrected_law).all():
            break
        tilted_law = corrected_law
        corrected_law = tilted_law * (
            1 + (inner - tilted_law @ inner) @ _weighted(tilted_law, inner, target - tilted_law @ inner)
        )
    residual = np.abs(target - tilted_law @ inner) + 4 * ULP * (np.abs(inner).T @ (tilted_law + law) + np.abs(target))
    pad = 2 * float(np.abs(a) @ residual) + 8 * ULP * float(np.abs(a) @ np.abs(centre - target))
    unrestricted_value = privacy_loss(p[None], q[None]).mean_upper[0]
    dual_value = float(privacy_loss(tilted_law[None], law[None]).mean_upper[0]) - float(np.log(law.sum()))
    # The rounding of the logarithm of a sum near one.
    log_error = ULP * (16 + 8 * value + 8 * float(np.abs((inner - target) @ a).max()))
    return max(value - pad - log_error, 0.0), float(min(dual_value * (1 + 8 * ULP) + pad, unrestricted_value))


def _log_partition(a: Array, inner: Array, law: Array, target: Array) -> tuple[float, Array]:
    """a.target - log sum law exp(a.phi), and the tilted law."""
    x = (inner - target) @ a
    top = float(x.max())
    weights = law * np.exp(x - top)
    total = float(weights.sum())
    return -(top + float(np.log(total))), weights / total


def _weighted(law: Array, inner: Array, right: Array) -> Array:
    """The solution of Cov_law(phi) step = right, through the square root of the covariance."""
    root = np.sqrt(law)[:, None] * (inner - law @ inner)
    _, s, vt = np.linalg.svd(root, full_matrices=False)
    keep = s > CLASS_RANK * max(float(s.max(initial=0.0)), 1e-300)
    return np.asarray(vt[keep].T @ ((vt[keep] @ right) / s[keep] ** 2))


def _face(p: Array, q: Array, basis: Array, moments: Array) -> npt.NDArray[np.intp] | None:
    """The outputs that some r << q with the moments of p can have; None if no such distribution exists."""
    support = np.flatnonzero(q > 0)
    if (p[support] > 0).all() and (p[q == 0] == 0).all():
        return support
    from scipy.optimize import linprog

    # r = t (u + v), u <= 1: the largest sum of u gives weight to every possible output. The solver's tolerance
    # can make the face too small, or empty, which only raises the divergence and is therefore safe.
    n = len(support)
    support_basis = basis[support].T
    rows = np.hstack([support_basis, support_basis, -moments[:, None]])
    solution = linprog(
        -np.concatenate([np.ones(n), np.zeros(n + 1)]), A_eq=rows, b_eq=np.zeros(len(rows)),
        bounds=[(0, 1)] * n + [(0, None)] * (n + 1), method="highs",
    )  # fmt: skip
    if solution.status != 0 or solution.x[-1] < MOMENT_TOLERANCE:
        return None
    face = support[solution.x[:n] + solution.x[n:-1] > MIN_FACE_WEIGHT]
    return face if len(face) else None


def restricted_power(p: Array, q: Array, basis: Array, order: float) -> Bracket:
    """Bound the restricted Rényi divergence of `order` > 1 of p, q (m,) for `basis` (m, r)."""
    support = q > 0
    inner, law = basis[support], q[support]
    moments = basis.T @ p
    weighted_moments = law[:, None] * inner
    # Scaled by sqrt(q), outputs of small probability neither blur the constraints nor make large steps.
    root = np.sqrt(law)[:, None]
    solution = np.asarray(np.linalg.pinv((root * inner).T, rcond=NULL_SPACE) / root, dtype=np.float64)
    start: Array = solution @ moments
    if np.abs(weighted_moments.T @ start - moments).max() > MOMENT_TOLERANCE:
        return np.inf, np.inf
    dual = order / (order - 1)
    if order >= 2:
        _, s, vt = np.linalg.svd((root * inner).T)
        free = vt[int((s > NULL_SPACE * s[0]).sum()) :].T / root
        g = start
        for power in [*(2.0**n for n in range(1, 64) if 2.0**n < order), order]:
            g = _least_power(law, g, free, power)
        h = np.sign(g) * (np.abs(g) / np.abs(g).max()) ** (order - 1)
    else:
        theta = moments / (moments @ moments)
        _, _, vt = np.linalg.svd(moments[None])
        free = inner @ vt[1:].T
        # Functions that are zero, up to rounding, wherever q has mass cannot make h smaller there.
        _, s, vt = np.linalg.svd(root * free, full_matrices=False)
        h = _least_power(law, inner @ theta, free @ vt[s > CLASS_RANK].T, dual)
        g = np.sign(h) * (np.abs(h) / np.abs(h).max()) ** (dual - 1)
        g = g * float((law * g) @ np.ones(len(g))) ** -1 if (law @ g) > 0 else start
    for _ in range(3):
        g = g + _spread(law, inner, moments - weighted_moments.T @ g, np.abs(g), solution)
    theta = np.linalg.lstsq(np.sqrt(law)[:, None] * inner, np.sqrt(law) * h, rcond=None)[0]
    h = inner @ theta
    primal_norm = float(moments @ theta) / _norm(law, h, dual)
    residual = np.abs(moments - weighted_moments.T @ g) + 8 * ULP * (
        np.abs(weighted_moments).T @ np.abs(g) + np.abs(moments)
    )
    pad = sum(float(r) * _norm(law, column, order) for r, column in zip(residual, solution.T, strict=True))
    dual_norm = (_norm(law, g, order) + pad) * (1 + 64 * ULP)
    unrestricted_value = float(privacy_loss(p[None], q[None]).divergence(np.array([order - 1]))[1][0])
    low = dual * np.log(max(primal_norm * (1 - 64 * ULP) - pad, 1.0))
    return float(low), float(min(max(dual * np.log(dual_norm), 0.0) * (1 + 8 * ULP) + 4 * ULP, unrestricted_value))


def _norm(law: Array, v: Array, power: float) -> float:
    """The norm (sum law |v|^power)^(1/power) without overflow."""
    top = float(np.abs(v).max())
    return top * float((law * (np.abs(v) / top) ** power).sum()) ** (1 / power) if top > 0 else 0.0


def _spread(law: Array, inner: Array, residual: Array, size: Array, solution: Array) -> Array:
    """A change of g that has the given moments and is large only where g is large."""
    root = np.sqrt(law) * (size + 1e-8 * float(size.max()))
    scaled_change = np.linalg.lstsq((root[:, None] * inner).T * np.sqrt(law), residual, rcond=NULL_SPACE)[0]
    change = scaled_change * (size + 1e-8 * float(size.max()))
    achieved_change = (law[:, None] * inner).T @ change
    return np.asarray(change + solution @ (residual - achieved_change))


def _least_power(law: Array, v: Array, free: Array, power: float) -> Array:
    """Minimize sum law |v + free z|^power, power >= 2, by Newton's method with an exact line search."""
    if not free.shape[1]:
        return v
    for _ in range(_MAX_STEPS):
        v_top = float(np.abs(v).max())
        if v_top == 0:
            break
        size = np.abs(v) / v_top
        root = np.sqrt(law) * np.maximum(size, 1e-12) ** ((power - 2) / 2)
        step = free @ np.linalg.lstsq(root[:, None] * free, -root * v / (power - 1), rcond=1e-15)[0]

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

    has_mass = (p > 0) | (q > 0)
    row_shift = shift(p[None], q[None])  # the rows may not sum to one
    correction = np.expm1(row_shift.value[0]) * q
    inner, difference = basis[has_mass], (((p - q) - correction) / (1 + row_shift.defect[0]))[has_mass]
    difference_error = float((4 * ULP * (np.abs(p - q) + np.abs(correction)) + 2 * row_shift.error[0] * q).sum())
    target = inner.T @ difference
    n, scale = len(difference), max(float(np.abs(difference).max()), 1e-300)  # the solver's tolerances are absolute
    unrestricted_value = float(np.maximum(difference, 0).sum()) * (1 + (n + 4) * ULP) + difference_error
    solution = linprog(
        np.concatenate([np.ones(n), np.zeros(n)]), A_eq=np.hstack([inner.T, -inner.T]), b_eq=target / scale,
        bounds=(0, None), method="highs",
    )  # fmt: skip
    if solution.status != 0:
        return 0.0, unrestricted_value
    w = scale * (solution.x[:n] - solution.x[n:])
    repair = np.linalg.pinv(inner.T)
    for _ in range(2):
        w = w + repair @ (target - inner.T @ w)
    residual = np.abs(target - inner.T @ w) + 4 * ULP * (np.abs(inner).T @ (np.abs(w) + np.abs(difference)))
    pad = float(residual @ np.abs(repair).sum(axis=0))
    h = inner @ np.asarray(solution.eqlin.marginals)
    lower = float(h @ difference) / max(1.0, float(np.ptp(h)) * (1 + 4 * ULP))
    upper = float(np.maximum(w, 0).sum()) * (1 + n * ULP) + pad
    lower -= (n + 4) * ULP * float(np.abs(difference).sum()) + difference_error
    return max(lower, 0.0), min(upper + difference_error, unrestricted_value, 1.0)

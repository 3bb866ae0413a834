"""Formulas of LaTeX as plain text, for where no formula can be drawn."""

from __future__ import annotations

import re

SIGNS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "Gamma": "Γ", "delta": "δ", "Delta": "Δ", "epsilon": "ε",
    "varepsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "Phi": "Φ", "le": "≤", "leq": "≤", "ge": "≥",
    "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "sim": "∼", "times": "×", "cdot": "·", "pm": "±",
    "in": "∈", "ni": "∋", "notin": "∉", "infty": "∞", "sum": "∑", "prod": "∏", "int": "∫", "sqrt": "√",
    "to": "→", "mapsto": "↦", "varnothing": "∅", "subseteq": "⊆", "cup": "∪", "cap": "∩", "otimes": "⊗",
    "dots": "…", "ldots": "…", "cdots": "…", "mid": "|", "lvert": "|", "rvert": "|", "lVert": "‖",
    "rVert": "‖", "Vert": "‖", "vert": "|", "|": "‖", "{": "{", "}": "}", "quad": " ", "qquad": " ", ",": " ",
    ";": " ", ":": " ", "!": "", "%": "%", "prime": "′", "ell": "ℓ", "forall": "for all", "setminus": "∖",
    "partial": "∂",
    "nabla": "∇", "\\": " ",
}  # fmt: skip
"""What a command of LaTeX means, as one sign. Of other commands the name stays: ``log``, ``max``."""
SILENT = {
    "left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr", "bigg", "mathrm", "mathbf", "mathbb",
    "mathcal", "text", "operatorname", "underline", "overline", "bar", "hat", "tilde", "displaystyle",
    "begin", "end", "lim", "limits",
}  # fmt: skip


def plain(latex: str) -> str:
    """A formula as text.

    >>> plain(r"\\eta \\le \\tanh(\\varepsilon/2) = \\tfrac{E-1}{E+1}")
    'η ≤ tanh(ε/2) = (E-1)/(E+1)'
    """
    text = re.sub(r"\\\(|\\\)|\\\[|\\\]|\\(?:begin|end)\{\w+\*?\}|[&$]", " ", latex)
    text = re.sub(r"\\[tdc]?frac\s*(\w)\s*(\w)", r"\1/\2", text)
    for _ in range(3):
        text = re.sub(r"\\[tdc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", _fraction, text)
        text = re.sub(r"([_^])\{([^{}]{1})\}", r"\1\2", text)
    text = re.sub(r"\\([A-Za-z]+|.)", lambda found: _sign(found[1]), text)
    return " ".join(re.sub(r"[{}]", "", text).split())


def _fraction(found: re.Match[str]) -> str:
    above, below = (one if re.fullmatch(r"\\?\w+", one.strip()) else f"({one.strip()})" for one in found.groups())
    return f"{above}/{below}"


def _sign(command: str) -> str:
    if command in SILENT:
        return ""
    return SIGNS.get(command, f"{command}" if len(command) > 1 else "")

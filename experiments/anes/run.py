"""Real answers through the optimal channel: planned from half of a survey, estimated on the other half.

Run with `python experiments/anes/run.py` from the root of the repository; about three minutes on one core.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ldpopt import plots
from ldpopt.channel import Channel, as_channel
from ldpopt.datasets import load_anes96
from ldpopt.design import FisherInformation, LocalDP, estimation_design
from ldpopt.mechanisms import hadamard_response, randomized_response, subset_selection
from ldpopt.survey import HalfWidth, compare_protocols
from ldpopt.survey.linear import efficient_loadings

HERE = Path(__file__).parent
EPSILON, RESPONDENTS, REPLICATIONS, SEED = 1.0, 472, 20_000, 1996
QUESTIONS = ("party", "education", "vote", "income")


def halves() -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(SEED).permutation(944)
    return order[:472], order[472:]


def shares(column: str, rows: np.ndarray, smooth: float = 0.0) -> np.ndarray:
    data = load_anes96()[column]
    counts = np.bincount(data.codes[rows], minlength=len(data.labels)) + smooth
    return counts / counts.sum()


def named(k: int) -> dict[str, Channel]:
    """Protocols whose matrix can be tabulated; all others of the package need more respondents (protocols.csv)."""
    best = k / (np.exp(EPSILON) + 1)
    made = {f"subset selection of {d}": d for d in range(1, k) if abs(d - best) <= 1.5}
    channels = {name: subset_selection(k, EPSILON, d) for name, d in made.items()}
    channels["randomized response"] = randomized_response(k, EPSILON)
    channels["Hadamard response"] = hadamard_response(k, EPSILON).channel()
    return channels


def simulated(channel: Channel, pilot: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Squared errors |p_hat - p|^2 of `REPLICATIONS` surveys; the estimate is linear and unbiased, best at the pilot."""
    loadings = np.ascontiguousarray(efficient_loadings(channel, pilot).T)
    law = np.cumsum(channel.push(truth))
    errors = []
    for _ in range(0, REPLICATIONS, 200):
        reports = np.searchsorted(law, rng.random(200 * RESPONDENTS) * law[-1], side="right")
        estimates = loadings[reports].reshape(200, RESPONDENTS, -1).mean(axis=1)
        errors.append(((estimates - truth) ** 2).sum(axis=1))
    return np.concatenate(errors)


def exact(channel: Channel, pilot: np.ndarray, truth: np.ndarray) -> float:
    """The expectation of those squared errors."""
    loadings = efficient_loadings(channel, pilot)
    return float((loadings**2 @ channel.push(truth)).sum() - truth @ truth) / RESPONDENTS


def main() -> None:
    first, second = halves()
    rng = np.random.default_rng(SEED + 1)
    rows, picture_rows = [], None
    for question in QUESTIONS:
        pilot, truth = shares(question, first, 0.5), shares(question, second)
        k = len(pilot)
        design = estimation_design(FisherInformation(pilot), LocalDP(EPSILON))
        rivals = named(k)
        values = {name: FisherInformation(pilot).value(channel) for name, channel in rivals.items()}
        best = min(values, key=values.get)
        errors = {name: simulated(as_channel(channel), pilot, truth, rng)
                  for name, channel in (("optimal", design.channel), (best, rivals[best]))}  # fmt: skip
        mean = {name: float(e.mean()) for name, e in errors.items()}
        band = {name: 1.96 * float(e.std() / np.sqrt(REPLICATIONS)) for name, e in errors.items()}
        saving = 1 - mean["optimal"] / mean[best]
        half = (1 - saving) * np.hypot(band["optimal"] / mean["optimal"], band[best] / mean[best])
        predicted = 1 - exact(design.channel, pilot, truth) / exact(rivals[best], pilot, truth)
        rows.append({
            "question": question, "categories": k, "reports": design.channel.shape[1],
            "value": design.value, "lower_bound": design.lower_bound, "best_named": best,
            "best_named_value": values[best], "saving_at_pilot": 1 - design.value / values[best],
            "saving_predicted": predicted, "saving_simulated": saving,
            "band_low": saving - half, "band_high": saving + half,
            "inside": bool(abs(saving - predicted) <= half),
        })  # fmt: skip
        print({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in rows[-1].items()}, flush=True)
        if question == "income":
            picture_rows = compare_protocols(pilot, HalfWidth(0.05), EPSILON, optimal=design.channel)
    with (HERE / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    picture_rows.to_pandas().to_csv(HERE / "protocols.csv", index=False)
    (HERE / "protocols.png").write_bytes(plots.picture(plots.protocols(picture_rows)))
    print(picture_rows)


if __name__ == "__main__":
    main()

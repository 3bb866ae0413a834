"""Real answers through the optimal channel: planned from half of a survey, estimated on the other half.

Run with `python experiments/surveys/anes/run.py` from the root of the repository; about three minutes on one core.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ldpopt import plots
from ldpopt.channel import Channel
from ldpopt.datasets import load_anes96
from ldpopt.design import FisherInformation, LocalDP, optimal_channel
from ldpopt.mechanisms import (
    UnaryEncoding,
    hadamard_response,
    optimized_unary_encoding,
    randomized_response,
    subset_selection,
)
from ldpopt_survey import HalfWidth, compare_protocols
from ldpopt_survey.estimate.linear import efficient_loadings
from ldpopt_survey.pictures import protocols

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
    """Squared errors |p_hat - p|^2 of `REPLICATIONS` surveys; the estimate is unbiased, and best at the pilot."""
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


def simulated_encoding(oracle: UnaryEncoding, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same for a unary encoding with its own estimate: the bits of a report are independent given the answer."""
    own, other = oracle.support
    answers = rng.multinomial(RESPONDENTS, truth, size=REPLICATIONS)
    counts = rng.binomial(answers, own) + rng.binomial(RESPONDENTS - answers, other)
    estimates = (counts / RESPONDENTS - other) / (own - other)
    return ((estimates - truth) ** 2).sum(axis=1)


def compare(question: str, rival: str, ours: np.ndarray, theirs: np.ndarray, predicted: float) -> dict[str, object]:
    """The saving in respondents, simulated, with its 95 % band, beside what the formulas predict."""
    saving = 1 - float(ours.mean() / theirs.mean())
    relative = [float(e.std() / e.mean()) / np.sqrt(REPLICATIONS) for e in (ours, theirs)]
    half = 1.96 * (1 - saving) * float(np.hypot(*relative))
    inside = bool(abs(saving - predicted) <= half)
    row = {"question": question, "rival": rival, "predicted": predicted, "simulated": saving,
           "low": saving - half, "high": saving + half, "inside": inside}  # fmt: skip
    print({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()}, flush=True)
    return row


def write(name: str, rows: list[dict[str, object]]) -> None:
    with (HERE / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    first, second = halves()
    rng = np.random.default_rng(SEED + 1)
    designs, savings = [], []
    for question in QUESTIONS:
        pilot, truth = shares(question, first, 0.5), shares(question, second)
        utility = FisherInformation(pilot)
        design = optimal_channel(utility, LocalDP(EPSILON))
        channels = named(len(pilot))
        values = {name: utility.value(channel) for name, channel in channels.items()}
        best = min(values, key=values.get)
        oracle = optimized_unary_encoding(len(pilot), EPSILON)
        encoded = sum(oracle.variance(float(p), 1) for p in pilot)
        designs.append({
            "question": question, "categories": len(pilot), "reports": design.channel.shape[1],
            "optimal": design.value, "lower_bound": design.lower_bound, "best_named": best,
            "best_named_value": values[best],
            "randomized_response": values["randomized response"], "optimized_unary_encoding": encoded,
        })  # fmt: skip
        print(designs[-1], flush=True)
        ours = simulated(design.channel, pilot, truth, rng)
        expected = exact(design.channel, pilot, truth)
        for rival in (best, "randomized response"):
            theirs = simulated(channels[rival], pilot, truth, rng)
            predicted = 1 - expected / exact(channels[rival], pilot, truth)
            savings.append(compare(question, rival, ours, theirs, predicted))
        expected_encoded = sum(oracle.variance(float(p), RESPONDENTS) for p in truth)
        theirs = simulated_encoding(oracle, truth, rng)
        savings.append(compare(question, "optimized unary encoding", ours, theirs, 1 - expected / expected_encoded))
        z = (ours.mean() - expected) / (ours.std() / np.sqrt(REPLICATIONS))
        print(f"{question}: simulated error of the optimal channel is {z:.2f} standard errors from the exact one")
        if question == "income":
            table = compare_protocols(pilot, HalfWidth(0.05), EPSILON, optimal=design.channel)
            table.to_pandas().to_csv(HERE / "protocols.csv", index=False)
            (HERE / "protocols.png").write_bytes(plots.picture(protocols(table)))
            print(table)
    write("designs.csv", designs)
    write("savings.csv", savings)


if __name__ == "__main__":
    main()

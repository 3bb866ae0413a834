"""Python code that computes again what a channel means for one person."""

from __future__ import annotations

from ldpopt.channel import Channel
from ldpopt.studio.source import channel_source, head, imports


def meaning_code(channel: Channel, answer: int, prior: float, rounds: int, delta: float) -> str:
    """A program that measures a channel, and what its reports say about one answer and about many rounds."""
    return "\n".join(
        [
            *head("What a channel means for a person", [str(channel.inputs[answer])]),
            *imports(["Channel", "audit", "compose"]),
            "from ldpopt.privacy import local_dp, total_variation, trade_off",
            "",
            *channel_source(channel),
            "",
            f"answer, prior, rounds, delta = {answer!r}, {prior!r}, {rounds!r}, {delta!r}",
            "",
            "# Against the one other answer that is worst, how many times likelier some report is from this one:",
            "others = [row for at, row in enumerate(channel.matrix) if at != answer]",
            "with_zeros = [(a, min(row[y] for row in others)) for y, a in enumerate(channel.matrix[answer])]",
            'times = max(a / b if b > 0 else float("inf") for a, b in with_zeros if a > 0)',
            "odds = prior / (1 - prior) * times**rounds",
            'print("after the report at most:", odds / (1 + odds) if odds < float("inf") else 1.0)',
            "",
            "print(audit(channel))",
            "together = compose([channel], rounds)",
            'print(rounds, "rounds: epsilon", together.epsilon_at(delta), "at delta", delta)',
            "",
        ]
    )

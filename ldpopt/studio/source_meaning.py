"""Python code that computes again the results of the view "What it means"."""

from __future__ import annotations

from ldpopt.channel import Channel
from ldpopt.studio.source import channel_source, head, imports


def meaning_code(channel: Channel, answer: int, prior: float, rounds: int, delta: float) -> str:
    """A program that measures a channel, and what its reports tell about one answer in one and in many rounds."""
    return "\n".join(
        [
            *head("What a channel means for a person", [str(channel.inputs[answer])]),
            *imports(["Channel", "audit", "compose"]),
            "",
            *channel_source(channel),
            "",
            f"answer, prior, rounds, delta = {answer!r}, {prior!r}, {rounds!r}, {delta!r}",
            "",
            "# Against the one other answer that is worst, how many times likelier some report is from this one:",
            "others = [row for at, row in enumerate(channel.matrix) if at != answer]",
            "pairs = [(own, min(row[y] for row in others)) for y, own in enumerate(channel.matrix[answer])]",
            'times = max(own / other if other > 0 else float("inf") for own, other in pairs if own > 0)',
            "against = (1 - prior) / prior / times**rounds",
            'print("the chance of this answer after the reports is at most", 1 / (1 + against))',
            "",
            "print(audit(channel))",
            "together = compose([channel], rounds)",
            'print(rounds, "rounds: epsilon", together.epsilon_at(delta), "at delta", delta)',
            "",
        ]
    )

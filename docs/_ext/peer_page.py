"""The parts of docs/explanation/related-packages.md made from docs/peers.json, which `docs/_ext/peers.py` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from peer_probes.base import FEATURES, MODULES

RECORD = Path(__file__).resolve().parents[1] / "peers.json"
PEERS = [peer for peer in MODULES if peer != "ldpopt"]


def recorded() -> dict[str, Any]:
    """The record of the last run."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found


def features() -> str:
    """The table of features: ten columns would not fit on a page, so those packages are named that have it."""
    record = recorded()
    rows = ["| | ldpopt | of the nine others |", "|---|---|---|"]
    for feature, (title, _) in FEATURES.items():
        answers = {peer: record[peer]["features"][feature] for peer in MODULES}
        own = answers.pop("ldpopt")
        has = [named(peer, answer) for peer, answer in answers.items() if answer["answer"] != "no"]
        said = "–" if own["answer"] == "no" else own.get("note", "yes")
        rows.append(f"| {title} | {said} | {', '.join(has) or '–'} |")
    return "\n".join(rows)


def named(peer: str, answer: dict[str, Any]) -> str:
    """A package that has a feature, with what is to be known of it."""
    note = answer.get("note", "" if answer["answer"] == "yes" else "fails")
    return f"`{peer}`" + f" ({note})" * bool(note)


def evidence() -> str:
    """For each feature what was called, and where there is none, which names look alike."""
    record = recorded()
    rows = ["| | called | similar names of other things |", "|---|---|---|"]
    for feature, (title, _) in FEATURES.items():
        called, alike = [], []
        for peer in MODULES:
            answer = record[peer]["features"][feature]
            if answer["answer"] != "no":
                called.append(f"{peer}: " + ", ".join(f"`{one}`" for one in answer["by"].split(", ")))
            elif answer["names alike"]:
                names = answer["names alike"]
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                alike.append(f"{peer}: " + ", ".join(f"`{one}`" for one in names[:3]) + more)
        rows.append(f"| {title} | {'; '.join(called)} | {'; '.join(alike) or '–'} |")
    return "\n".join(rows)


def searched() -> str:
    """How many names were searched."""
    record = recorded()
    told = [f"{record[peer]['names']} of `{peer}` {record[peer]['version']}" for peer in PEERS]
    return "Public names searched:\n\n" + "\n".join(f"- {line}" for line in told)


def loss() -> str:
    """The times of qif and of a plain program, and what qif's solvers return."""
    record = recorded()
    qif = record["qif"]
    lines = [
        f"The nearest is `qif` {qif['version']}, with optimal expected loss under a metric. The 0/1 loss takes it",
        ", ".join(f"{spent(one)} for {k}" for k, one in qif["pitfalls"]["times"].items()) + " answers.",
        "The channels that a solver returns must be measured. Of twenty problems with a graded loss, each of its",
        "solvers gave",
        "",
        "| solver | no channel | $\\varepsilon$ infinite: entries next to exact zeros | the largest such entry |",
        "|---|---|---|---|",
    ]
    for solver, one in qif["pitfalls"]["near zeros"].items():
        largest = f"{one['largest']:.1e}" if one["largest"] else "–"
        lines.append(f"| {solver} | {one['no channel']} | {one['infinite']} | {largest} |")
    plain = ", ".join(f"{spent(one)} for {k}" for k, one in record["plain programs"].items())
    return "\n".join([
        *lines, "",
        "A linear program over all staircase patterns, written directly in cvxpy with HiGHS, takes",
        f"{plain} answers. Each further answer about doubles the time.",
        "The [dynamic program](optimal-channel.md#sort-partition-randomize) does not have that limit.",
    ])  # fmt: skip


def pitfalls() -> str:
    """What was found wrong, with the numbers. A release that has mended something stops this: the sentence is to go."""
    record = recorded()
    found: dict[str, Any] = {peer: record[peer]["pitfalls"] for peer in PEERS}
    named = {peer: f"`{peer}` {record[peer]['version']}" for peer in PEERS}
    return "\n".join([
        *_set_bits(named["pure-ldp"], found["pure-ldp"]["rappor"]),
        *_fixed_seeds(named["pure-ldp"], found["pure-ldp"]["fast local hashing"]),
        *_clipped(named["multi-freq-ldpy"], found["multi-freq-ldpy"]["clipped"]),
        *_transposed(named["multi-freq-ldpy"], found["multi-freq-ldpy"]["transposed"]),
        *_negative(named["autodp"], found["autodp"]["negative"]),
        *_reversed(named["opendp"], found["opendp"]["reversed bits"]),
        *(line for peer in PEERS for line in _newest(named[peer], found[peer].get("with the newest"))),
    ])  # fmt: skip


def _set_bits(name: str, found: dict[str, float]) -> list[str]:
    kept, meant = found["a set bit is reported as set"], found["it should be"]
    assert kept == 1.0 > meant, found
    return [
        f"- {name}: `RAPPORClient` reports a set bit as set in {100 * kept:.0f} % of the reports,",
        f"  where {100 * meant:.0f} % are meant: it never clears a bit, so that the report is not private.",
    ]


def _fixed_seeds(name: str, found: dict[str, float]) -> list[str]:
    few, many = found["times the theoretical error, 10^5 reports"], found["10^6 reports"]
    assert 5 < few < many, found
    return [
        f"- {name}: fast local hashing with {found['seeds']} fixed seeds has a permanent bias. If half of the",
        f"  respondents have the same one of 32 answers, the mean squared error of the others is {few:.0f} times the",
        "  theoretical one",
        f"  at $10^5$ reports, and {many:.0f} times at $10^6$.",
    ]


def _clipped(name: str, found: dict[str, float]) -> list[str]:
    assert found["estimate"] == 0.0 > found["without bias"], found
    return [
        f"- {name}: estimates are always clipped and renormalized. Where ${found['without bias']:.3f}$ is the",
        f"  estimate without bias, `GRR_Aggregator_MI` says {found['estimate']:g}.",
    ]


def _transposed(name: str, found: dict[str, float]) -> list[str]:
    wrong, other = found["estimate"], found["with the channel transposed"]
    assert min(abs(wrong - found["truth"]), abs(other - found["truth"])) > 0.1, found
    return [
        f"- {name}: `IBU` takes one matrix for a channel and for its transpose. From exact frequencies of a",
        f"  proportion of {found['truth']:g} under a channel that is not symmetric it estimates {wrong:.2f}, or",
        f"  {other:.2f} if the transpose is passed. The channels of its own oracles are symmetric.",
    ]


def _negative(name: str, found: dict[str, float]) -> list[str]:
    assert found["epsilon"] < 0, found
    return [
        f"- {name}: the analytical composition, `ComposeAFA`, of a hundred randomized responses of",
        f"  $\\varepsilon = 0.1$ has $\\varepsilon = {found['epsilon']:.3f}$ at $\\delta = 10^{{-6}}$.",
        f"  The exact value is {found['exact']:.4f}.",
    ]


def _reversed(name: str, found: dict[str, int]) -> list[str]:
    set_bit, estimated_bit = found["the bit that is set"], found["the largest estimate"]
    assert set_bit != estimated_bit, found
    return [
        f"- {name}: `debias_randomized_response_bitvec` reverses the bits of each byte. If bit {set_bit} of the",
        f"  vectors is set, it estimates that bit {estimated_bit} is set.",
    ]


def _newest(name: str, found: dict[str, str] | None) -> list[str]:
    if found is None or found["said"] == "works":
        return []
    return [f"- {name} with `{found['with']}`: `{found['tried']}`", f"  ends with `{found['said']}`."]


def spent(seconds: str | float) -> str:
    """A time as people read it."""
    value = float(seconds)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.2g} ns"

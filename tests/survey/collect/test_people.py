"""What respondents were told of all rounds is true of each of them, whoever joins, leaves, or is written otherwise."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.numbers.rounding import ceil_digits
from ldpopt_survey.collect import privatize as module
from ldpopt_survey.collect.aggregate import Counts, aggregate
from ldpopt_survey.collect.ledger import Ledger, Marks, ledger_of
from ldpopt_survey.collect.manifest import Manifest
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Memoized
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import Plan, compose_claims, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.reports.delivery import verify_delivery
from ldpopt_survey.reports.promises import consent_paragraph
from ldpopt_survey.reports.survey import survey_report
from ldpopt_survey.survey import Survey


@cache
def plan(round: int = 1, rounds: int | None = 2, keep: float = 0.7, name: str = "panel", **more: Any) -> Plan:
    spec = SurveySpec(name, (QuestionSpec("vote", ("no", "yes")),), round=round, rounds=rounds, respondent="id", **more)
    return make_plan(spec, {"vote": [[keep, 1 - keep], [1 - keep, keep]]})


def answers(path: Path, ids: Any, seed: int = 0) -> Path:
    ids = list(ids)
    votes = np.random.default_rng([seed, len(ids)]).choice(["no", "yes"], len(ids))
    pd.DataFrame({"id": ids, "vote": votes}).to_csv(path, index=False)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Privatize the answers of some ids under a plan, by one ledger."""
    number = iter(range(100))

    def once(made: Plan, ids: Any, **more: Any) -> Any:
        at = next(number)
        given = answers(tmp_path / f"a{at}.csv", ids, at)
        return privatize(made, given, tmp_path / f"r{at}.csv", Fresh(), ledger=tmp_path / "l", **more)

    return once


@pytest.mark.full
def test_every_consent_form_holds_for_every_person() -> None:
    """In 100 random panels no person that a ledger lets through is in two reports of a round, in more rounds than any
    of their forms said, or has reports that together tell more than any of their forms said."""
    rng = np.random.default_rng(7)
    plans = {(r, told, keep): plan(r, told, keep) for r in (1, 2, 3) for told in (None, 1, 2, 3) for keep in (0.6, 0.8)}
    refused = 0
    for at in range(100):
        path = Path(os.devnull).parent / "unused"
        ledger, history = _InMemory(path), dict[int, list[tuple[str, Plan]]]()
        for step in range(int(rng.integers(2, 7))):
            made = plans[int(rng.integers(1, 4)), rng.choice([None, 1, 2, 3]), float(rng.choice([0.6, 0.8]))]
            words = f"{made.checksum} {rng.integers(0, 2)}"
            people = np.unique(rng.integers(0, 6, int(rng.integers(1, 6)))).astype(np.uint64)
            why = ledger.standing(made, words, people, different_people=True).reasons
            for person, kind in zip(people.tolist(), why, strict=True):
                after = dict([*history.get(person, []), (words, made)])
                true = words in dict(history.get(person, [])) or _true_of(list(after.values()))
                assert (kind == 0) == true, (at, step, person)
            kept = people[why == 0]
            refused += len(people) - len(kept)
            if len(kept):
                ledger.enter(made, words, Marks(), True, kept)
                for person in kept.tolist():
                    history.setdefault(person, []).append((words, made))
        for made_of in history.values():
            assert _true_of(list(dict(made_of).values()))
    assert refused > 150


def _true_of(plans: list[Plan]) -> bool:
    """Whether the forms of all these plans are true of a person who is in a run of each, by another computation."""
    if len({one.round for one in plans}) < len(plans):
        return False
    epsilon = sum(Fraction(one.epsilon) for one in plans)
    odds = [(1 + one.eta) / 2 for one in plans]
    eta = _total_variation(odds)
    for one in plans:
        if one.rounds is None:
            continue
        told = float(ceil_digits(float(Fraction(one.epsilon) * one.rounds), 4))
        told_eta = float(ceil_digits(_total_variation([(1 + one.eta) / 2] * one.rounds), 4))
        if len(plans) > one.rounds or epsilon > Fraction(told) or eta > told_eta:
            return False
    return True


def _total_variation(keeps: list[float]) -> float:
    """The total variation between all reports of one answer and of the other, of symmetric randomized responses."""
    one, other = np.ones(1), np.ones(1)
    for keep in keeps:
        one, other = np.outer(one, [keep, 1 - keep]).ravel(), np.outer(other, [1 - keep, keep]).ravel()
    return float(np.abs(one - other).sum() / 2)


class _InMemory(Ledger):
    """A ledger without a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._kept: list[Any] = []

    def _content(self) -> Any:
        return b"k" * 32, list(self._kept)

    def _write(self, secret: bytes, runs: Any, new: bool = False) -> None:
        self._kept = list(runs)

    def enter(self, plan: Plan, words: str, marks: Any, alike: bool, people: Any = None) -> Any:
        """As the file's, without its lock."""
        from ldpopt_survey.collect.ledger import Entry

        self._standing(entry := Entry.from_plan(plan, words, marks, people), self._kept, alike).refuse(plan, self.path)
        self._write(b"", [*self._kept, entry])


def test_randomized_response_attains_the_bound_over_rounds() -> None:
    """For a yes/no question the bound over several rounds is the guarantee of its composed reports."""
    made = [plan(keep=keep) for keep in (0.6, 0.8, 0.7)]
    _, eta = compose_claims([one.protected_claims() for one in made])
    assert eta == pytest.approx(_total_variation([(1 + one.eta) / 2 for one in made]), rel=1e-9)


def test_joiners_and_leavers(tmp_path: Path, run: Any) -> None:
    """Everybody has two rounds of their own, in a panel that lasts longer: who joined later may stay longer."""
    assert run(plan(1), range(100)).rounds == (100,)
    second = run(plan(2), range(50, 150))
    assert (second.rounds, second.gone) == ((50, 50), 50)
    with pytest.raises(InvalidInput, match=r"got 0 with other reports of round 3.*and 50 whose reports") as refused:
        run(plan(3), range(50, 200))
    assert "'50'" not in str(refused.value)
    assert not [path for path in tmp_path.iterdir() if "r2.csv" in path.name]
    third = run(plan(3), range(50, 200), leave_out=True)
    assert (third.rows, third.left_out, third.duplicates) == (100, 50, 0)
    assert (third.rounds, third.gone) == ((50, 50), 50)
    assert run(plan(4), range(0, 50)).rounds == (0, 50)  # back after two rounds


def test_nobody_twice_in_a_round(run: Any) -> None:
    """Other words of a round, of other answers, are refused to whoever has reports of it, and only to them."""
    run(plan(1), range(40))
    with pytest.raises(InvalidInput, match=r"got 10 with other reports of round 1.*and 0 whose"):
        run(plan(1), range(30, 60))
    assert run(plan(1), range(30, 60), leave_out=True).rows == 20
    with pytest.raises(InvalidInput, match="got 20 with other"):
        run(plan(1), range(40, 60), leave_out=True)  # nobody is left


WRITINGS = {
    "as text": [f"{one}" for one in range(30)],
    "as floats": [float(one) for one in range(30)],
    "with zeros": [f"{one:05d}" for one in range(30)],
    "with spaces": [f" {one} " for one in range(30)],
    "with a plus": [f"+{one}" for one in range(30)],
    "in wide digits": [f"{one}".translate({48 + d: 0xFF10 + d for d in range(10)}) for one in range(30)],
    "with marks that nobody sees": [f"\ufeff{one}\u200b" if one % 2 else f"\u2060{one}" for one in range(30)],
    "in Arabic digits": [f"{one}".translate({48 + d: 0x0660 + d for d in range(10)}) for one in range(30)],
    "with powers": [f"{one}" if one < 10 else f"{one / 10:g}e+01" for one in range(30)],
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize("writing", WRITINGS)
def test_ids_in_another_writing_are_the_same_people(run: Any, writing: str) -> None:
    """5, 5.0, 00005 and " 5" have one history."""
    run(plan(1, rounds=1), range(30))
    with pytest.raises(InvalidInput, match="and 30 whose"):
        run(plan(2, rounds=1), WRITINGS[writing])


def test_names_in_pieces_are_the_same_people(run: Any) -> None:
    """Letters with their accents in one piece or in two; but e in a name is no power of ten."""
    run(plan(1, rounds=1), ["Zo\u00eb", "Jos\u00e9", "ab", "12e3", "1e5", "1.5e+00"])
    with pytest.raises(InvalidInput, match="and 3 whose"):
        run(plan(2, rounds=1), ["Zoe\u0308", "Jose\u0301", " ab", "12000", "100000", "15"])


def test_a_larger_epsilon_violates_the_consent_form(run: Any) -> None:
    """The forms state two rounds at one epsilon: neither holds for rounds with different ones."""
    run(plan(1, keep=0.6), range(20))
    with pytest.raises(InvalidInput, match="and 20 whose reports of all rounds would exceed"):
        run(plan(2, keep=0.8), range(20))
    with pytest.raises(InvalidInput, match="and 20 whose"):  # this form would say less than both rounds tell
        run(plan(2, keep=0.55), range(20))
    assert run(plan(2, keep=0.55), range(20, 40)).rounds == (20,)
    assert run(plan(2, rounds=None, keep=0.55), range(20)).rounds == (0, 20)


def test_later_consent_forms_bind_too(run: Any) -> None:
    """A form of one round binds after forms of three rounds; a survey of another name starts anew."""
    run(plan(1, rounds=3), range(20))
    with pytest.raises(InvalidInput, match="and 20 whose"):
        run(plan(2, rounds=1), range(20))
    assert run(plan(1, rounds=1, name="another"), range(20)).rounds == (20,)


def test_memoised_words_again_spend_nothing(tmp_path: Path) -> None:
    """The same key and plan repeat the reports, of some, of all, and with more people; later rounds change nothing."""
    create_key(tmp_path / "k")
    answers(tmp_path / "a.csv", range(30))
    more = pd.concat([pd.read_csv(tmp_path / "a.csv"), pd.DataFrame({"id": [88, 99], "vote": ["no", "yes"]})])
    more.to_csv(tmp_path / "more.csv", index=False)
    answers(tmp_path / "b.csv", range(30), 1)
    for at, (number, name, rounds) in enumerate([
        (1, "a", (30,)), (1, "a", (30,)), (2, "b", (0, 30)), (1, "more", (32,)), (1, "a", (30,))
    ]):  # fmt: skip
        out = tmp_path / f"r{at}.csv"
        tally = privatize(plan(number), tmp_path / f"{name}.csv", out, Memoized(tmp_path / "k"), ledger=tmp_path / "l")
        assert tally.rounds == rounds
    assert (tmp_path / "r0.csv.manifest.json").read_bytes() == (tmp_path / "r4.csv.manifest.json").read_bytes()
    assert len(Ledger(tmp_path / "l")._content()[1]) == 3  # type: ignore[index]


def test_a_lost_ledger_is_not_an_empty_one(tmp_path: Path, run: Any) -> None:
    """A later round of a survey that declares its rounds needs the ledger of those before, or nobody was in them."""
    with pytest.raises(InvalidInput, match="a ledger of the rounds of 'panel' before round 2"):
        run(plan(2), range(10))
    assert run(plan(2), range(10), alike=True).rounds == (10,)
    assert run(plan(2), range(10, 20)).rounds == (10,)


def test_ledgers_hold_no_ids(tmp_path: Path, run: Any) -> None:
    """Neither as they are, nor as marks that are the same in two ledgers or two surveys."""
    ids = [f"patient-{one}" for one in range(20)]
    run(plan(1), ids)
    run(plan(1, name="other"), ids)
    content = (tmp_path / "l").read_text()
    assert "patient" not in content
    one, other = Ledger(tmp_path / "l")._content()[1]  # type: ignore[index]
    assert len(one.run.people) == len(other.run.people) == 20
    assert not np.isin(one.run.people, other.run.people).any()


def test_two_runs_at_a_time(tmp_path: Path) -> None:
    """Of four runs over the same people at once one is published, and of a killed one nothing is counted."""
    for at in range(4):
        answers(tmp_path / f"a{at}.csv", range(500), at)

    def once(at: int) -> bool:
        try:
            privatize(plan(1), tmp_path / f"a{at}.csv", tmp_path / f"r{at}.csv", Fresh(), ledger=tmp_path / "l")
        except InvalidInput:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(once, range(4))) == 1
    assert len(list(tmp_path.glob("r*.csv"))) == 1
    assert not list(tmp_path.glob(".r*.partial*"))


@pytest.mark.full
@pytest.mark.parametrize("where", ["publish", "_enter_in_ledger", "privatize_partition", "find_excluded_rows"])
def test_a_killed_run_is_one_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Killed anywhere and repeated, the run counts everybody once; another run is refused once it was entered."""
    answers(tmp_path / "a.csv", range(50))
    whole = getattr(module, where)

    def killed(*given: Any, **more: Any) -> Any:
        if where == "find_excluded_rows":
            whole(*given, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, where, killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            privatize(plan(1), tmp_path / "a.csv", tmp_path / "r.csv", Fresh(), ledger=tmp_path / "l", leave_out=True)
    monkeypatch.setattr(module, where, whole)
    if where == "publish":
        answers(tmp_path / "b.csv", range(50), 1)
        with pytest.raises(InvalidInput, match="got 50 with other reports of round 1"):
            privatize(plan(1), tmp_path / "b.csv", tmp_path / "s.csv", Fresh(), ledger=tmp_path / "l")
    tally = privatize(plan(1), tmp_path / "a.csv", tmp_path / "r.csv", Fresh(), ledger=tmp_path / "l", leave_out=True)
    assert (tally.rows, tally.rounds) == (50, (50,))
    assert len(Ledger(tmp_path / "l")._content()[1]) == 1  # type: ignore[index]


def test_plans_in_a_folder_share_a_ledger(tmp_path: Path, run: Any) -> None:
    """The ledger of another round of the survey is found; of two nobody knows which one counts."""
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    given = answers(tmp_path / "a.csv", range(9))
    privatize(plan(1), given, tmp_path / "r.csv", Fresh(), ledger=ledger_of(first, plan(1)))
    assert ledger_of(second, plan(2)) == ledger_of(first)
    assert ledger_of(second, plan(2, name="another")) == ledger_of(second)
    privatize(plan(1), given, tmp_path / "s.csv", Fresh(), ledger=ledger_of(second))
    with pytest.raises(
        InvalidInput, match=r"one of all rounds of 'panel' \(--ledger names it\), got one.json.ledger and"
    ):
        ledger_of(second, plan(2))


@pytest.mark.parametrize("out", ["r.csv", "r.parquet", "folder"])
def test_reports_count_people_by_rounds_answered(tmp_path: Path, run: Any, out: str) -> None:
    """In the manifest, in counts and their file, on the page, and in what `survey verify` says; sums add up."""
    run(plan(1), range(60))
    made = plan(2)
    delivery = tmp_path / "delivery"
    delivery.mkdir()
    given = answers(tmp_path / "b.csv", range(20, 100), 5)
    privatize(made, given, delivery / out, Fresh(), ledger=tmp_path / "l")
    (delivery / "plan.json").write_text(made.to_json())
    counts = aggregate(made, delivery / out)
    assert counts.rounds == (40, 40)
    assert Counts.from_json(counts.to_json(), made).rounds == (40, 40)
    words = (
        "With this round, people have taken part: 40 in 1 round, 40 in 2 rounds, of at most 2 that they were told of"
    )
    page = survey_report(made, Survey(made).findings(delivery / out)[0], counts, pictures=False)
    assert words in page
    (delivery / "page.html").write_text(page)
    found = verify_delivery(delivery)
    assert found
    assert words in repr(found)


def test_reports_beyond_the_announced_rounds_fail_verification(tmp_path: Path) -> None:
    """A manifest with people in more rounds than their consent forms state does not verify."""
    made = plan(2, rounds=1)
    privatize(made, answers(tmp_path / "a.csv", range(60)), tmp_path / "r.parquet", Fresh())
    (tmp_path / "a.csv").unlink()
    (tmp_path / "plan.json").write_text(made.to_json())
    assert verify_delivery(tmp_path)
    import pyarrow.parquet as pq

    from ldpopt_survey.collect.manifest import manifest_in_schema, with_manifest

    table = pq.read_table(tmp_path / "r.parquet")
    said = manifest_in_schema(table.schema, "")
    assert said is not None
    changed = Manifest.from_dict(said.to_dict() | {"rounds": [50, 10]}, "")
    pq.write_table(with_manifest(table, changed), tmp_path / "r.parquet")
    assert "people in at most 1 rounds, of which they were told, got 2" in repr(verify_delivery(tmp_path))


def test_the_consent_form_speaks_of_the_persons_own_rounds() -> None:
    """A panel lasts longer than anybody's part in it."""
    assert "You take part in at most 2 rounds;" in consent_paragraph(plan(5))
    assert "You take part in only one round of the survey." in consent_paragraph(plan(3, rounds=1))

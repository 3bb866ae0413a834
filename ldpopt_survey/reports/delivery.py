"""A survey's results as data, and a delivery to findings: all that can be computed again is, and compared."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import read_text
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import SUM_ORDER
from ldpopt.values.results import Result, Rows
from ldpopt.version import __version__
from ldpopt_survey.collect import aggregate as counting
from ldpopt_survey.collect.ledger import ENDING
from ldpopt_survey.collect.manifest import FOLDER, SIDECAR, total
from ldpopt_survey.collect.runner import Runner
from ldpopt_survey.collect.workfolder import is_work
from ldpopt_survey.kit.folder import LANGUAGES
from ldpopt_survey.plan import plan as planning
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.reports.promises import consent_paragraph, rounds_in_words, words_of
from ldpopt_survey.reports.survey import among_those_who_answered, survey_report
from ldpopt_survey.sample.analysis import Analysis
from ldpopt_survey.sample.analysis import Findings as Estimates
from ldpopt_survey.survey import Survey

if TYPE_CHECKING:
    from ldpopt_survey.collect.aggregate import Counts
    from ldpopt_survey.estimate.estimate import Estimate


def results(
    estimates: Mapping[str, Estimate | Estimates],
    counts: Counts,
    analysis: Analysis | None = None,
    answered: Mapping[str, Estimates] | None = None,
) -> dict[str, dict[str, Any]]:
    """JSON-ready estimates by question, and those among the people who answered, each with what it was made from.

    That is the plan's checksum, the fingerprint of all counted rows, and the analysis if it is not the default one.
    """
    asked = Analysis() if analysis is None else analysis
    source: dict[str, Any] = {"plan": counts.plan, "reports": total(counts.sources)}
    source |= {name: getattr(counts, name) for name in ("simulation", "unlabelled")}
    source |= {} if asked.is_default else {"analysis": asked.to_dict()}
    data = {name: {**_shown(estimated, asked.level), **source} for name, estimated in estimates.items()}
    for name, among in (answered or {}).items():
        data[name]["among_those_who_answered"] = _shown(among, asked.level)
    return data


def _shown(estimated: Estimate | Estimates, level: float) -> dict[str, Any]:
    if not isinstance(estimated, Estimates):
        return estimated.to_dict(level)
    groups = {name: inside.to_dict(level) for name, inside in estimated.groups.items()}
    return estimated.whole.to_dict(level) | ({"groups": groups} if groups else {})


_IMAGE = re.compile(r'<img src="data:image/png;base64,[A-Za-z0-9+/=]*"( alt="[^"]*") width="\d+">')
_HOW = re.compile(r'<meta name="ldpopt-analysis" content="([^"]*)">')
_CONSENT = re.compile(
    r"<!-- ldpopt plan ([0-9a-f]{64})(?: language ([\w-]{2,20}))?"
    r"(?: shuffled (\d{1,9}) (\d(?:\.\d+)?(?:e-\d+)?))? -->"
)
_MARK = re.compile(r'<meta name="ldpopt-reports" content="([0-9a-f]{32}) (\S+)">')


@dataclass(frozen=True, eq=False)
class Finding(Result):
    """One check: the name of the file, whether it holds (None if it could not be checked), and the reason in words."""

    name: str
    holds: bool | None
    said: str

    def __repr__(self) -> str:
        word = {True: "ok", False: "FAILED", None: "not checked"}[self.holds]
        return f"{word}: {self.name}: {self.said}"


@dataclass(frozen=True, eq=False)
class Findings(Rows[Finding]):
    """The result of `verify_delivery`; true if no check failed. `simulation`: whether the reports are simulated."""

    findings: tuple[Finding, ...]
    simulation: bool = False

    _records = "findings"

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(finding for finding in self.findings if finding.holds is False)

    def __bool__(self) -> bool:
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"verified": bool(self), "simulation": self.simulation, "findings": list(map(vars, self.findings))}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.findings))


def verify_delivery(folder: str | Path, runner: Runner | None = None) -> Findings:
    """Check a folder with one plan and, as far as they are there, its reports, counts, estimates, page and consent.

    The plan is proved again from its integers. Reports must belong to it and have the bytes and rows that their
    manifests state; they are counted again, and counts, estimates (``ldpopt survey estimate --json``) and the text of
    pages are recomputed from them. A consent form must be of this plan. Keys, work folders and raw answers must not be
    there. Others are not checked.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise invalid("delivery", "a folder", Phrase("something else" if folder.exists() else "none"), str(folder))
    paths = sorted(folder.iterdir())
    kinds = {path: _kind(path) for path in paths}
    plans = [path for path in paths if kinds[path] == planning.FORMAT]
    if len(plans) != 1:
        raise invalid("delivery", "one plan file", Phrase(f"{len(plans)}"), str(folder))
    try:
        plan = Plan.from_json(read_text(plans[0]))
    except LdpoptError as error:
        return Findings((Finding(plans[0].name, False, str(error)),))
    checked = _Checked(plan, runner)
    claims = f"epsilon {ceil_digits(plan.epsilon, 4)} and eta {ceil_digits(plan.eta, 4)}"
    said = f"all reports of a person within {claims}, proved from integers"
    said += f"; seen by everybody is who left {', '.join(plan.seen)} empty" if plan.seen else ""
    said += f"; not protected, as the plan accepts: {', '.join(plan.unprotected)}" if plan.unprotected else ""
    findings = [Finding(plans[0].name, True, said)]
    checks: dict[str, Callable[[Path], str]] = {
        "reports": checked.reports, counting.FORMAT: checked.counts, "results": checked.estimates, "page": checked.page,
        "consent": checked.consent,
    }  # fmt: skip
    for kind, check in checks.items():
        findings += [_finding(path, check) for path in paths if kinds[path] == kind]
    findings += list(_others(kinds))
    return Findings(tuple(findings), checked.simulation)


class _Checked:
    """The counts so far, by the fingerprint of their rows."""

    def __init__(self, plan: Plan, runner: Runner | None) -> None:
        self.plan, self.survey, self.runner = plan, Survey(plan), runner
        self.by_rows: dict[str, counting.Counts] = {}
        self.paths: dict[str, list[Path]] = {}
        self.found: list[tuple[frozenset[str], Path]] = []
        self.simulation = False

    def reports(self, path: Path) -> str:
        """Count one file or folder of reports."""
        counts = counting.aggregate(self.plan, path, runner=self.runner)
        self.simulation |= counts.simulation
        self._add(counts, [path])
        self.found.append((counts.sources, path))
        if len(counts.rounds) > (told := self.plan.rounds or len(counts.rounds)):
            raise invalid("reports", f"people in at most {told} rounds, of which they were told", len(counts.rounds))
        what = "simulated reports" if counts.simulation else "reports"
        said = f"{counts.rows:,} {what} of the plan, as they were written"
        return "; ".join(filter(None, [said, rounds_in_words(self.plan, counts.rounds).rstrip(".")]))

    def counts(self, path: Path) -> str:
        """Compare a file of counts with the reports that it names as its source."""
        said = counting.Counts.from_json(read_text(path), self.plan)
        chosen = self._sources_of(said, path)
        pairs = [(names[0], names[1]) for names in said.tables if len(names) == 2]
        again = counting.aggregate(self.plan, chosen, pairs, self.runner)
        if said != again:
            raise invalid("counts", "those of their reports", Phrase("others"), str(path))
        self._add(again, chosen)
        return f"counts of {said.rows:,} reports, counted again"

    def estimates(self, path: Path) -> str:
        """Compare a file of estimates with estimates from the reports that it names as its source."""
        data = strict.json_value(read_text(path), str(path))
        counts = self._counted({str(recorded.get("reports")) for recorded in data.values()}, path)
        hows = {strict.json_text(recorded.get("analysis")) for recorded in data.values()}
        if len(hows) != 1:
            raise invalid("estimates", "one analysis", Phrase("several"), str(path))
        analysis = _analysis(next(iter(data.values())).get("analysis"))
        estimated = self._estimates(counts, analysis)
        answered = among_those_who_answered(self.plan, estimated)
        want = strict.json_value(strict.json_text(results(estimated, counts, analysis, answered)))
        if not _close(data, want):
            raise invalid("estimates", "those of their reports", Phrase("others"), str(path))
        return f"estimates of {len(data)} questions from {counts.rows:,} reports, computed again"

    def page(self, path: Path) -> str:
        """Compare the text of a page with a page made again from its reports."""
        text = read_text(path)
        mark = _MARK.search(text)
        if mark is None:
            raise invalid("page", "a page of `ldpopt survey report`", Phrase("another"), str(path))
        if mark[2] != __version__:
            raise _CannotTell(f"written by version {mark[2]}")
        counts = self._counted({mark[1]}, path)
        how = _HOW.search(text)
        analysis = _analysis(None if how is None else strict.json_value(unescape(how[1]), str(path)))
        estimated = self._estimates(counts, analysis)
        bare = _IMAGE.sub(r"<img\1>", text)  # the bytes of pictures differ between versions of the drawing library
        if bare != survey_report(self.plan, estimated, counts, pictures=False, analysis=analysis):
            raise invalid("page", "the text that its reports give", Phrase("another"), str(path))
        return f"text and tables from {counts.rows:,} reports, made again"

    def consent(self, path: Path) -> str:
        """Compare a consent form with the one that its plan gives."""
        text = read_text(path)
        mark = _CONSENT.search(text)
        if mark is None or mark[1] != self.plan.checksum:
            expected = "a consent form of this plan (`ldpopt survey consent` writes it)"
            raise invalid("consent form", expected, Phrase("one of another plan"), str(path))
        shuffled = None if mark[3] is None else (int(mark[3]), float(mark[4]))
        if (language := mark[2] or LANGUAGES[0]) not in LANGUAGES:
            raise _CannotTell(f"made of this plan, in a language ({language}) whose sentences do not come with ldpopt")
        words = words_of(self.plan, "consent", language)
        promised = consent_paragraph(self.plan, shuffled, words).splitlines()
        if shuffled is None and words.sentences["shuffled"].partition("{")[0].strip() in text:
            raise _CannotTell("made of this plan, but what it says of a shuffler was added by hand")
        if not {line for line in promised if "<!--" not in line} <= set(text.splitlines()):
            raise _CannotTell("made of this plan, but what it promises was changed by hand")
        return "what this plan promises, word for word"

    def _add(self, counts: counting.Counts, paths: list[Path]) -> None:
        self.by_rows[total(counts.sources)], self.paths[total(counts.sources)] = counts, paths

    def _estimates(self, counts: counting.Counts, analysis: Analysis) -> dict[str, Estimates]:
        reports = counts if analysis.of_counts else self.paths[total(counts.sources)]
        return self.survey.findings(reports, analysis)[0]

    def _counted(self, marks: set[str], path: Path) -> counting.Counts:
        mark = marks.pop() if len(marks) == 1 else ""
        if mark not in self.by_rows:
            raise _not_here(path)
        return self.by_rows[mark]

    def _sources_of(self, said: counting.Counts, path: Path) -> list[Path]:
        """The files of reports whose partitions are those of the counts, each once."""
        left, chosen = set(said.sources), []
        for parts, source in self.found:
            if parts and parts <= left:
                left -= parts
                chosen.append(source)
        if left or not chosen:
            raise _not_here(path)
        return chosen


def _analysis(said: Any) -> Analysis:
    return Analysis() if said is None else Analysis.from_dict(said)


class _CannotTell(Exception):
    """Raised if something can be neither confirmed nor refuted."""


def _finding(path: Path, check: Callable[[Path], str]) -> Finding:
    try:
        return Finding(path.name, True, check(path))
    except _CannotTell as reason:
        return Finding(path.name, None, str(reason))
    except LdpoptError as error:
        return Finding(path.name, False, str(error))


MUST_NOT = {
    "key": "a survey key: whoever has it can undo the privatization",
    "work": "the work folder of an unfinished run, perhaps with its key",
    "sidecar": "the manifest of reports that are not here",
}
"""What must not be in a delivery, by its kind; a manifest may stand beside its reports."""


def _others(kinds: Mapping[Path, str]) -> Iterator[Finding]:
    """Findings for files that are not checked, and for files that must not be in a delivery."""
    for path, kind in kinds.items():
        if kind == "":
            yield Finding(path.name, None, "no file of a survey that can be recomputed")
        elif kind == "ledger":
            yield Finding(path.name, None, "the ledger of privacy, for the holder of the answers: do not hand it on")
        elif kind in MUST_NOT and not (kind == "sidecar" and path.with_name(path.name.removesuffix(SIDECAR)).exists()):
            yield Finding(path.name, False, MUST_NOT[kind])


def _kind(path: Path) -> str:
    """The kind of a file: a format, "reports", "results", "page", "key", "work", "sidecar", or "" if unknown."""
    if path.is_dir():
        if is_work(path):
            return "work"
        holds = (path / FOLDER).exists() or any(inside.suffix in (".csv", ".parquet") for inside in path.iterdir())
        return "reports" if holds else ""
    if not path.is_file():
        return ""
    if path.suffix in (".csv", ".parquet"):
        return "reports"
    if path.name.endswith(SIDECAR):
        return "sidecar"
    if path.name.endswith(ENDING):
        return "ledger"
    with open(path, "rb") as file:
        if file.read(17) == b"ldpopt-survey-key":
            return "key"
    if path.suffix in (".html", ".htm"):
        return "page"
    if path.suffix == ".md" and path.stat().st_size < 1 << 20 and "<!-- ldpopt plan" in read_text(path):
        return "consent"
    return _json_kind(path) if path.suffix == ".json" else ""


def _json_kind(path: Path) -> str:
    try:
        data = strict.json_value(read_text(path), path.name)
    except InvalidInput:
        return ""
    if isinstance(data, dict) and isinstance(data.get("format"), str):
        return data["format"] if data["format"] in (planning.FORMAT, counting.FORMAT) else ""
    entries = data.values() if isinstance(data, dict) and data else [None]
    whole = all(isinstance(entry, dict) and "reports" in entry for entry in entries)
    return "results" if whole else ""


def _not_here(path: Path) -> InvalidInput:
    return invalid(path.name, "what follows from the reports of this delivery", Phrase("what is of others"))


def _close(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal, except for the last digits of their numbers."""
    if isinstance(value, dict) and isinstance(other, dict):
        return set(value) == set(other) and all(_close(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_close, value, other))
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=SUM_ORDER, abs_tol=SUM_ORDER)
    return type(value) is type(other) and bool(value == other)

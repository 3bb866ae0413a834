"""Convert a survey's results to data, and verify a delivery: recompute and compare all that can be recomputed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ldpopt_survey.collect.manifest import FOLDER, SIDECAR, add_fingerprints
from ldpopt_survey.collect.runner import Runner
from ldpopt_survey.collect.workfolder import is_work_folder
from ldpopt_survey.kit.folder import LANGUAGES
from ldpopt_survey.plan import plan as planning
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.reports.promises import consent_paragraph, rounds_in_words, words_of
from ldpopt_survey.reports.survey import among_those_who_answered, survey_report
from ldpopt_survey.sample.analysis import Analysis, questions_without_reports
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
    without_reports: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Convert estimates to JSON-ready values by question, each with its source.

    Estimates among those who answered are included, and each question names its groups without an estimate. The source
    is the plan's checksum, the fingerprint of all counted rows, the analysis if it is not the default one, and the
    questions `without_reports`, if there are any.
    """
    analysis_used = Analysis() if analysis is None else analysis
    source: dict[str, Any] = {"plan": counts.plan, "reports": add_fingerprints(counts.sources)}
    source |= {name: getattr(counts, name) for name in ("simulation", "unlabelled")}
    source |= {} if analysis_used.is_default else {"analysis": analysis_used.to_dict()}
    source |= {"questions_without_reports": list(without_reports)} if without_reports else {}
    data = {
        name: {**_estimates_to_dict(estimated, analysis_used.level), **source} for name, estimated in estimates.items()
    }
    for name, among in (answered or {}).items():
        data[name]["among_those_who_answered"] = _estimates_to_dict(among, analysis_used.level)
    return data


def _estimates_to_dict(estimates: Estimate | Estimates, level: float) -> dict[str, Any]:
    if not isinstance(estimates, Estimates):
        return estimates.to_dict(level)
    groups = {name: estimate.to_dict(level) for name, estimate in estimates.groups.items()}
    data = estimates.whole.to_dict(level) | ({"groups": groups} if groups else {})
    return data | ({"groups_left_out": dict(estimates.groups_left_out)} if estimates.groups_left_out else {})


_IMAGE_TAG = re.compile(r'<img src="data:image/png;base64,[A-Za-z0-9+/=]*"( alt="[^"]*") width="\d+">')
_ANALYSIS_TAG = re.compile(r'<meta name="ldpopt-analysis" content="([^"]*)">')
_CONSENT_TAG = re.compile(
    r"<!-- ldpopt plan ([0-9a-f]{64})(?: language ([\w-]{2,20}))?"
    r"(?: shuffled (\d{1,9}) (\d(?:\.\d+)?(?:e-\d+)?))? -->"
)
_REPORTS_TAG = re.compile(r'<meta name="ldpopt-reports" content="([0-9a-f]{32}) (\S+)">')


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
    """The result of `verify_delivery`; true if no check failed.

    simulation : True if the reports are simulated.
    """

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
        """Convert the findings to JSON-ready values."""
        return {"verified": bool(self), "simulation": self.simulation, "findings": list(map(vars, self.findings))}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.findings))


def verify_delivery(folder: str | Path, runner: Runner | None = None) -> Findings:
    """Check a folder with a plan and its reports, counts, estimates, HTML page and consent form.

    The plan is proved again from its integers. Reports must belong to it and have the bytes and rows that their
    manifests state. They are counted again. Counts, estimates (``ldpopt survey estimate --json``) and the text of HTML
    reports are recomputed from them. A consent form must be of this plan. Keys, work folders and raw answers must not
    be there. Other files are not checked.

    Parameters
    ----------
    folder : The folder.
    runner : Where reports are counted; in this thread by default.

    Returns
    -------
    Findings
        One finding per file. It is true if no check failed.

    Raises
    ------
    InvalidInput
        If there is not exactly one plan.
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
    delivery_check = _DeliveryCheck(plan, runner)
    claims = f"epsilon {ceil_digits(plan.epsilon, 4)} and eta {ceil_digits(plan.eta, 4)}"
    reason = f"all reports of a person within {claims}, proved from integers"
    reason += (
        f"; seen by everybody is who left {', '.join(plan.questions_with_empty_reports)} empty"
        if plan.questions_with_empty_reports
        else ""
    )
    reason += f"; not protected, as the plan accepts: {', '.join(plan.unprotected)}" if plan.unprotected else ""
    findings = [Finding(plans[0].name, True, reason)]
    checks: dict[str, Callable[[Path], str]] = {
        "reports": delivery_check.reports, counting.FORMAT: delivery_check.counts, "results": delivery_check.estimates,
        "page": delivery_check.page,
        "consent": delivery_check.consent,
    }  # fmt: skip
    for kind, check in checks.items():
        findings += [_finding(path, check) for path in paths if kinds[path] == kind]
    findings += list(_other_findings(kinds))
    return Findings(tuple(findings), delivery_check.simulation)


class _DeliveryCheck:
    """The counts so far, by the fingerprint of their rows."""

    def __init__(self, plan: Plan, runner: Runner | None) -> None:
        self.plan, self.survey, self.runner = plan, Survey(plan), runner
        self.by_rows: dict[str, counting.Counts] = {}
        self.paths: dict[str, list[Path]] = {}
        self.sources: list[tuple[frozenset[str], Path]] = []
        self.simulation = False

    def reports(self, path: Path) -> str:
        """Count one file or folder of reports."""
        counts = counting.aggregate(self.plan, path, runner=self.runner)
        self.simulation |= counts.simulation
        self._add(counts, [path])
        self.sources.append((counts.sources, path))
        if len(counts.rounds) > (rounds_announced := self.plan.rounds or len(counts.rounds)):
            raise invalid(
                "reports", f"people in at most {rounds_announced} rounds, of which they were told", len(counts.rounds)
            )
        noun = "simulated reports" if counts.simulation else "reports"
        reason = f"{counts.rows:,} {noun} of the plan, as they were written"
        return "; ".join(filter(None, [reason, rounds_in_words(self.plan, counts.rounds).rstrip(".")]))

    def counts(self, path: Path) -> str:
        """Compare a file of counts with the reports that it names as its source."""
        stored_counts = counting.Counts.from_json(read_text(path), self.plan)
        paths = self._sources_of(stored_counts, path)
        pairs = [(names[0], names[1]) for names in stored_counts.tables if len(names) == 2]
        recomputed = counting.aggregate(self.plan, paths, pairs, self.runner)
        if stored_counts != recomputed:
            raise InvalidInput(f"{path}: the counts differ from those of their reports")
        self._add(recomputed, paths)
        return f"counts of {stored_counts.rows:,} reports, counted again"

    def estimates(self, path: Path) -> str:
        """Compare a file of estimates with estimates from the reports that it names as its source."""
        data = strict.json_value(read_text(path), str(path))
        counts = self._counts_of({str(recorded.get("reports")) for recorded in data.values()}, path)
        analyses = {strict.json_text(recorded.get("analysis")) for recorded in data.values()}
        if len(analyses) != 1:
            raise InvalidInput(f"{path}: the estimates are of several analyses; expected one")
        analysis = _analysis(next(iter(data.values())).get("analysis"))
        estimates = self._estimates(counts, analysis)
        answered = among_those_who_answered(self.plan, estimates)
        without_reports = questions_without_reports(self.plan, estimates)
        recomputed_data = results(estimates, counts, analysis, answered, without_reports)
        recomputed = strict.json_value(strict.json_text(recomputed_data))
        if not _almost_equal(data, recomputed):
            raise InvalidInput(f"{path}: the estimates differ from those of their reports")
        return f"estimates of {len(data)} questions from {counts.rows:,} reports, computed again"

    def page(self, path: Path) -> str:
        """Compare the text of a page with a page made again from its reports."""
        text = read_text(path)
        reports_tag = _REPORTS_TAG.search(text)
        if reports_tag is None:
            raise InvalidInput(f"{path} is not an HTML report of `ldpopt survey report`")
        if reports_tag[2] != __version__:
            raise _Undecidable(f"written by version {reports_tag[2]}")
        counts = self._counts_of({reports_tag[1]}, path)
        analysis_tag = _ANALYSIS_TAG.search(text)
        analysis = _analysis(None if analysis_tag is None else strict.json_value(unescape(analysis_tag[1]), str(path)))
        estimates = self._estimates(counts, analysis)
        text_without_images = _IMAGE_TAG.sub(
            r"<img\1>", text
        )  # the bytes of figures differ between versions of the plotting library
        if text_without_images != survey_report(self.plan, estimates, counts, pictures=False, analysis=analysis):
            raise InvalidInput(f"{path}: the text of the HTML report differs from what its reports give")
        return f"text and tables from {counts.rows:,} reports, made again"

    def consent(self, path: Path) -> str:
        """Compare a consent form with the one that its plan gives."""
        text = read_text(path)
        tag = _CONSENT_TAG.search(text)
        if tag is None or tag[1] != self.plan.checksum:
            expected = "a consent form of this plan (`ldpopt survey consent` writes it)"
            raise invalid("consent form", expected, Phrase("one of another plan"), str(path))
        shuffled = None if tag[3] is None else (int(tag[3]), float(tag[4]))
        if (language := tag[2] or LANGUAGES[0]) not in LANGUAGES:
            raise _Undecidable(f"made of this plan, in a language ({language}) whose sentences do not come with ldpopt")
        words = words_of(self.plan, "consent", language)
        expected_lines = consent_paragraph(self.plan, shuffled, words).splitlines()
        if shuffled is None and words.sentences["shuffled"].partition("{")[0].strip() in text:
            raise _Undecidable("made of this plan, but what it says of a shuffler was added by hand")
        if not {line for line in expected_lines if "<!--" not in line} <= set(text.splitlines()):
            raise _Undecidable("made of this plan, but what it promises was changed by hand")
        return "what this plan promises, word for word"

    def _add(self, counts: counting.Counts, paths: list[Path]) -> None:
        self.by_rows[add_fingerprints(counts.sources)], self.paths[add_fingerprints(counts.sources)] = counts, paths

    def _estimates(self, counts: counting.Counts, analysis: Analysis) -> dict[str, Estimates]:
        reports = counts if analysis.of_counts else self.paths[add_fingerprints(counts.sources)]
        return self.survey.findings(reports, analysis)[0]

    def _counts_of(self, fingerprints: set[str], path: Path) -> counting.Counts:
        fingerprint = fingerprints.pop() if len(fingerprints) == 1 else ""
        if fingerprint not in self.by_rows:
            raise _missing_source(path)
        return self.by_rows[fingerprint]

    def _sources_of(self, counts: counting.Counts, path: Path) -> list[Path]:
        """The files of reports whose partitions are those of the counts, each once."""
        missing_parts, sources = set(counts.sources), []
        for parts, source in self.sources:
            if parts and parts <= missing_parts:
                missing_parts -= parts
                sources.append(source)
        if missing_parts or not sources:
            raise _missing_source(path)
        return sources


def _analysis(data: Any) -> Analysis:
    return Analysis() if data is None else Analysis.from_dict(data)


class _Undecidable(Exception):
    """Raised if something can be neither confirmed nor refuted."""


def _finding(path: Path, check: Callable[[Path], str]) -> Finding:
    try:
        return Finding(path.name, True, check(path))
    except _Undecidable as reason:
        return Finding(path.name, None, str(reason))
    except LdpoptError as error:
        return Finding(path.name, False, str(error))


FORBIDDEN_FILES = {
    "key": "a survey key: whoever has it can undo the privatization",
    "work": "the work folder of an unfinished run, perhaps with its key",
    "sidecar": "the manifest of reports that are not here",
}
"""Files that must not be in a delivery, by their type; a manifest may accompany its reports."""


def _other_findings(kinds: Mapping[Path, str]) -> Iterator[Finding]:
    """Findings for files that are not checked, and for files that must not be in a delivery."""
    for path, kind in kinds.items():
        if kind == "":
            yield Finding(path.name, None, "no file of a survey that can be recomputed")
        elif kind == "ledger":
            yield Finding(path.name, None, "the ledger of privacy, for the holder of the answers: do not hand it on")
        elif kind in FORBIDDEN_FILES and not (
            kind == "sidecar" and path.with_name(path.name.removesuffix(SIDECAR)).exists()
        ):
            yield Finding(path.name, False, FORBIDDEN_FILES[kind])


def _kind(path: Path) -> str:
    """The kind of a file: a format, "reports", "results", "page", "key", "work", "sidecar", or "" if unknown."""
    if path.is_dir():
        if is_work_folder(path):
            return "work"
        has_reports = (path / FOLDER).exists() or any(entry.suffix in (".csv", ".parquet") for entry in path.iterdir())
        return "reports" if has_reports else ""
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
    is_results = all(isinstance(entry, dict) and "reports" in entry for entry in entries)
    return "results" if is_results else ""


def _missing_source(path: Path) -> InvalidInput:
    return invalid(path.name, "what follows from the reports of this delivery", Phrase("what is of others"))


def _almost_equal(value: Any, other: Any) -> bool:
    """Return True if two JSON values are equal, except for the last digits of their numbers."""
    if isinstance(value, dict) and isinstance(other, dict):
        return set(value) == set(other) and all(_almost_equal(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_almost_equal, value, other))
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=SUM_ORDER, abs_tol=SUM_ORDER)
    return type(value) is type(other) and bool(value == other)

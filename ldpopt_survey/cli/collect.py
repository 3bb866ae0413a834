"""Commands from answers to reports (``ldpopt survey privatize``, ``paper``, ``enter``) and counts (``aggregate``).

Reports from devices: ``ldpopt survey kit``, ``collect``, ``invitations`` and ``export``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ldpopt.cli import claim, claim_folder, options, progress, refuse_stream, say, seconds, write_all, write_folder
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import need
from ldpopt.files.atomic import read_text
from ldpopt_survey.cli.arguments import read_plan

if TYPE_CHECKING:
    from ldpopt_survey.collect.randomness import Randomness
    from ldpopt_survey.collect.runner import Runner
    from ldpopt_survey.plan.plan import Plan
    from ldpopt_survey.server.progress import Progress


@options("""
    out: --out -o | Folder for the questionnaire.
    collector: --collector URL | Address for reports without 'submissions', if not the page's own: https://...
    texts: --texts FILE | Texts of the survey in one language (JSON); may be repeated.
    """)
def kit(
    plan: Path, out: Path = Path("kit"), collector: str = "./", texts: list[Path] | None = None, force: bool = False
) -> None:
    """Generate a web questionnaire that sends only reports, never answers.

    Any web server can host it.

    ldpopt survey kit plan.json --out kit
    """
    from ldpopt.numbers.rounding import ceil_digits
    from ldpopt_survey.kit.folder import kit_files, untranslated_keys

    claim_folder(out, force)
    survey_plan = read_plan(plan)
    texts_read = [read_text(path) for path in texts or ()]
    files = kit_files(survey_plan, collector, texts_read)
    write_folder(out, files, force)
    say(f"{len(files)} files in {out}; open {out / 'index.html'} through a web server")
    for question in survey_plan.questions:
        proof = question.channel.proof()
        claims = f"epsilon {ceil_digits(proof.epsilon, 4)}, eta {ceil_digits(proof.eta, 4)}"
        booklet_note = f", a booklet for {question.probability} of the devices" if question.probability < 1 else ""
        say(f"  {question.name}: {len(question.categories)} answers, {claims}{booklet_note}")
    for public_question in survey_plan.public:
        source = "comes with the invitation" if public_question.invited else "asked"
        count = len(public_question.answers)
        say(f"  {public_question.name}: {count} answers, {source}; NOT PROTECTED, sent as they are")
    public_names = [question.name for question in survey_plan.public]
    if missing_columns := [name for name in survey_plan.carry if name not in public_names]:
        say(f"  not asked here, so missing from these reports: {', '.join(missing_columns)}")
    for code, keys in untranslated_keys(texts_read).items():
        promise = ", the promise among them" if any(key.startswith("promise") for key in keys) else ""
        say(f"  NOT TRANSLATED into {code}, and shown in English{promise}: {', '.join(keys)}")
    mode = "memoised under a key of the device" if survey_plan.respondent is not None else "fresh"
    say(f"  words: {mode}; reports go to {collector}submissions")


EXPOSED_WARNING = (
    "Every machine that reaches this address can now send reports, unencrypted: put a reverse proxy with TLS in front "
    "of it (docs/how-to/survey/collection-server.md), and keep what that proxy logs in mind: it sees addresses."
)


@options("""
    kit: --kit | Serve the files of this folder (ldpopt survey kit).
    host: --host | Address to listen on; other machines can send unencrypted reports unless it is loopback.
    port: --port 0..65535 | Port to listen on; 0 chooses a free one.
    token: --token | File with the token that /counts and /progress require; created if it is missing.
    origin: --origin URL | Another site whose pages may submit: https://...
    rate: --rate 1.. | Largest number of submissions per second, from all senders together.
    close: --close | Close the plan's round in the database forever, and exit.
    check: --check | Test everything that a collector needs, with a durable write, and exit (1 if a test fails).
    """)
def collect(
    plan: Path, db: str = "reports.db", kit: Path | None = None, host: str = "127.0.0.1", port: int = 8000,
    token: Path | None = None, origin: list[str] | None = None, rate: float = 2000, close: bool = False,
    check: bool = False,
) -> None:  # fmt: skip
    """Serve a questionnaire and collect the reports in a database.

    A report is acknowledged once it is on disk.

    No address, user agent, cookie or time of day is kept. Stop it with Ctrl-C. `aggregate`, `estimate`, `report` and
    `export` can read the database at any time. Needs ldpopt\\[collect].
    """
    from ldpopt_survey.server import collector, database, static_files
    from ldpopt_survey.server.databases import display_name
    from ldpopt_survey.server.limits import origin_of, rate_of
    from ldpopt_survey.server.web import address, is_loopback, listen, read_token, serve

    rate, origins = rate_of(rate), [origin_of(site) for site in origin or ()]
    survey_plan = read_plan(plan)
    survey_round = f"{survey_plan.name!r}, round {survey_plan.round}"
    if close:
        with database(db, survey_plan) as store:
            store.close_round()
            summary = store.summary()
        say(f"closed {survey_round}, with {summary.reports:,} reports, in {display_name(db)}")
        return
    need("starlette", "uvicorn", "prometheus_client")  # checked before a database is made
    if check:
        from ldpopt_survey.server.health import checks

        test_results = list(checks(survey_plan, db, kit, token, host, port))
        say(*(f"{'ok' if holds else 'FAILED'}: {sentence}" for holds, sentence in test_results))
        if not all(holds for holds, _ in test_results):
            raise typer.Exit(1)
        return
    files = static_files(kit, survey_plan.checksum) if kit is not None else None
    if survey_plan.round > (survey_plan.rounds or survey_plan.round):
        with database(db, survey_plan, create=True) as store:
            if not store.state().invited:
                raise InvalidInput(
                    f"{display_name(db)}: round {survey_plan.round} exceeds the rounds of the plan, so it requires "
                    "invitations by respondents' ids (invitations --frame)"
                )
    with listen(host, port) as listener:
        secret = read_token(token) if token is not None else None
        with database(db, survey_plan, create=True) as store:
            app = collector(survey_plan, store, files, secret, origins, rate, lambda: _progress(survey_plan, db))
            print(f"collecting {survey_round} at {address(host, listener)} into {display_name(db)}", flush=True)
            if store.state().closed:
                print("This round is closed: every new submission is refused.", flush=True)
            if not is_loopback(host):
                print(EXPOSED_WARNING, file=sys.stderr, flush=True)
            serve(app, listener)


def _progress(plan: Plan, db: str) -> list[Progress]:
    """The progress of the questions towards their target half-widths, by the reports in a database."""
    from ldpopt_survey.collect.aggregate import aggregate
    from ldpopt_survey.sample.analysis import estimate_counts
    from ldpopt_survey.server.progress import progress_of

    counts, estimates = aggregate(plan, db), dict.fromkeys(plan.answers)
    for name in estimates:
        with suppress(InvalidInput):  # nobody was asked it yet
            estimates[name] = estimate_counts(plan, name, counts, None, True)
    return progress_of(plan, estimates)


@options("""
    count: [COUNT] 1.. | Number of invitations; not needed with --frame.
    frame: --frame FILE | Draw one invitation per row of this sampling frame (CSV), with its group columns and ids.
    ledger: --ledger FILE | Ledger of all rounds of the survey, if it is not in the folder of PLAN.
    no_other_rounds: --alike | Confirm that nobody in the frame took part in a round missing from the ledger.
    leave_out: --leave-out | Skip people who would exceed their announced rounds, instead of refusing the frame.
    out: --out -o | File for the invitations, one per line.
    link: --link PREFIX | Text before each invitation, such as the questionnaire's link up to 'invitation='.
    """)
def invitations(
    plan: Path, count: int | None = None, db: str = "reports.db", out: Path = Path("invitations.txt"), link: str = "",
    frame: Path | None = None, ledger: Path | None = None, no_other_rounds: bool = False,
    leave_out: bool = False,
) -> None:  # fmt: skip
    """Draw invitations, each for one submission.

    From then on, every submission to the round needs one.

    The database keeps only their hashes and the groups of a frame, and does not link reports to invitations.
    """
    from ldpopt_survey.collect.ledger import ledger_of
    from ldpopt_survey.server import database
    from ldpopt_survey.server.invitations import Invited, invite_by_file, is_interrupted, read_frame

    survey_plan = read_plan(plan)
    if not is_interrupted(survey_plan, out):
        claim([out], force=None)
    if (count is None) == (frame is None):
        raise invalid(
            "invitations", "either their number or --frame FILE", Phrase("neither" if count is None else "both")
        )
    ids, groups = ([], []) if frame is None else read_frame(survey_plan, frame)
    if survey_plan.round > (survey_plan.rounds or survey_plan.round) and not ids:
        raise InvalidInput(
            f"--frame: round {survey_plan.round} exceeds the rounds of the plan, so the frame must have respondents' "
            f"ids in a column {survey_plan.respondent!r}"
        )
    invited = (
        partial(Invited, survey_plan, ledger or ledger_of(plan, survey_plan), ids, no_other_rounds, leave_out)
        if ids
        else None
    )
    with database(db, survey_plan, create=True) as store:
        invitation_count = invite_by_file(survey_plan, store, out, link, count or len(groups), groups, invited)
    say(f"{invitation_count:,} invitations in {out}; the database has only their hashes")
    if invited is not None and (left_out_count := len(ids) - invitation_count):
        say(f"  {left_out_count:,} are not invited: they have taken part as often as they were told")
    if survey_plan.respondent is not None and survey_plan.rounds and invited is None:
        say(f"  NOT COUNTED are the rounds of each person: no --frame with a column {survey_plan.respondent!r}")


@options("""
    db: DATABASE | Database of the reports: reports.db, sqlite:///path or postgresql://...
    out: --out -o | File *.parquet, or folder of such files.
    """)
def export(plan: Path, db: str, out: Path = Path("reports.parquet")) -> None:
    """Export collected reports as Parquet, without ids and days, with a manifest.

    The manifest states their plan and number.
    """
    from ldpopt_survey.plan.public_question import combinations_warning
    from ldpopt_survey.server import export_reports

    survey_plan = read_plan(plan)
    with progress("exporting"):
        rows = export_reports(survey_plan, db, out)
    say(f"{rows:,} reports in {out}", *filter(None, [combinations_warning(survey_plan.public, rows)]))


@options("""
    answers: ANSWERS... | Answers: CSV or Parquet files, or a folder.
    out: --out -o | File or folder for the reports: *.csv or *.parquet; - writes Parquet to standard output.
    key: --key | Survey key file (mode 0600), required if the plan names respondents; a retry repeats its reports.
    new_key: --new-key | Create the key file (once per survey).
    simulate: --simulate SEED | Simulate reports from this seed; they protect nobody.
    workers: --workers | Number of threads, or of Dask workers with --dask.
    dask: --dask | Run on a local Dask cluster.
    scheduler: --scheduler | Run on the Dask cluster at tcp://...
    different_people: --alike | Accept answers identical to ones already privatized, because they come from different
      people.
    ledger: --ledger FILE | Ledger of all rounds of the survey, if it is not in the folder of PLAN.
    leave_out: --leave-out | Skip respondents who would exceed their announced rounds, instead of refusing the answers.
    force: --force | Replace existing reports once the new ones are complete; the ledger still forbids second reports.
    """)
def privatize(
    plan: Path, answers: list[Path], out: Path, key: Path | None = None, new_key: bool = False,
    simulate: int | None = None, workers: int = 1, dask: bool = False, scheduler: str | None = None,
    different_people: bool = False, ledger: Path | None = None, leave_out: bool = False, force: bool = False,
) -> None:  # fmt: skip
    """Privatize answers in files; a repeated call continues an interrupted run.

    The result has the same bytes as an uninterrupted run. If an answer changes within a round, its new report can
    reveal that it changed. With --force, simulated reports still never replace reports of people.

    PLAN.ledger records keyed marks of the answers, so that no second report of them is drawn in the same round. It also
    records keyed marks of respondents, so that nobody is in more rounds than their consent form states. Plans of one
    survey in a folder share it.
    """
    from ldpopt.numbers.rounding import ceil_digits
    from ldpopt_survey.collect.answers import ANSWER_SUFFIXES, input_files
    from ldpopt_survey.collect.ledger import ledger_of
    from ldpopt_survey.collect.privatize import privatize as run
    from ldpopt_survey.collect.runner import Threads
    from ldpopt_survey.datafiles.pieces import empty_rows_at_end
    from ldpopt_survey.reports.promises import rounds_in_words

    refuse_stream(plan, "the plan in a file, since the ledger of its reports is stored next to it")
    survey_plan = read_plan(plan)
    if survey_plan.respondent is not None and key is None and simulate is None:
        raise InvalidInput(
            "--key: the plan names respondents, so pass --key FILE, the first time with --new-key, which makes it"
        )
    if survey_plan.respondent is None and key is not None:
        expected = "a plan that names respondents ('respondent' in survey.toml)"
        raise invalid("--key", expected, Phrase("one that does not; leave --key and --new-key out"))
    if dask or scheduler:
        need("distributed")  # checked before a key is made
    with ExitStack() as stack:
        randomness = _randomness(key, new_key, simulate, out)
        if key is not None and new_key:
            stack.enter_context(_remove_key_on_refusal(key, out))
        runner: Runner = Threads(workers)
        if dask or scheduler:
            from ldpopt_survey.collect.runner import dask_runner

            runner = stack.enter_context(dask_runner(scheduler, workers))
        step = stack.enter_context(progress("privatizing"))
        ledger_path = ledger or ledger_of(plan, survey_plan)
        empty_row_count = sum(
            empty_rows_at_end(path, survey_plan.file) for path in input_files(answers, ANSWER_SUFFIXES)
        )
        tally = run(
            survey_plan, list(answers), out, randomness, runner, step, different_people, ledger_path, leave_out, force
        )
    say(f"{tally.rows:,} reports in {out}; {tally.duplicates:,} duplicate rows left out")
    if empty_row_count:
        rows = f"{empty_row_count:,} empty rows" if empty_row_count > 1 else "1 empty row"
        say(f"  {rows} at the end of files: nobody, and left out")
    if tally.left_out:
        say(f"  {tally.left_out:,} rows left out: their people have taken part as often as they were told")
    if tally.rounds:
        dropout_note = f" {tally.gone:,} of the last round before are not in this one." * (survey_plan.round > 1)
        say(f"  {rounds_in_words(survey_plan, tally.rounds)}{dropout_note}")
    if tally.other_rounds:
        epsilon, _ = survey_plan.over_rounds(1 + tally.other_rounds)
        rounds = f"{tally.other_rounds} other round{'s' * (tally.other_rounds > 1)}"
        say(f"  The same answers were reported in {rounds}: up to epsilon {ceil_digits(epsilon, 4)} together.")
    for name in survey_plan.answers:
        unknown_count, missing_count = tally.unknown.get(name, 0), tally.missing.get(name, 0)
        if unknown_count or missing_count:
            say(f"  {name}: {unknown_count:,} unlisted and {missing_count:,} missing answers mapped")
    say("  These counts are of raw answers: they are for you, not for publication.")


@contextmanager
def _remove_key_on_refusal(key: Path, out: Path) -> Iterator[None]:
    """Remove the new key of a run that is refused, since no report was made with it."""
    from ldpopt_survey.collect.workfolder import work_of

    try:
        yield
    except InvalidInput:
        if not any(os.path.lexists(path) for path in (out, work_of(out))):
            key.unlink(missing_ok=True)
        raise


def _randomness(key: Path | None, new_key: bool, simulate: int | None, out: Path) -> Randomness | None:
    from ldpopt_survey.collect.randomness import Memoized, Simulated
    from ldpopt_survey.collect.words import create_key
    from ldpopt_survey.collect.workfolder import work_of

    if simulate is not None:
        if key is not None:
            raise InvalidInput("--key cannot be combined with --simulate")
        return Simulated(simulate)
    if key is None:
        return None
    if new_key and not (key.exists() and work_of(out).exists()):  # an interrupted run is continued with its key
        create_key(key)
    return Memoized(key)


@options("""
    device: --device | Randomizing device: dice, two-dice, d10, two-d10, cards, spinner or coins.
    tosses: --tosses | Number of tosses, for --device coins.
    size: --paper | Paper size: a4 or letter.
    language: --language | Language of the sheets: en, de or ar.
    texts: --texts FILE | Texts of the survey in one language (JSON), with sentences of the forms under "paper".
    simpler: --simpler | Merge letters if this increases the error by at most this fraction.
    thorough: --thorough | Search longer, some seconds per question of up to four answers, for slightly fewer
      respondents.
    out: --out -o | Folder for the sheets and their plan.
    """)
def paper(
    plan: Path, device: str, tosses: int = 5, size: str = "a4", simpler: float = 0.01, out: Path = Path("paper"),
    time_limit: str = "", force: bool = False, language: str = "en", texts: Path | None = None, thorough: bool = False,
) -> None:  # fmt: skip
    """Print forms for randomizing by hand: cards, instructions, interviewer's form, guarantees.

    ldpopt survey paper plan.json --device two-dice
    """
    from ldpopt.numbers.rounding import ceil_digits
    from ldpopt_survey.paper.design import device_named, paper_files, paper_survey
    from ldpopt_survey.reports.promises import words_of
    from ldpopt_survey.reports.sheets import PAPERS, paper_sheets

    if size not in PAPERS:
        raise invalid("--paper", f"one of {', '.join(PAPERS)}", size)
    randomizing_device = device_named(device, tosses)
    claim_folder(out, force)
    limit, survey_plan = seconds(time_limit), read_plan(plan)
    texts_read = None if texts is None else read_text(texts)
    words_of(survey_plan, "paper", language, texts_read)  # refused before the design, which takes a while
    with progress("designing", shares=True) as step:
        survey = paper_survey(
            survey_plan, randomizing_device, simpler, time_limit=limit, progress=step, thorough=thorough
        )
    sheets = paper_sheets(survey, size, language, texts_read)
    write_folder(out, {"sheets.pdf": sheets.pdf, **paper_files(survey)}, force)
    for number, question in enumerate(survey.plan.questions, 1):
        k, m = question.channel.shape
        pairs = ("epsilon", survey.intended), ("eta", survey.intended_eta)
        limits = [
            f"{limit} {ceil_digits(getattr(question, limit), 4)} of {ceil_digits(intended[question.name], 4)}"
            for limit, intended in pairs
        ]
        sizes = f"{k} answers -> {m} letters, {', '.join(limits)}"
        loss = f"{100 * survey.losses[question.name]:.1f} % more respondents than without the device"
        say(f"  {question.name}: {sizes}, {loss} (channel-{number}.json)")
    for name, (eta, intended) in survey.exceeded.items():
        numbers = f"{ceil_digits(eta, 4)}, more than the {ceil_digits(intended, 4)} of the plan"
        say(f"  warning: {name}: on paper eta is {numbers}: the sheet says so (more outcomes come nearer to it)")
    say(*(f"  warning: {warning}" for warning in sheets.warnings))
    say(f"wrote {out}: sheets.pdf, and the plan of its reports in plan.json")


@options("""
    codes: CODES | CSV file of the letters, one row per person.
    out: --out -o | File for the reports: *.csv or *.parquet.
    leave_out_incomplete: --leave-out-incomplete | Skip and count rows without a letter, instead of refusing the file.
    """)
def enter(plan: Path, codes: Path, out: Path = Path("reports.csv"), leave_out_incomplete: bool = False) -> None:
    """Check letters typed from paper forms, and write them as reports.

    ldpopt survey enter paper/plan.json codes.csv
    """
    from ldpopt_survey.paper.entry import enter_reports

    result = enter_reports(read_plan(plan), codes, out, leave_out_incomplete)
    suffix = f"; {result.left_out:,} incomplete rows left out" if result.left_out else ""
    say(f"{result.rows:,} reports in {out}{suffix}")


@options("""
    reports: REPORTS... | Privatized or collected reports of one survey round.
    out: --out -o | File for the counts.
    pair: --pair A,B | Count two questions jointly, for a two-way table.
    """)
def aggregate(
    plan: Path, reports: list[str], out: Path = Path("counts.json"), pair: list[str] | None = None,
    unlabelled: bool = False, workers: int = 1, force: bool = False,
) -> None:  # fmt: skip
    """Count the reports.

    Estimation needs only these counts.
    """
    from ldpopt_survey.collect.aggregate import aggregate as run
    from ldpopt_survey.collect.runner import Threads

    claim([out], force)
    survey_plan = read_plan(plan)
    pairs = []
    for names_given in pair or []:
        names = tuple(name.strip() for name in names_given.split(","))
        if len(names) != 2:
            raise invalid("--pair", "two questions, A,B", names_given)
        pairs.append((names[0], names[1]))
    with progress("counting"):
        counts = run(survey_plan, list(reports), pairs, Threads(workers), unlabelled)
    write_all({out: counts.to_json().encode()}, force)
    say(f"{counts.rows:,} {'simulated ' * counts.simulation}reports counted in {out}")

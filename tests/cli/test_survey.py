"""``ldpopt survey``: from questions to a page, in files."""

import json
import os
import signal
import stat
import threading
import time

import numpy as np
import pytest

from ldpopt_survey import Plan, QuestionSpec, SurveySpec, aggregate, make_plan
from ldpopt_survey.collect.runner import dask_runner

SURVEY = """
[survey]
name = "Smoking"
respondent = "id"
[budget]
epsilon = 2.0
design = "split"
[[questions]]
name = "smokes"
categories = ["no", "sometimes", "daily"]
pilot = [0.7, 0.2, 0.1]
half_width = 0.05
[[questions]]
name = "drinks"
categories = ["no", "yes"]
"""


@pytest.fixture
def written(tmp_path):
    rng = np.random.default_rng(7)
    smokes = rng.choice(["no", "sometimes", "daily"], 3000, p=[0.7, 0.2, 0.1])
    drinks = rng.choice(["no", "yes"], 3000, p=[0.4, 0.6])
    lines = [f"{i},{a},{b}" for i, (a, b) in enumerate(zip(smokes, drinks, strict=True))]
    (tmp_path / "answers.csv").write_text("id,smokes,drinks\n" + "\n".join(lines) + "\n")
    (tmp_path / "survey.toml").write_text(SURVEY)
    return tmp_path


def test_all_commands_in_turn(run, written):
    """Plan, privatize, aggregate, estimate and report end with a page; the truth lies within 5 standard errors."""
    said = run("survey", "plan", "survey.toml", "-n", 3000)
    assert said.exit_code == 0
    assert "epsilon 2" in said.stdout
    plan = json.loads((written / "plan.json").read_text())
    assert sum(question["epsilon"] for question in plan["questions"]) <= 2.0  # everybody is asked everything
    privatize = ("survey", "privatize", "plan.json", "answers.csv", "--key", "k", "-o")
    assert run(*privatize, "r.csv", "--new-key").exit_code == 0
    assert stat.S_IMODE((written / "k").stat().st_mode) == 0o600
    assert run(*privatize, "again.csv").exit_code == 0
    assert (written / "r.csv").read_bytes() == (written / "again.csv").read_bytes()
    assert run("survey", "aggregate", "plan.json", "r.csv", "--pair", "smokes,drinks").exit_code == 0
    found = json.loads(run("survey", "estimate", "plan.json", "counts.json", "--json").stdout)
    for name, truth in (("smokes", [0.7, 0.2, 0.1]), ("drinks", [0.4, 0.6])):
        one = found[name]
        assert np.abs(np.array(one["values"]) - truth).max() < 5 * max(one["standard_errors"])
    assert "drinks" in run("survey", "estimate", "plan.json", "r.csv").stdout
    assert run("survey", "report", "plan.json", "counts.json").exit_code == 0
    page = (written / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    for text in (
        "Smoking",
        "smokes",
        "Design effect",
        "Whatever you answer",
        "channel of this survey",
        "randomized response",
        "data:image/png;base64",
    ):
        assert text in page
    assert "http" not in page


def test_bad_use_is_one_line_and_exit_code_two(run, written):
    """Each refusal names its reason and writes nothing."""
    (written / "survey.toml").write_text(PLAIN)
    run("survey", "plan", "survey.toml")
    before = sorted(path.name for path in written.iterdir())
    privatize = ("privatize", "plan.json", "answers.csv", "-o", "r.csv")
    for arguments, message in (
        (("plan", "none.toml", "-o", "p.json"), "none.toml"),
        (privatize, "--key: the plan names respondents, so pass --key FILE, the first time with --new-key"),
        ((*privatize, "--key", "none"), "none"),
        ((*privatize, "--key", "k", "--simulate", "1"), "--key cannot be combined with --simulate"),
        (("aggregate", "plan.json", "answers.csv"), "manifest answers.csv.manifest.json not found"),
        (("aggregate", "plan.json", "answers.csv", "--unlabelled"), "raw answers"),
        (("aggregate", "plan.json", "answers.csv", "--pair", "smokes"), "two questions"),
        (("estimate", "plan.json", "plan.json"), "counts"),
    ):
        said = run("survey", *arguments)
        assert said.exit_code == 2, arguments
        assert message in said.output
        assert said.output.count("\n") == 1
        assert sorted(path.name for path in written.iterdir() if not path.name.startswith(".")) == before


def test_messages_name_the_file_that_was_given(run, written):
    """A description that is not called survey.toml is not called so in its errors, and help keeps its brackets."""
    (written / "mine.toml").write_text("[budget]\nepsilon = 1.0\n")
    said = run("survey", "plan", "mine.toml").output
    assert "mine.toml" in said
    assert "survey.toml" not in said
    assert "ldpopt[collect]" in run("survey", "collect", "--help").output


PLAIN = """
[survey]
name = "Smoking"
respondent = "id"
[[questions]]
name = "smokes"
categories = ["no", "sometimes", "daily"]
epsilon = 1.0
"""


PRIVATIZE = ("survey", "privatize", "plan.json", "answers", "--key", "k", "-o")


@pytest.fixture
def partitions(begun, run, tmp_path):
    """A plan, a key, answers in twelve files, and the reports of a run without a cluster."""
    begun(twelve_files)(tmp_path)
    return PRIVATIZE


def twelve_files(folder, run):
    (folder / "survey.toml").write_text(PLAIN)
    (folder / "answers").mkdir()
    for file in range(12):
        rows = [f"{file}-{i},{('no', 'sometimes', 'daily')[i % 3]}" for i in range(100)]
        (folder / "answers" / f"{file:02d}.csv").write_text("id,smokes\n" + "\n".join(rows) + "\n")
    assert run("survey", "plan", "survey.toml").exit_code == 0
    assert run(*PRIVATIZE, "alone", "--new-key").exit_code == 0


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.full
def test_a_local_cluster_writes_the_same_bytes(run, partitions, tmp_path):
    """With --dask the reports are those of one process, and the page and the counts follow from them."""
    said = run(*partitions, "cluster", "--dask", "--workers", 1)
    assert said.exit_code == 0, said.output
    assert "1,200 reports" in said.stdout
    assert contents(tmp_path / "cluster") == contents(tmp_path / "alone")


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_killed_under_a_scheduler_changes_nothing(run, partitions, tmp_path):
    """With --scheduler on a cluster of two workers, one killed in mid-run, bytes and counts are the same."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill():
            while not list(tmp_path.glob(".cluster.partial/*.csv")) and not (tmp_path / "cluster").exists():
                time.sleep(0.001)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        watch = threading.Thread(target=kill)
        watch.start()
        said = run(*partitions, "cluster", "--scheduler", cluster.scheduler_address)
        watch.join()
        plan = Plan.from_json((tmp_path / "plan.json").read_text())
        with dask_runner(cluster.scheduler_address) as runner:
            counts = aggregate(plan, tmp_path / "cluster", runner=runner)
    assert said.exit_code == 0, said.output
    assert killed
    assert contents(tmp_path / "cluster") == contents(tmp_path / "alone")
    assert counts == aggregate(plan, tmp_path / "alone")
    assert not list(tmp_path.glob(".cluster*"))


def test_a_scheduler_is_an_address(run, partitions):
    """What is no address is refused in one line."""
    said = run(*partitions, "cluster", "--scheduler", "somewhere")
    assert said.exit_code == 2
    assert "tcp://" in said.output


SAMPLE = """
[survey]
name = "Smoking"
carry = ["age"]
[budget]
epsilon = 3.0
[sample]
weights = "w"
strata = "region"
clusters = "village"
fpc = "villages"
[sample.margins.sex]
f = 0.52
m = 0.48
[[questions]]
name = "smokes"
categories = ["no", "yes"]
"""


@pytest.fixture
def sampled(begun, run, tmp_path):
    """A stratified, clustered, weighted survey, privatized."""
    return begun(sample)(tmp_path)


def sample(folder, run):
    rng = np.random.default_rng(9)
    rows = []
    for region, villages, rate in (("north", 30, 0.3), ("sud, öst", 12, 0.6)):
        for village in range(8):
            for _ in range(25):
                smokes = "yes" if rng.random() < rate + 0.1 * (village % 3 - 1) else "no"
                w, sex, age = rng.integers(1, 5), rng.choice(["f", "m"]), rng.integers(18, 80)
                rows.append([smokes, f"{w}", f'"{region}"', f"{village}", f"{villages}", sex, f"{age}"])
    lines = ["smokes,w,region,village,villages,sex,age", *(",".join(row) for row in rows)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "survey.toml").write_text(SAMPLE)
    assert run("survey", "plan", "survey.toml").exit_code == 0
    said = run("survey", "privatize", "plan.json", "answers.csv", "-o", "reports.csv", "--simulate", 3)
    assert said.exit_code == 0, said.output


def test_the_design_in_the_plan_is_followed(run, sampled):
    """What `[sample]` declares is what the estimate uses, and it equals the library's design of the same columns."""
    from ldpopt_survey import Plan, SampleDesign, SampledReports, estimate, rake, read_rows

    found = json.loads(run("survey", "estimate", "plan.json", "reports.csv", "--json").stdout)["smokes"]
    plan = Plan.from_json((sampled / "plan.json").read_text())
    rows = read_rows(plan, sampled / "reports.csv", ["w", "region", "village", "villages", "sex"])
    w, villages = (np.array(rows.columns[name], dtype=float) for name in ("w", "villages"))
    design = SampleDesign(w, rows.columns["region"], rows.columns["village"], villages)
    design = rake(design, [(rows.columns["sex"], {"f": 0.52, "m": 0.48})])
    channel = plan.question("smokes").channel
    want = estimate(SampledReports.of(rows.reports["smokes"], np.array(channel.matrix), design), channel.matrix)
    assert np.allclose(found["values"], want.values, atol=1e-12)
    assert np.allclose(found["standard_errors"], want.standard_errors, rtol=1e-9)
    assert found["analysis"]["sample"]["clusters"] == "village"
    shown = run("survey", "estimate", "plan.json", "reports.csv")
    assert "weights w; strata region; clusters village; finite population villages" in shown.stdout
    plain = json.loads(run("survey", "estimate", "plan.json", "reports.csv", "--simple", "--json").stdout)["smokes"]
    assert "analysis" not in plain
    assert plain["standard_errors"][0] < found["standard_errors"][0]


def test_estimates_respect_groups_conditions_and_levels(run, sampled):
    """`--by`, `--where` and `--level` give the groups, the people and the intervals that they name."""
    ask = ("survey", "estimate", "plan.json", "reports.csv", "--json")
    found = json.loads(run(*ask, "--by", "region", "--level", 0.9).stdout)["smokes"]
    assert sorted(found["groups"]) == ["north", "sud, öst"]
    assert [found["groups"][g]["n"] for g in sorted(found["groups"])] == [200, 200]
    assert found["intervals"]["level"] == 0.9
    assert found["groups"]["north"]["values"][1] < found["groups"]["sud, öst"]["values"][1]
    only = json.loads(run(*ask, "--where", "region = north").stdout)["smokes"]
    assert np.allclose(only["values"], found["groups"]["north"]["values"], atol=1e-12)
    assert np.allclose(only["standard_errors"], found["groups"]["north"]["standard_errors"], atol=1e-12)
    old = json.loads(run(*ask, "--where", "age >= 60", "--where", "sex != f").stdout)["smokes"]
    assert 0 < old["n"] < 150
    for method in ("jackknife", "bootstrap"):
        again = json.loads(run(*ask, "--variance", method).stdout)["smokes"]
        whole = json.loads(run(*ask).stdout)["smokes"]
        assert again["values"] == whole["values"]
        assert np.allclose(again["standard_errors"], whole["standard_errors"], rtol=0.2)


def test_a_page_of_a_design_is_made_and_checked_again(run, sampled):
    (sampled / "out").mkdir()
    for name in ("plan.json", "reports.csv", "reports.csv.manifest.json"):
        (sampled / name).rename(sampled / "out" / name)
    there = ("out/plan.json", "out/reports.csv")
    assert run("survey", "report", *there, "--by", "sex", "--level", 0.9, "-o", "out/page.html").exit_code == 0
    found = run("survey", "estimate", *there, "--by", "sex", "--json").stdout
    (sampled / "out" / "estimates.json").write_text(found, encoding="utf-8")
    page = (sampled / "out" / "page.html").read_text(encoding="utf-8")
    assert "By sex (reports); 90 % binomial intervals." in page
    assert "strata region" in page
    said = run("survey", "verify", "out")
    assert said.exit_code == 0, said.output
    changed = page.replace("By sex (reports); 90 %", "By sex (reports); 95 %")
    (sampled / "out" / "page.html").write_text(changed, encoding="utf-8")
    assert run("survey", "verify", "out").exit_code != 0


def test_sequences_say_when_to_stop_and_are_checked_again(run, sampled):
    """With --anytime estimates, pages and their check have confidence sequences; a design that has none is refused."""
    (sampled / "out").mkdir()
    for name in ("plan.json", "reports.csv", "reports.csv.manifest.json"):
        (sampled / name).rename(sampled / "out" / name)
    there = ("out/plan.json", "out/reports.csv", "--simple", "--weights", "w", "--anytime")
    assert run("survey", "report", *there, "-o", "out/page.html").exit_code == 0
    (sampled / "out" / "estimates.json").write_text(run("survey", "estimate", *there, "--json").stdout, "utf-8")
    shown = run("survey", "estimate", *there).output
    assert "95 % confidence sequence" in shown
    assert "Collect on: 1 of 1 questions" in shown
    assert "no weight, and no cluster, is larger" in shown
    assert "95 % confidence sequences." in (sampled / "out" / "page.html").read_text("utf-8")
    said = run("survey", "verify", "out")
    assert said.exit_code == 0, said.output
    refused = run("survey", "estimate", "out/plan.json", "out/reports.csv", "--anytime")
    assert refused.exit_code == 2
    assert "--anytime: expected a simple sample" in refused.output


def test_wrong_flags_are_one_line(run, sampled):
    for flags, message in (
        (("--by", "sexe"), "one of the public columns of the reports (age"),
        (("--by", "smokes"), "a public column"),
        (("--where", "age ~ 3"), "column = value"),
        (("--where", "age > old"), "a number or a date such as 2024-03-01 after >"),
        (("--where", "region > 3"), "numbers, to compare by >"),
        (("--where", "age > 100"), "nobody (age > 100)"),
        (("--weights", "region"), "a number in every row"),
        (("--level", "95"), "between 0 and 1"),
        (("--variance", "magic"), '"linearization" or'),
        (("--lonely", "maybe"), '"refuse" or'),
        (("--margin", "sex"), "column=group:total"),
        (("--margin", "sex=f:1"), "a known total for every group"),
        (("--by", "age", "--where", "w = 9"), "nobody"),
    ):
        made = run("survey", "estimate", "plan.json", "reports.csv", *flags)
        assert made.exit_code == 2
        assert message in made.output
        assert made.output.count("\n") == 1


def test_counts_do_not_have_the_design(run, sampled):
    assert run("survey", "aggregate", "plan.json", "reports.csv").exit_code == 0
    made = run("survey", "estimate", "plan.json", "counts.json")
    assert made.exit_code == 2
    assert "--simple" in made.output
    assert run("survey", "estimate", "plan.json", "counts.json", "--simple").exit_code == 0


def test_a_second_wave_uses_the_estimate_of_the_first(run, tmp_path):
    """The second plan is designed for what the first wave estimated, and the estimate counts both."""
    rng = np.random.default_rng(4)
    (tmp_path / "survey.toml").write_text(
        '[survey]\nname = "S"\n[budget]\nepsilon = 1.0\n[[questions]]\nname = "q"\ncategories = ["a", "b", "c", "d"]\n'
    )
    for name, size in (("one", 800), ("two", 3000)):
        answers = rng.choice(list("abcd"), size, p=[0.85, 0.05, 0.05, 0.05])
        (tmp_path / f"{name}.csv").write_text("q\n" + "\n".join(answers) + "\n")
    first, later = ("p1.json", "r1.csv"), ("p2.json", "r2.csv")
    advised = run("survey", "plan", "survey.toml", "-o", "p1.json", "-n", 3800, "--stages")
    assert advised.exit_code == 0
    assert "TwoStagePlan(" in advised.stdout
    assert "pass -n" in run("survey", "plan", "survey.toml", "-o", "p0.json", "--stages").output
    assert run("survey", "privatize", "p1.json", "one.csv", "-o", "r1.csv", "--simulate", 1).exit_code == 0
    made = run("survey", "plan", "survey.toml", "--after", *first, "-o", "p2.json")
    assert made.exit_code == 0, made.output
    plan = json.loads((tmp_path / "p2.json").read_text())
    assert plan["round"] == 2
    assert plan["questions"][0]["pilot"][0] > 0.5
    assert run("survey", "privatize", "p2.json", "two.csv", "-o", "r2.csv", "--simulate", 2).exit_code == 0
    both = run("survey", "estimate", *later, "--wave", *first)
    assert both.exit_code == 0, both.output
    assert "from 3800 reports" in both.stdout
    for wrong, message in (
        (("--wave", "p2.json", "r2.csv"), "different rounds"),
        (("--wave", *first, "--json"), "cannot be combined with --json"),
        (("--wave", "p1.json", "r2.csv"), "another plan"),
    ):
        said = run("survey", "estimate", *later, *wrong)
        assert said.exit_code == 2
        assert message in said.output


@pytest.mark.full(but=1)
@pytest.mark.parametrize("answers", [["0"], ["0"] * 7])
def test_a_report_of_reports_that_are_alike(run, tmp_path, answers):
    """A collector that was tried with one submission gives a page, which says that nothing varies."""
    plan = make_plan(SurveySpec("s", (QuestionSpec("q", ("no", "yes")),)), {"q": [[0.75, 0.25], [0.25, 0.75]]})
    (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    (tmp_path / "reports.csv").write_text("\n".join(["q", *answers]) + "\n", encoding="utf-8")
    made = run("survey", "report", "plan.json", "reports.csv", "--unlabelled", "-o", "page.html")
    assert (made.exit_code, made.stderr) == (0, "")
    assert "No design effect can be estimated" in (tmp_path / "page.html").read_text("utf-8")


def test_a_question_that_nobody_was_asked_yet_is_named(run, tmp_path):
    questions = "".join(f'[[questions]]\nname = "q{i}"\nanswers = ["no", "yes"]\n' for i in range(10))
    (tmp_path / "survey.toml").write_text('[survey]\nname = "x"\n[budget]\nepsilon = 1\n' + questions)
    (tmp_path / "answers.csv").write_text(",".join(f"q{i}" for i in range(10)) + "\n" + ",".join(["no"] * 10) + "\n")
    assert run("survey", "plan", "survey.toml").exit_code == 0
    assert run("survey", "privatize", "plan.json", "answers.csv", "--simulate", 1, "-o", "r.csv").exit_code == 0
    said = run("survey", "estimate", "plan.json", "r.csv")
    assert run("survey", "report", "plan.json", "r.csv", "-o", "page.html").exit_code == said.exit_code == 0
    for text in (said.stdout, (tmp_path / "page.html").read_text("utf-8")):
        assert text.count(": no estimate (no report of the question).") == 9  # the respondent was asked one of ten

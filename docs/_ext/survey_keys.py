"""The page of every key of survey.toml, made from the records that read the file."""

from __future__ import annotations

from ldpopt.files.delimited import Dialect
from ldpopt_survey import PublicQuestion, QuestionSpec, SampleSpec, SurveySpec, TargetSpec
from ldpopt_survey.records import additional_keys, reference

TABLES = {
    "questions": QuestionSpec, "public": PublicQuestion, "targets": TargetSpec, "file": Dialect, "sample": SampleSpec,
}  # fmt: skip
"""The tables whose keys are a record of their own."""

REPEATED = ("questions", "public", "targets")
"""Those of which a file may have several."""


def survey_keys() -> str:
    """Return the page in Markdown: a section for each table, and for each type of question but the first."""
    page = reference(SurveySpec, TABLES) + "\n"
    for name in REPEATED:
        page = page.replace(f"## `[{name}]`", f"## `[[{name}]]`")
    # What stands in no table of the record is a table of texts in the file.
    head = "\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
    page = page.replace(f"{head}| `wording` | table |", f"\n\n## `[wording]`{head}| a question's name | text |")
    for name, kind in QuestionSpec.types.items():
        if kind is not QuestionSpec:
            page += f'\n## `type = "{name}"`\n\n{additional_keys(kind, QuestionSpec)}\n'
    return page

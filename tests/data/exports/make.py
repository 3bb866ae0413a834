"""Small files as survey tools export them, with invented people; `python tests/data/exports/make.py` writes them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat

FOLDER = Path(__file__).parent
PEOPLE = 48
OPTIONS = ("Cash", "Card", "Phone")
SCALE = ("never", "rarely", "sometimes", "often")


def text_of(rows: list[list[object]], delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL, end: str = "\r\n") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(rows)
    return stream.getvalue()


def main() -> None:
    rng = np.random.default_rng(42)
    smokes = rng.random(PEOPLE) < 0.35
    level = rng.integers(0, 3, PEOPLE)  # nobody says "often"
    ticks = rng.random((PEOPLE, 3)) < 0.45
    drinks = rng.random(PEOPLE) < 0.6
    amount = rng.integers(1, 4, PEOPLE)
    yes_no = np.where(smokes, "Yes", "No")
    ids = [f"R_{number:03d}" for number in rng.permutation(PEOPLE)]
    people = range(PEOPLE)

    # Qualtrics: names, texts (with line ends inside), import ids; boxes hold their text or nothing.
    names = ["ResponseId", "Q1", "Q2_1", "Q2_2", "Q2_3", "Q3"]
    asked = "How do you pay?\n(all that apply) - Selected Choice - "
    texts = ["Response ID", "Do you smoke?", *(asked + option for option in OPTIONS), "How often do you run?"]
    imported = [f'{{"ImportId":"QID{number}"}}' for number in range(len(names))]
    body = [
        [ids[i], yes_no[i], *(option if ticks[i, j] else "" for j, option in enumerate(OPTIONS)), SCALE[level[i]]]
        for i in people
    ]
    qualtrics = [names, texts, imported, *body]
    (FOLDER / "qualtrics.csv").write_text("\ufeff" + text_of(qualtrics, end="\n"), "utf-8", newline="")
    (FOLDER / "qualtrics.tsv").write_bytes(text_of(qualtrics, "\t", end="\n").encode("utf-16"))

    # LimeSurvey: codes with Y or nothing; texts with Yes and No.
    header = ["id", "smoke", "pay[SQ001]", "pay[SQ002]", "pay[SQ003]", "run"]
    coded = [
        [i + 1, "Y" if smokes[i] else "N", *("Y" if t else "" for t in ticks[i]), f"A{level[i] + 1}"] for i in people
    ]
    order = rng.permutation(PEOPLE)
    coded = [[number + 1, *coded[i][1:]] for number, i in enumerate(order)]
    (FOLDER / "limesurvey_codes.csv").write_text(text_of([header, *coded], quoting=csv.QUOTE_ALL), "utf-8", newline="")
    header = ["Response ID", "Do you smoke?", *(f"How do you pay? [{option}]" for option in OPTIONS), "How often?"]
    full = [[i + 1, yes_no[j], *("Yes" if t else "No" for t in ticks[j]), SCALE[level[j]]] for i, j in enumerate(order)]
    (FOLDER / "limesurvey_texts.csv").write_text(text_of([header, *full], ";"), "utf-8", newline="")

    # REDCap: raw codes and labels; the amount is asked of those who drink.
    header = ["record_id", "smoke", "pay___1", "pay___2", "pay___3", "drink", "amount"]
    raw = [
        [i + 1, int(smokes[j]), *map(int, ticks[j]), int(drinks[j]), amount[j] if drinks[j] else ""]
        for i, j in enumerate(order)
    ]
    (FOLDER / "redcap_raw.csv").write_text(text_of([header, *raw], end="\n"), "utf-8", newline="")
    labels = [
        [i + 1, yes_no[j], *("Checked" if t else "Unchecked" for t in ticks[j]), ("No", "Yes")[int(drinks[j])],
         f"{amount[j]} glasses" if drinks[j] else ""]
        for i, j in enumerate(order)
    ]  # fmt: skip
    (FOLDER / "redcap_labels.csv").write_text(text_of([header, *labels], end="\n"), "utf-8", newline="")

    # SurveyMonkey: the options in a second row, below names that are left empty.
    header = [["Respondent ID", "Do you smoke?", "How do you pay?", "", ""], ["", "Response", *OPTIONS]]
    monkey = [[10_000 + i, yes_no[j], *(o if t else "" for o, t in zip(OPTIONS, ticks[j], strict=True))] for i, j in
              enumerate(order)]  # fmt: skip
    (FOLDER / "surveymonkey.csv").write_text(text_of([*header, *monkey]), "utf-8", newline="")

    # Google Forms and Microsoft Forms: lists in a cell.
    chosen = [[o for o, t in zip(OPTIONS, ticks[i], strict=True) if t] for i in people]
    forms = [["Do you smoke?", "How do you pay?"], *([yes_no[i], ", ".join(chosen[i])] for i in people if chosen[i])]
    (FOLDER / "google_forms.csv").write_text(text_of(forms), "utf-8", newline="")
    book = openpyxl.Workbook()
    book.active.append(["Do you smoke?", "How do you pay?", "Agree"])
    for i in people:
        book.active.append([yes_no[i], "".join(f"{o};" for o in chosen[i]) or None, bool(drinks[i])])
    book.save(FOLDER / "microsoft_forms.xlsx")

    # Excel in German: sep=, decimal commas, empty rows below, a name that stands twice and one that is missing.
    german = [["Rauchen", "Größe", "Größe", ""], *([("nein", "ja")[int(smokes[i])], f"1,{60 + level[i] * 7}",
              f"1,{61 + level[i] * 7}", ""] for i in people)]  # fmt: skip
    (FOLDER / "excel_german.csv").write_bytes(("sep=;\r\n" + text_of(german, ";") + ";;;\r\n" * 3).encode("cp1252"))
    r_file = [["", "smoke", "vote"], *([str(k + 1), str(bool(smokes[i])).upper(), ("NA", "left", "right")[level[i]]]
              for k, i in enumerate(order))]  # fmt: skip
    (FOLDER / "r.csv").write_text(text_of(r_file, quoting=csv.QUOTE_ALL, end="\n"), "utf-8", newline="")

    # Declared categories: an order, and levels that nobody chose.
    frame = pd.DataFrame({"run": level + 1.0, "smoke": smokes.astype(float)})
    frame.loc[3, "run"] = 9.0
    said = {
        "run": {number + 1: word for number, word in enumerate(SCALE)} | {9: "refused"},
        "smoke": {0: "no", 1: "yes"},
    }
    pyreadstat.write_sav(
        frame, str(FOLDER / "spss.sav"), column_labels=["How often do you run?", "Do you smoke?"],
        variable_value_labels=said, missing_ranges={"run": [{"lo": 9, "hi": 9}]},
    )  # fmt: skip
    pyreadstat.write_dta(
        pd.DataFrame({"run": level + 1.0, "smoke": smokes.astype(float)}), str(FOLDER / "stata.dta"),
        variable_value_labels={"run": {n + 1: w for n, w in enumerate(SCALE)}, "smoke": said["smoke"]},
    )  # fmt: skip
    categories = pd.DataFrame({
        "run": pd.Categorical.from_codes(level, list(SCALE), ordered=True), "smoke": smokes, "pay": chosen,
    })  # fmt: skip
    categories.to_parquet(FOLDER / "pandas.parquet", index=False)


if __name__ == "__main__":
    main()

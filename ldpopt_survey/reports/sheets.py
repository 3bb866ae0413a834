"""The sheets of a survey on paper as one PDF: instructions, a card for each answer, the interviewer's form, guarantees.

fpdf2 draws them, since it wraps and aligns text of any script in embedded fonts. Matplotlib's PDF can do this only line
by line. Besides packages that matplotlib needs, too, fpdf2 needs only one small package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ldpopt.errors import invalid
from ldpopt.files.escapes import overrides_shown
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.words import guessed_right
from ldpopt_survey.kit.folder import LANGUAGES
from ldpopt_survey.paper.design import DEVICES, PaperSurvey, device_named
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.reports.promises import SurveyWords, words_of
from ldpopt_survey.reports.sheet_drawing import (
    FAMILY,
    GREY_RGB,
    TINT_RGB,
    draw_grid,
    draw_table,
    draw_wheel,
    lines_of,
    put,
    set_fonts,
    width_of,
    write,
)

PAPERS = ("a4", "letter")
MARGIN_MM = 18.0
LINES_PER_FORM = 20
"""Lines on one page of the interviewer's form, one for each person."""

SLIP_LINE_MM = 4.2
"""The height of a line on a slip, in millimetres."""

MAX_SLIPS = 60
"""About as many slips are printed; estimates use how often each was drawn, not how often it should be."""

MAX_COLUMNS = 6
"""The most questions side by side on the form."""


def sheet_text(
    part: str, survey: PaperSurvey, question: PlannedQuestion | None = None, words: SurveyWords | None = None
) -> list[str]:
    """List the sentences of a part of the forms, or the "promises" of a question.

    The parts are "steps", "why" and "rules".
    """
    words = words_of(survey.plan, "paper") if words is None else words
    question = max(survey.plan.questions, key=_ratio) if question is None else question
    if part == "promises":
        sentences = _promises(survey, question, words)
    else:
        sentences = {"steps": _steps, "why": _reasons, "rules": _rules}[part](survey, words)
    return overrides_shown("\n".join(sentences)).splitlines()


def _unanswered(survey: PaperSurvey, words: SurveyWords) -> list[tuple[str, str]]:
    """The questions that may be left unanswered, each with its card for that or an empty text."""
    plan = survey.plan
    parts = [plan.part(name) for name in plan.answers]
    cards = [(part.name, "" if part.missing is None else words.label(part.name, part.missing)) for part in parts]
    return [(name, card) for name, card in cards if card or name in plan.questions_with_empty_reports]


def _steps(survey: PaperSurvey, words: SurveyWords) -> Iterator[str]:
    """The steps of a respondent."""
    say, device = words.say, survey.device
    yield say("steps.take")
    yield from (*device.draw, device.find)
    for card in dict.fromkeys(card for _, card in _unanswered(survey, words) if card):
        yield say("steps.decline", card=card)
    yield say("steps.sayOnly" if device.spins else "steps.say")
    yield say("steps.back")


def _reasons(survey: PaperSurvey, words: SurveyWords) -> Iterator[str]:
    """The reasons why answers are safe."""
    say = words.say
    yield say("why.chance")
    yield say("why.times", times=words.number(_ratio_text(max(map(_ratio, survey.plan.questions)))))
    if names := [public.name for public in survey.plan.public]:
        yield say("why.public", names=say("comma").join(names))
    yield say("why.please")


def _rules(survey: PaperSurvey, words: SurveyWords) -> Iterator[str]:
    """The rules of an interviewer."""
    say, unanswered = words.say, _unanswered(survey, words)
    for key in ("hand", "look", "write", "letters"):
        yield say(f"rules.{key}")
    for name, card in unanswered:
        yield say("rules.decline" if card else "rules.empty", question=name, card=card)
    if len(unanswered) < len(survey.plan.answers):
        yield say("rules.strikeOther" if unanswered else "rules.strike")
    for public in survey.plan.public:
        key = "rules.copy" if public.invited else "rules.ask"
        yield say(key, question=public.name, answers=say("comma").join(public.texts))
    yield say("rules.number")


def _promises(survey: PaperSurvey, question: PlannedQuestion, words: SurveyWords) -> Iterator[str]:
    """The guarantees of a question."""
    say, name, ratio, proof = words.say, question.name, _ratio(question), question.channel.proof()
    x, x_other, y = proof.ratio_at
    answer, other = (words.answer(question, question.categories[row]) for row in (x, x_other))
    yield say("promises.outcomes", count=survey.device.denominator)
    yield say(
        "promises.ratio", times=words.number(_ratio_text(ratio)), ratio=ratio, letter=question.reports[y],
        answer=answer, other=other, epsilon=words.number(ceil_digits(proof.epsilon, 5)),
        intended=words.number(f"{survey.intended[name]:.5g}"),
    )  # fmt: skip
    yield say(
        "promises.eta" if name not in survey.exceeded else "promises.etaExceeded",
        eta=words.number(ceil_digits(proof.eta, 4)), intended=words.number(ceil_digits(survey.intended_eta[name], 4)),
    )  # fmt: skip
    yield say("promises.guess", right=words.number(guessed_right(question.eta)))
    unfair = words.number(ceil_digits(float(ratio * Fraction(105, 95)), 3))
    yield say("promises.if", assumption=survey.device.assumption, unfair=unfair)
    yield say("promises.loss", loss=words.number(f"{100 * survey.losses[name]:.1f}"))


def _ratio(question: PlannedQuestion) -> Fraction:
    ratio = question.channel.proof().ratio
    assert ratio is not None  # epsilon is finite
    return ratio


def _ratio_text(ratio: Fraction) -> str:
    """A ratio, rounded up and written with as few digits as it needs."""
    return f"{-(-ratio.numerator * 100 // ratio.denominator) / 100:g}"


@dataclass(frozen=True)
class Sheets:
    """The bytes of the printed sheets, and a warning for each text that will not look right."""

    pdf: bytes
    warnings: tuple[str, ...]


def paper_sheets(
    survey: PaperSurvey, paper: str = "a4", language: str = LANGUAGES[0], texts: str | bytes | None = None
) -> Sheets:
    """Print all forms of a survey on ``"a4"`` or ``"letter"`` paper.

    `warnings` name missing fonts.

    language, texts : as for `words_of`; nothing of the sheets is in another language.
    """
    words = words_of(survey.plan, "paper", language, texts)
    if survey.device.name in DEVICES:
        tosses = survey.device.denominator.bit_length() - 1
        survey = replace(survey, device=device_named(survey.device.name, tosses, words.sentences))
    if paper not in PAPERS:
        raise invalid("paper", f"one of {', '.join(PAPERS)}", paper)
    page = _Page(survey, paper, words)
    page.instructions()
    page.questions()
    page.slips()
    for question in survey.plan.questions:
        page.cards(question)
    page.form()
    for question in survey.plan.questions:
        page.guarantee(question)
    return Sheets(bytes(page.pdf.output()), tuple(page.warnings))


class _Page:
    """The PDF file while it is drawn, page by page."""

    def __init__(self, survey: PaperSurvey, paper: str, words: SurveyWords) -> None:
        from fpdf import FPDF

        self.survey, plan, pdf = survey, survey.plan, FPDF(format=paper, unit="mm")
        self.words, self.say, self.name = words, words.say, str(words.page.get("survey", plan.name))
        self.before, self.after = ("R", "L") if words.page.get("direction") == "rtl" else ("L", "R")
        texts = [
            self.name,
            *plan.carry,
            *plan.titles,
            *map(words.wording, plan.titles),
            "εηΩ’“”–♠♥♦♣",
            *words.sentences.values(),
        ]
        for question in plan.questions:
            texts += [question.name, *question.reports]
            texts += [words.answer(question, answer) for answer in question.categories]
        self.pdf: Any = pdf
        self.warnings = set_fonts(pdf, texts)
        pdf.set_margins(MARGIN_MM, MARGIN_MM, MARGIN_MM)
        pdf.set_auto_page_break(False)
        pdf.set_title(self.say("fileTitle", survey=self.name, device=survey.device.title))
        pdf.set_lang(words.code)
        pdf.set_creator("ldpopt")
        self.width = float(pdf.epw)

    def _text(
        self, text: str, size: float, style: str = "", line: float = 1.45, align: str = "", grey: bool = False
    ) -> None:
        self.pdf.set_text_color(*(GREY_RGB if grey else (0, 0, 0)))
        # fpdf2 sets a font again after a substitute only if something about it changes.
        self.pdf.set_font(FAMILY, style, size + 1)
        self.pdf.set_font(FAMILY, style, size)
        height, height_left = size * 0.3528 * line, self.pdf.h - 5 - self.pdf.get_y()
        # Two lines in turn hold more than one line's width, so that most texts fit without being broken for a trial.
        lines = 2 * width_of(self.pdf, text) / self.width + 1 + text.count("\n")
        if lines * height > height_left and self._height(text, height) > height_left:
            self.pdf.add_page()
        write(self.pdf, text, self.width, height, align or self.before)

    def _height(self, text: str, line_height: float) -> float:
        """The height of a text across the page."""
        if lines := lines_of(self.pdf, text, self.width):
            return len(lines) * line_height
        return float(self.pdf.multi_cell(self.width, line_height, text, dry_run=True, output="HEIGHT"))

    def _head(self, title: str) -> None:
        self.pdf.add_page()
        self._text(self.name, 10, grey=True)
        self.pdf.ln(1)
        self._text(title, 20, "B", 1.25)
        self.pdf.ln(4)

    def _numbered(self, texts: Sequence[str], size: float, space: float = 3.0) -> None:
        for number, text in enumerate(texts, 1):
            top = self.pdf.get_y()
            self.pdf.set_font(FAMILY, "B", size)
            is_right_to_left = self.before == "R"
            self.pdf.set_xy(MARGIN_MM + (self.width - 9) * is_right_to_left, top)
            self.pdf.cell(9, size * 0.3528 * 1.45, f"{number}.", align=self.before)
            self.pdf.set_font(FAMILY, "", size)
            self.pdf.set_xy(MARGIN_MM + 9 * (not is_right_to_left), top)
            write(self.pdf, text, self.width - 9, size * 0.3528 * 1.45, self.before)
            self.pdf.ln(space)

    def instructions(self) -> None:
        """Print the page of instructions for respondents."""
        self._head(self.say("title"))
        self._text(self.say("needs", device=self.survey.device.title), 13)
        self.pdf.ln(5)
        self._numbered(sheet_text("steps", self.survey, words=self.words), 14, 4)
        self._example()
        self.pdf.ln(3)
        self._text(self.say("why"), 15, "B")
        self.pdf.ln(2)
        for text in sheet_text("why", self.survey, words=self.words):
            self._text(text, 11.5)
            self.pdf.ln(2.5)

    def questions(self) -> None:
        """Print the wordings of the questions, for interviewers and respondents."""
        wordings = {name: self.words.wording(name) for name in self.survey.plan.titles}
        for number, (name, words) in enumerate(wordings.items() if any(wordings.values()) else ()):
            if number == 0 or self.pdf.get_y() > self.pdf.h - 60:
                self._head(self.say("questions"))
            if words:
                self._text(name, 11, grey=True)
            self._text(words or name, 14, line=1.3)
            self.pdf.ln(4)

    def _example(self) -> None:
        """An example: one outcome on one card, explained in a sentence."""
        device, question = self.survey.device, self.survey.plan.questions[0]
        letters = self.survey.table(question.name, 0)
        m = len(device.columns)
        values = {"answer": self.words.answer(question, question.categories[0]), "question": question.name}
        x = 0 if device.spins else min(2, len(device.rows) - 1) * m + min(4, m - 1)
        row, column = device.rows[x // m], device.columns[x % m]
        outcome = self.say("comma").join(
            [f"{device.row_means}: {row}"] * bool(row) + [f"{device.column_means}: {column}"]
        )
        key = "example.spinner" if device.spins else "example"
        card = self.say(key, **values, letter=letters[x], outcome=outcome)
        self.pdf.set_font(FAMILY, "", 11.5)
        self.pdf.set_fill_color(*TINT_RGB)
        self.pdf.multi_cell(
            self.width, 6, card, align=self.before, fill=True, padding=(4, 5), new_x="LMARGIN", new_y="NEXT"
        )
        self.pdf.ln(4)

    def cards(self, question: PlannedQuestion) -> None:
        """Print a card for each answer, two on a page, to be cut along the middle."""
        pdf, half = self.pdf, self.pdf.h / 2
        for number, category in enumerate(question.categories):
            if number % 2 == 0:
                pdf.set_fill_color(0)
                pdf.set_draw_color(*GREY_RGB)
                pdf.add_page()
                if number + 1 < len(question.categories):
                    pdf.set_dash_pattern(2, 2)
                    pdf.line(6, half, pdf.w - 6, half)
                    pdf.set_dash_pattern()
            top = (number % 2) * half + 10
            pdf.set_xy(MARGIN_MM, top)
            self._text(question.name, 11, grey=True)
            if words := self.words.wording(question.name):
                self._text(words, 11, line=1.3)
            self._text(self.say("card.answer", answer=self.words.answer(question, category)), 13, "B", 1.3)
            letters = self.survey.table(question.name, number)
            start = pdf.get_y() + 2
            box = (MARGIN_MM, start, self.width, top + half - 26 - start)
            if self.survey.device.spins:
                draw_wheel(pdf, letters, box)
            else:
                draw_table(pdf, self.survey.device, letters, box)
            pdf.set_xy(MARGIN_MM, top + half - 22)
            self._text(self.say("card.back"), 9, align="C", grey=True)

    def slips(self) -> None:
        """Print slips to draw a booklet from, in proportion to the booklets' probabilities.

        There are none if everybody is asked everything.
        """
        if not (booklets := self.survey.plan.booklets):
            return
        self._head(self.say("slips"))
        self._text(self.say("slips.how", booklet=self.say("form.booklet")), 11)
        self.pdf.ln(4)
        slip_count = min(math.lcm(*(question.probability.denominator for question in booklets)), MAX_SLIPS)
        texts = [q.name for q in booklets for _ in range(max(1, round(float(q.probability) * slip_count)))]
        pdf, width = self.pdf, self.width / 4
        pdf.set_font(FAMILY, "", 9)
        # Names are written in full, since they may differ at their ends alone.
        lines = {
            name: pdf.multi_cell(width - 3, SLIP_LINE_MM, name, dry_run=True, output="LINES") for name in set(texts)
        }
        height = max(12.0, 4 + SLIP_LINE_MM * max(map(len, lines.values())))
        for number, name in enumerate(texts):
            if number % 4 == 0 and pdf.get_y() + height > pdf.h - MARGIN_MM:
                pdf.add_page()
            left, top = MARGIN_MM + (number % 4) * width, pdf.get_y()
            pdf.rect(left, top, width, height)
            pdf.set_xy(left + 1.5, top + (height - SLIP_LINE_MM * len(lines[name])) / 2)
            write(pdf, name, width - 3, SLIP_LINE_MM, "C")
            pdf.set_xy(MARGIN_MM, top + height if number % 4 == 3 or number + 1 == len(texts) else top)

    def form(self) -> None:
        """Print the interviewer's form: the rules, and lines for the letters."""
        self._head(self.say("form"))
        self._numbered(sheet_text("rules", self.survey, words=self.words), 10.5, 1.8)
        questions = self.survey.plan.questions
        groups = [questions[start : start + MAX_COLUMNS] for start in range(0, len(questions), MAX_COLUMNS)]
        for number, group in enumerate(groups):
            if number:
                self._head(self.say("form.more"))
            self._lines(group, self.survey.plan.carry if number == 0 else ())

    def _lines(self, questions: Sequence[PlannedQuestion], carry: Sequence[str]) -> None:
        pdf = self.pdf
        top = pdf.get_y() + 2
        booklets = self.survey.plan.booklets
        heads = [self.say("form.sheet"), *([self.say("form.booklet")] if booklets else [])]
        names = [*heads, *(question.name for question in questions), *carry]
        first = 16.0
        width = (self.width - first) / (len(names) - 1)
        pdf.set_line_width(0.2)
        pdf.set_draw_color(120)
        pdf.set_fill_color(*TINT_RGB)
        head = 15.0
        count = min(LINES_PER_FORM, int((pdf.h - MARGIN_MM - top - head) / 7.2))
        for column, name in enumerate(names):
            x, w = (MARGIN_MM, first) if column == 0 else (MARGIN_MM + first + (column - 1) * width, width)
            pdf.rect(x, top, w, head, style="DF")
            pdf.set_font(FAMILY, "B", 9)
            pdf.set_xy(x + 0.5, top + 1)
            lines = pdf.multi_cell(w - 1, 4, name, align="C", dry_run=True, output="LINES")
            pdf.multi_cell(w - 1, 4, "\n".join(lines[:2]), align="C")
            if 0 < column - bool(booklets) <= len(questions):
                letters = questions[column - 1 - bool(booklets)].reports
                letter_text = " ".join(letters)
                if len(letters) > 8:
                    letter_text = self.say("form.letters", first=letters[0], last=letters[-1])
                put(pdf, letter_text, (x + 0.5, top + 9.5, w - 1, 4), ("", 8))
        columns = [MARGIN_MM, *(MARGIN_MM + first + column * width for column in range(len(names)))]
        draw_grid(pdf, columns, [top + head + line * 7.2 for line in range(count + 1)])

    def guarantee(self, question: PlannedQuestion) -> None:
        """Print the page with the guarantees of one question and its table of integers."""
        self._head(self.say("promises", question=question.name))
        for text in sheet_text("promises", self.survey, question, self.words):
            self._text(text, 11)
            self.pdf.ln(2.2)
        self.pdf.ln(2)
        self._weights(question)
        self.pdf.ln(5)
        plan = self.survey.plan
        marks = {"survey": self.name, "round": plan.round, "plan": plan.checksum[:16]}
        self._text(self.say("promises.source", **marks), 8.5, grey=True)

    def _weights(self, question: PlannedQuestion) -> None:
        """The table of how many outcomes lead to each letter, for each answer."""
        pdf, D = self.pdf, self.survey.device.denominator
        first = min(70.0, self.width / 3)
        pdf.set_draw_color(120)
        for begin in range(0, len(question.reports), 12):
            part = slice(begin, begin + 12)
            width = min(16.0, (self.width - first) / len(question.reports[part]))
            columns = [MARGIN_MM, *(MARGIN_MM + first + width * n for n in range(len(question.reports[part]) + 1))]
            heads = [self.say("promises.count", count=D), *question.reports[part]]
            tops = [self._row(heads, columns, "B")]
            for category, row in zip(question.categories, question.channel.weights.tolist(), strict=True):
                if pdf.get_y() + 7 > pdf.h - MARGIN_MM:
                    draw_grid(pdf, columns, [*tops, pdf.get_y()])
                    pdf.add_page()
                    tops = [self._row(heads, columns, "B")]
                tops.append(self._row([self.words.answer(question, category), *map(str, row[part])], columns, ""))
            draw_grid(pdf, columns, [*tops, pdf.get_y()])
            pdf.ln(3)

    def _row(self, cells: Sequence[str], columns: Sequence[float], style: str) -> float:
        """Write a row of cells between the edges of columns; return its top edge."""
        pdf = self.pdf
        pdf.set_font(FAMILY, style, 10)
        top, (name, *others) = pdf.get_y(), cells
        while width_of(pdf, name) > columns[1] - columns[0] - 3 and len(name) > 2:
            name = name[:-2] + "…"
        put(pdf, name, (columns[0], top, columns[1] - columns[0], 7), align="L")
        for text, (left, right) in zip(others, pairwise(columns[1:]), strict=True):
            put(pdf, text, (left, top, right - left, 7))
        pdf.set_xy(MARGIN_MM, top + 7)
        return float(top)

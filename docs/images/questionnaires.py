"""Draw the respondents of a questionnaire against its questions: ``python docs/images/questionnaires.py``."""

from typing import Any

from drawn import FIRST, GREEN, GREY, SECOND, beside, frame, panels, save

from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


def draw() -> Any:
    """Respondents for ±5 points on every share of m yes/no questions, at two epsilons."""
    axes = panels((4.4, 4.4), 4.4)
    for ax, epsilon in zip(axes, (1.0, 3.0), strict=True):
        planned = [
            plan_survey(SurveySpec("s", tuple(QuestionSpec(f"q{i}", ("no", "yes")) for i in range(m)), epsilon=epsilon))
            for m in COUNTS
        ]
        lines = {
            "ε split over the questions": ([one.split for one in planned], SECOND, "-."),
            "one question at random": ([one.one_question for one in planned], GREY, ":"),
            "booklets (the plan)": ([one.respondents for one in planned], FIRST, "-"),
            "least for independent answers": ([one.least for one in planned], GREEN, "--"),
        }
        for name, (values, colour, style) in lines.items():
            ax.loglog(COUNTS, values, style, color=colour, lw=1.8, label=name)
        frame(ax, f"ε = {epsilon:g}", "yes/no questions", "respondents for ±5 points on each")
        ax.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
        beside(ax)
    return axes[0]


if __name__ == "__main__":
    save(draw(), __file__)

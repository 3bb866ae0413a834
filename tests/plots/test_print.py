"""What a paper needs of a picture: fonts that journals take, a column's width, one scale, corners where they are."""

import inspect
import io
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest
from matplotlib.text import Text
from plots.overlaps import cut_off, legends_on_data, touching

import experiments.figures.sheet as printed
from ldpopt import Divergence, InvalidInput, LocalDP, frontier, frontiers, optimal_channel, plots
from ldpopt.bounds import compare
from ldpopt.design import structures
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt.plots.figure import log_ticks
from ldpopt.plots.paper import PrintFigure

P0 = np.array([0.5, 0.3, 0.15, 0.05])
P1 = np.array([0.1, 0.2, 0.3, 0.4])
UTILITY = Divergence(KL, P0, P1)
EPSILONS = (0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def table():
    return frontier(UTILITY, EPSILONS, np.linspace(0, 1, 6))


def column(height=2.6):
    """Axes of a figure that is as wide as a column of a paper."""
    return PrintFigure(figsize=(3.4, height), layout="constrained").subplots()


def fonts(pdf):
    """The kinds of fonts that a PDF file declares, also in compressed streams."""
    text = pdf
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            text += zlib.decompress(stream)
        except zlib.error:
            continue
    return set(re.findall(rb"/Subtype\s*/(Type3|Type0|CIDFontType2|TrueType)\b", text))


def saved(ax):
    """A PDF file as the figure's own `savefig` writes it."""
    out = io.BytesIO()
    ax.figure.savefig(out, format="pdf")
    return out.getvalue()


@pytest.mark.parametrize("write", [saved, lambda ax: plots.picture(ax, "pdf")], ids=["savefig", "picture"])
def test_letters_of_a_pdf_are_truetype(write):
    """Neither way of saving writes the Type 3 fonts that journals refuse."""
    found = fonts(write(plots.channel([[0.7, 0.3], [0.3, 0.7]])))
    assert b"CIDFontType2" in found
    assert b"Type3" not in found


def test_a_figure_of_matplotlib_is_written_with_truetype_too():
    """`plots.picture` embeds TrueType on whatever figure the axes stand."""
    from matplotlib.figure import Figure

    ax = plots.channel([[0.7, 0.3], [0.3, 0.7]], Figure().subplots())
    assert b"Type3" in fonts(saved(ax)), "matplotlib's own default, which this test would not see otherwise"
    assert b"Type3" not in fonts(plots.picture(ax, "pdf"))


HELPERS = {"axes_or_new", "inches_of", "label_axes", "log_ticks", "move_legend", "panels", "picture", "put_legend"}
"""Functions of `plots` that serve pictures and draw none of their own."""


def draws(function):
    """Whether a public function of `plots` makes a picture: it returns axes, or the bytes of a file."""
    return inspect.isfunction(function) and str(inspect.signature(function).return_annotation) in (
        "Axes", "list[Axes]", "bytes",
    )  # fmt: skip


def test_the_sheet_draws_with_every_function():
    """Each public function that makes a picture makes one at the size of print, so the tests below see it."""
    makers = {name for name in plots.__all__ if draws(getattr(plots, name))} - HELPERS
    assert {"frontier", "gap_maps", "design_picture", "structures"} <= makers
    source = inspect.getsource(printed)
    assert [name for name in sorted(makers) if f"plots.{name}(" not in source] == []
    assert len(printed.SHEET) == 12


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", printed.FIGURES)
def test_a_figure_is_ready_for_print(name):
    """At its size no letters touch, are cut or are below 6 points, and no legend lies on the data."""
    figure = printed.FIGURES[name]().figure
    plots.picture(figure.axes[0])
    if name != "planning":  # a picture for the screen, of three panels
        assert figure.get_size_inches()[0] == pytest.approx(3.4) or figure.get_size_inches()[0] == pytest.approx(7.0)
    assert touching(figure) == []
    assert cut_off(figure) == []
    if name != "trade-off":  # its legend stands in the half that no curve enters
        assert legends_on_data(figure) == []
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip()) >= 6


@pytest.mark.full(but=1)
@pytest.mark.skipif(shutil.which("pdffonts") is None, reason="needs pdffonts, of the package poppler-utils")
@pytest.mark.parametrize("name", [*printed.FIGURES, *printed.FILES])
def test_pdffonts_names_truetype_alone(name, tmp_path):
    """Of every figure, poppler lists at least one font, and all are TrueType, embedded and with their characters."""
    path = tmp_path / "figure.pdf"
    if name in printed.FILES:
        path.write_bytes(printed.FILES[name]("pdf"))
    else:
        printed.FIGURES[name]().figure.savefig(path)
    listed = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert listed
    for line in listed:
        assert re.search(r" (CID )?TrueType +\S+ +yes yes yes ", line), line


COLUMN = {
    "frontier": lambda table: plots.frontier(table, column(4.2)),
    "envelope": lambda table: frontiers.envelope(UTILITY, 2.0).plot(column()),
    "structures": lambda table: structures(UTILITY, 0.1, 6.0, tolerance=1e-4).plot(column()),
    "gap map": lambda table: plots.gap_map(table, "binary_with_erasure", column()),
    "channel": lambda table: plots.channel(optimal_channel(UTILITY, LocalDP(1.0)).channel, column()),
    "blocks": lambda table: plots.blocks(optimal_channel(UTILITY, LocalDP(1.0)), ax=column(3.0)),
}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", COLUMN)
def test_a_picture_fits_a_column(name, table):
    """At 3.4 inches no letters touch or are cut, the legend hides nothing, and the data have over half of the width."""
    ax = COLUMN[name](table)
    plots.picture(ax)
    assert touching(ax.figure) == []
    assert cut_off(ax.figure) == []
    assert legends_on_data(ax.figure) == []
    assert ax.get_window_extent().width / ax.figure.bbox.width > 0.5


@pytest.mark.full(but=1)
@pytest.mark.parametrize("place", ["above", "below", "beside"])
def test_a_legend_moves_with_its_entries(place, table):
    """The legend stands where it is put, with the same entries, off the data."""
    ax = plots.frontier(table)
    before = [text.get_text() for text in ax.get_legend().get_texts()]
    assert plots.move_legend(ax, place) is ax
    plots.picture(ax)
    legend, data = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == before
    assert {"above": legend.y0 >= data.y1 - 2, "below": legend.y1 <= data.y0, "beside": legend.x0 >= data.x1}[place]
    assert cut_off(ax.figure) == []


def test_a_legend_can_be_taken_away_and_other_places_are_refused(table):
    """Without a legend there is none to move; an unknown place is an error that lists the places."""
    ax = plots.frontier(table, legend="none")
    assert ax.get_legend() is None
    with pytest.raises(InvalidInput, match="legend"):
        plots.move_legend(ax, "above")
    with pytest.raises(InvalidInput, match="beside"):
        plots.frontier(table, legend="left")


def test_maps_share_their_scale(table):
    """Equal shares have equal colours in all maps, and one bar stands beside them."""
    other = frontier(Divergence(TOTAL_VARIATION, P0, P1), EPSILONS, np.linspace(0, 1, 6))
    axes = plots.gap_maps({"a": table, "b": other}, "randomized_response_with_erasure")
    largest = max(one.gap("randomized_response_with_erasure").max() for one in (table, other))
    assert {ax.collections[0].get_clim() for ax in axes} == {(0.0, largest)}
    assert len(axes[0].figure.axes) == 3
    assert plots.gap_map(table, "erased_optimum", vmin=0.1, vmax=0.5).collections[0].get_clim() == (0.1, 0.5)


@pytest.mark.parametrize("scale", [{"vmax": 0.0}, {"vmin": 0.5, "vmax": 0.5}, {"vmax": np.nan}, {"vmin": np.inf}])
def test_a_scale_that_does_not_rise_is_refused(table, scale):
    """A scale needs two finite ends, the second above the first."""
    with pytest.raises(InvalidInput, match=r"vmin|vmax"):
        plots.gap_map(table, "erased_optimum", **scale)


def test_no_maps_are_refused():
    """Maps of nothing are an error."""
    with pytest.raises(InvalidInput, match="at least one"):
        plots.gap_maps({}, "erased_optimum")


def test_the_optimum_bends_at_its_corners(table):
    """Between the caps of the table the line has the corners of the envelope, where a chord would lie below it."""
    ax = plots.frontier(table)
    thick = [line for line in ax.get_lines() if line.get_linewidth() == 2.2]
    for line, epsilon in zip(thick, EPSILONS, strict=True):
        exact = frontiers.envelope(UTILITY, epsilon)
        for corner in exact.corners:
            assert np.interp(corner.eta, line.get_xdata(), line.get_ydata()) == pytest.approx(corner.value, abs=1e-9)
    chords = [line for line in plots.frontier(table, corners=False).get_lines() if line.get_linewidth() == 2.2]
    last = frontiers.envelope(UTILITY, 2.0).corners[-1]
    assert np.interp(last.eta, chords[-1].get_xdata(), chords[-1].get_ydata()) < last.value - 1e-3


def test_erased_mechanisms_bend_where_erasing_begins(table):
    """The erased optimum and binary with erasure bend at tanh(epsilon/2), where the table has no cap."""
    thin = [line for line in plots.frontier(table).get_lines() if line.get_linewidth() in (0.9, 1.7)]
    for epsilon in EPSILONS:
        bends = [line for line in thin if np.isclose(line.get_xdata(), np.tanh(epsilon / 2), rtol=1e-6).any()]
        assert len(bends) >= 2


def test_a_bound_that_is_not_drawn_at_every_epsilon_says_where_it_is(table):
    """A bound is drawn wherever some of it is in the picture; the legend names these epsilons if they are not all."""
    ax = plots.frontier(table)
    top = ax.get_ylim()[1]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    for name, label in (("thm6", "[GI, Thm 6]"), ("thm7", "[GI, Thm 7]")):
        inside = [
            epsilon
            for epsilon in EPSILONS
            if any(getattr(row, name) <= top and row.eta > 0 for row in table if row.epsilon == epsilon)
        ]
        written = [text for text in texts if label in text]
        suffix = "" if len(inside) == len(EPSILONS) else ", ε = " + ", ".join(f"{epsilon:g}" for epsilon in inside)
        assert written == ([f"bound {label}{suffix}"] if inside else [])


def bell(mean):
    """A law on twelve answers, with its bell around `mean`."""
    law = np.exp(-((np.arange(12) - mean) ** 2) / 18)
    return law / law.sum()


CROWDED = {
    "corners apart": lambda: plots.envelope(frontiers.envelope(UTILITY, 2.0), column()),
    "five corners": lambda: plots.envelope(frontiers.envelope(Divergence(KL, bell(4), bell(7)), 3.0), column()),
    "two corners at 1": lambda: plots.envelope(frontiers.envelope(Divergence(KL, bell(4), bell(7)), 8.0), column()),
    "bounds of all sizes": lambda: plots.bounds(compare(UTILITY, 700.0, 1.0), column(4.2)),
    "forty reports": lambda: plots.channel(np.full((3, 40), 1 / 40), column()),
    "four maps": lambda: plots.gap_maps(
        {str(number): frontier(UTILITY, [1.0, 2.0], [0.1, 0.5]) for number in range(4)}, "erased_optimum", width=7.0
    )[0],
}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", CROWDED)
def test_crowded_figures_have_room_for_their_letters(name):
    """Close corners, ratios from 1 to 1e200, forty reports and narrow maps: no letters touch, at 3.4 and 7 inches."""
    ax = CROWDED[name]()
    plots.picture(ax)
    assert touching(ax.figure) == []
    assert cut_off(ax.figure) == []


def test_close_corners_are_listed_from_the_left():
    """The line below the curve has the blocks of all corners beside the origin, in the order of eta."""
    found = frontiers.envelope(Divergence(KL, bell(4), bell(7)), 3.0)
    (text,) = (text.get_text() for text in plots.envelope(found, column()).texts)
    assert re.findall(r"\d+", text) == [str(corner.blocks) for corner in found.corners[1:]]


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf, "wide"])
def test_a_width_that_is_not_positive_is_refused(width, table):
    """Each picture that takes a width says so."""
    design = optimal_channel(UTILITY, LocalDP(1.0))
    for draw in (
        lambda: plots.gap_maps({"a": table}, "erased_optimum", width=width),
        lambda: plots.bounds(compare(UTILITY, 1.0), width=width),
        lambda: plots.bounds(compare(UTILITY, [1.0, 2.0]), width=width),
        lambda: plots.design_picture(design, width=width),
    ):
        with pytest.raises(InvalidInput, match="width"):
            draw()


def test_an_envelope_is_its_corners_and_a_constant():
    """The line goes through the corners in order, and stays at the last value up to eta = 1."""
    found = frontiers.envelope(UTILITY, 2.0)
    line = found.plot().get_lines()[0]
    assert line.get_xdata().tolist() == [*(corner.eta for corner in found.corners), 1.0]
    assert line.get_ydata()[-1] == line.get_ydata()[-2] == found.corners[-1].value


def test_corners_of_another_utility_are_not_drawn():
    """A table whose utility differs from point to point has only its own points on the line."""

    def posed(epsilon, eta):
        return Divergence(KL, P0, P1 if eta < 0.5 else P0[::-1])

    ax = plots.frontier(frontier(posed, [2.0], [0.2, 0.6, 1.0]))
    assert next(line for line in ax.get_lines() if line.get_linewidth() == 2.2).get_xdata().tolist() == [0.2, 0.6, 1.0]


def test_bits_are_drawn_in_bits():
    """The frontier of a comparison in bits is the one in nats divided by log 2, on the same points."""
    drawn = []
    for unit in ("nats", "bits"):
        ax = plots.bounds(compare(UTILITY, [1.0, 2.0], [0.2, 0.6, 1.0], unit=unit), column(4.0))
        drawn.append([line.get_ydata()[-1] for line in ax.get_lines() if line.get_linewidth() == 2.2])
    assert np.allclose(drawn[0], np.multiply(drawn[1], np.log(2)))


@pytest.mark.parametrize(("low", "high"), [(0.1, 6.0), (1.0, 1.2), (1e-9, 700.0), (0.5, 2.0)])
@pytest.mark.parametrize("width", [2.0, 3.4, 8.0])
def test_ticks_of_logarithmic_scales_do_not_touch(low, high, width):
    """From a tenth of a decade to twelve decades, in narrow and in wide figures, at least one tick is labelled."""
    ax = PrintFigure(figsize=(width, 2.0), layout="constrained").subplots()
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    log_ticks(ax)
    plots.picture(ax)
    assert touching(ax.figure) == []
    inside = [label for label in ax.get_xticklabels() if label.get_text() and low <= label.get_position()[0] <= high]
    assert inside

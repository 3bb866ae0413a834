"""Letters of a figure that touch, and legends that lie on data, by the boxes that matplotlib gives them."""

from functools import lru_cache
from itertools import combinations


@lru_cache(maxsize=1)
def drawn(figure):
    """What a finished figure was drawn with, once for all that is asked of it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    return renderer


def letters(figure):
    """Every text that is drawn, with its box in pixels."""
    renderer = drawn(figure)
    found = []
    for ax in figure.axes:
        if not ax.get_visible():
            continue
        found += [*ax.texts, ax.title, ax._left_title, ax._right_title, ax.xaxis.label, ax.yaxis.label]
        for axis in (ax.xaxis, ax.yaxis):
            scale = axis.get_transform().transform  # of logarithms on a logarithmic axis
            low, high = sorted(scale(axis.get_view_interval()))
            slack = 1e-6 * (high - low)
            ticks = zip(scale(axis.get_majorticklocs()), axis.get_majorticklabels(), strict=True)
            found += [label for place, label in ticks if low - slack <= place <= high + slack]
        if ax.get_legend():
            found += ax.get_legend().get_texts()
    shown = [one for one in found if one.get_visible() and one.get_text().strip()]
    return [(one.get_text(), one.get_window_extent(renderer)) for one in shown]


def touching(figure, pixels=1.5):
    """Pairs of texts whose boxes share more than `pixels` in both directions."""
    found = []
    for (name, one), (other_name, other) in combinations(letters(figure), 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        up = min(one.y1, other.y1) - max(one.y0, other.y0)
        if across > pixels and up > pixels:
            found.append((name, other_name))
    return found


def cut_off(figure, pixels=1.5):
    """Texts that reach beyond the figure."""
    box = figure.bbox
    return [
        name
        for name, one in letters(figure)
        if one.x0 < box.x0 - pixels or one.y0 < box.y0 - pixels or one.x1 > box.x1 + pixels or one.y1 > box.y1 + pixels
    ]


def legends_on_data(figure, pixels=1.5):
    """Axes whose legend shares more than `pixels` with the box of the data."""
    renderer = drawn(figure)
    found = []
    for ax in figure.axes:
        if ax.get_legend():
            legend, box = ax.get_legend().get_window_extent(renderer), ax.get_window_extent(renderer)
            across = min(legend.x1, box.x1) - max(legend.x0, box.x0)
            up = min(legend.y1, box.y1) - max(legend.y0, box.y0)
            if across > pixels and up > pixels:
                found.append([text.get_text() for text in ax.get_legend().get_texts()])
    return found

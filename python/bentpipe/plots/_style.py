"""Shared parts of all plots: colours, units, coinciding points, ribbons, notes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008), Color Universal Design.
BLACK, BLUE, ORANGE, GREEN = "#000000", "#0072B2", "#E69F00", "#009E73"
VERMILION, SKY, PURPLE, GREY = "#D55E00", "#56B4E9", "#CC79A7", "#7F7F7F"

#: Colour and dashes of each case, so that cases do not differ by colour alone.
CASES = [
    (BLUE, "-"),
    (VERMILION, "--"),
    (GREEN, "-."),
    (PURPLE, ":"),
    (ORANGE, (0, (5, 1))),
    (SKY, (0, (3, 1, 1, 1))),
    (BLACK, (0, (1, 1))),
]

#: Columns of a plot for curves: two or three per pixel of a usual figure. The extremes of each column are kept.
CELLS = 1500

#: Cells of a plot along an axis for points, about 1/72 inch each. Of the points in a cell, one is drawn.
SPOTS = 600

#: Intervals of the strip of losses, and its height as a share of the Axes.
INTERVALS, STRIP = 300, 0.08

#: Points, 1/72 inch: a line of this width is a pixel on a screen of 96 per inch.
PIXEL = 0.75


def case_style(number: int) -> dict[str, Any]:
    """Line style of the case with this number, from 0."""
    colour, dashes = CASES[number % len(CASES)]
    # After the end of the list the pairs repeat with thinner lines.
    return {"color": colour, "linestyle": dashes, "linewidth": 1.6 / (1 + number // len(CASES))}


def need_result(result: object) -> None:
    """Refuses what is not one run."""
    if not hasattr(result, "trace"):
        raise TypeError(f"this plot is of the Result that run returns, not of a {type(result).__name__}")


def new_axes(ax: Axes | None) -> Axes:
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7.0, 4.0), layout="constrained")[1]


def scale(maximum: float, unit: str) -> tuple[float, str]:
    """Factor and name of the unit in which a value up to ``maximum`` has few digits: ``(1e-6, "MB")``."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if maximum >= factor:
            return 1 / factor, prefix + unit
    return 1.0, unit


def apart(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points, but only one of those that would fall on the same spot."""
    if len(x) <= 1:
        return x, y

    def cells(values: np.ndarray) -> np.ndarray:
        width = (values.max() - values.min()) or 1.0
        return ((values - values.min()) / width * SPOTS).astype(np.int64)

    _, kept = np.unique(cells(x) * (SPOTS + 1) + cells(y), return_index=True)
    kept.sort()
    return x[kept], y[kept]


def envelope(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first, minimum, maximum and last point of a curve in each cell along the time axis, so that no peak is lost."""
    if len(x) <= 4 * CELLS:
        return x, y
    cell = ((x - x[0]) / ((x[-1] - x[0]) or 1.0) * CELLS).astype(np.int64)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    ends = np.append(starts[1:], len(x))
    kept: set[int] = set()
    for start, end in zip(starts.tolist(), ends.tolist()):
        part = y[start:end]
        kept.update((start, start + int(part.argmin()), start + int(part.argmax()), end - 1))
    order = np.array(sorted(kept))
    return x[order], y[order]


def ribbon(ax: Axes, starts: np.ndarray, ends: np.ndarray, label: str, low: float = 0.0, high: float = 1.0, alpha: float = 0.35) -> None:
    """Intervals of time as bands between two heights (shares of the Axes). Each is at least a pixel wide."""
    from matplotlib.collections import PolyCollection

    corners = [[(a, low), (a, high), (b, high), (b, low)] for a, b in zip(starts, ends)]
    # The edge keeps a short interval visible at any zoom.
    bands = PolyCollection(
        corners, facecolor=GREY, edgecolor=GREY, linewidth=PIXEL, alpha=alpha, transform=ax.get_xaxis_transform(), label=label, zorder=0.5
    )
    ax.add_collection(bands, autolim=False)


def rug(ax: Axes, times: np.ndarray, label: str, colour: str = VERMILION) -> None:
    """Instants as short ticks below the upper edge, where they hide nothing. Those on the same spot are one tick."""
    if len(times):
        spots, _ = apart(np.asarray(times, dtype=float), np.zeros(len(times)))
        ax.vlines(spots, 0.955, 1.0, transform=ax.get_xaxis_transform(), color=colour, linewidth=PIXEL, label=label)


def losses(ax: Axes, lost: np.ndarray, offered: np.ndarray, end: float, label: str) -> None:
    """A strip along the upper edge with the share of offered packets that were lost, in each interval of time.

    In an interval in which all packets were lost, the bar is as high as the strip. A single loss is still visible.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Rectangle

    if not len(lost):
        return
    edges = np.linspace(0.0, max(end, float(lost.max())), INTERVALS + 1)
    gone, _ = np.histogram(lost, bins=edges)
    tried, _ = np.histogram(offered, bins=edges)
    share = np.minimum(gone / np.maximum(tried, gone.clip(min=1)), 1.0)
    bars = [
        [(edges[n], 1.0), (edges[n], 1.0 - STRIP * high), (edges[n + 1], 1.0 - STRIP * high), (edges[n + 1], 1.0)]
        for n, high in enumerate(share.clip(min=0.15))
        if gone[n]
    ]
    drawn = PolyCollection(
        bars, facecolor=VERMILION, edgecolor=VERMILION, linewidth=PIXEL, transform=ax.get_xaxis_transform(), label=label, zorder=3
    )
    ax.add_collection(drawn, autolim=False)
    # Not `axhspan`, whose heights are data.
    ax.add_patch(Rectangle((0.0, 1.0 - STRIP), 1.0, STRIP, transform=ax.transAxes, facecolor="#F3F3F3", edgecolor="none", zorder=0.4))


def note(ax: Axes, text: str) -> None:
    """A note below the right end of the Axes, about what the picture leaves out."""
    ax.annotate(
        text, (1.0, 0.0), (0, -30), xycoords="axes fraction", textcoords="offset points", ha="right", va="top", fontsize="x-small", color="#444444"
    )


def time_axis(ax: Axes, end: float) -> None:
    """Sets the time axis, from the start of the run."""
    ax.set_xlabel("time (s)")
    ax.set_xlim(0.0, end if end > 0.0 and math.isfinite(end) else 1.0)


def finish(ax: Axes) -> Axes:
    """Adds the grid, and the legend if anything has a label."""
    ax.grid(True, color="#DDDDDD", linewidth=0.5)
    ax.set_axisbelow(True)
    if ax.get_legend_handles_labels()[0]:
        # Outside the Axes it hides nothing, if the figure's layout makes room for it.
        beside: dict[str, Any] = {} if ax.figure.get_layout_engine() is None else {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
        ax.legend(fontsize="small", **beside)
    return ax

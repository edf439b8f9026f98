"""Plots of many runs, or of many flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .. import _bentpipe, stats
from . import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .._runs import Result, Runs

#: Max number of bars; a note says how many were left out.
MAX_BARS = 100

#: Up to this number of runs, each run is a dot beside its box.
MAX_DOTS = 100


def _times(runs: Runs, flow: str | None) -> dict[str, tuple[np.ndarray, int]]:
    """For each case, the times of the finished transfers and the number of runs."""
    if not hasattr(runs, "cases"):
        raise TypeError(f"this plot is of the Runs that replicate and compare return, not of a {type(runs).__name__}")
    found = {}
    for case in runs.cases:
        values = runs.values("time_s", case, flow).astype(float)
        found[case] = (values[np.isfinite(values)], len(values))
    return found


def completion(runs: Runs, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Completion times as empirical distribution functions, a line per case, beside the minimum time that the links allow.

    Transfers that did not finish count: their line ends below 1, and the legend says how many finished. ``flow`` may be left out if there is only one.
    """
    found = _times(runs, flow)
    ax = style.new_axes(ax)
    for number, (case, (times, total)) in enumerate(found.items()):
        label = case if len(times) == total else f"{case} ({len(times)} of {total} finished)"
        if not runs.is_random and len(times):
            label += f" ({stats.CONSTANT})"
        if not len(times):
            ax.plot([], [], label=label, **style.case_style(number))
            continue
        x, y = stats.cdf(times, runs=total)
        ax.step(np.concatenate([x[:1], x]), np.concatenate([[0.0], y]), where="post", label=label, **style.case_style(number))
    limits = runs.flows["limit_time_s"].astype(float)
    if flow is not None:
        limits = limits[runs.flows["flow"] == flow]
    if np.isfinite(limits).any():
        ax.axvline(float(np.nanmin(limits)), color=style.BLACK, linewidth=1.0, linestyle=(0, (1, 3)), label="limit of the links")
    ax.set_xlim(left=0.0)
    ax.set_ylim(0.0, 1.02)
    ax.set_xlabel("completion time (s)")
    ax.set_ylabel("share of runs")
    return style.finish(ax)


def box(runs: Runs, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Completion times side by side: median and quartiles as a box, whiskers over all runs, and up to 100 runs as dots.

    The notch is the median's exact 95 % interval. Below each case is the number of runs that finished. Runs that did not finish rank last, as
    in :meth:`Runs.medians`: the parts of a box that fall on them are above the picture.
    """
    labels, found = [], _times(runs, flow)
    ax = style.new_axes(ax)
    longest = max((float(times.max()) for times, _ in found.values() if len(times)), default=1.0)
    for place, (case, (times, total)) in enumerate(found.items(), start=1):
        labels.append(f"{case}\n{len(times)} of {total}")
        if not len(times):
            continue
        every = np.concatenate([times, np.full(total - len(times), np.inf)])
        interval = stats.median_interval(every) if runs.is_random else stats.certain(float(times[0]))
        low, first, middle, third, high = (stats.quantile(every, p) for p in (0.0, 0.25, 0.5, 0.75, 1.0))
        drawn = {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}
        drawn |= {"cilo": max(interval.low, low), "cihi": min(interval.high, high)}
        ax.bxp(
            [{key: min(value, 3.0 * longest) for key, value in drawn.items()} | {"fliers": []}],
            positions=[place],
            widths=0.5,
            shownotches=True,
            medianprops={"color": style.VERMILION, "linewidth": 1.6},
            boxprops={"color": style.BLUE},
            whiskerprops={"color": style.BLUE},
            capprops={"color": style.BLUE},
            manage_ticks=False,
        )
        if len(times) <= MAX_DOTS:
            # The horizontal offset depends on the rank, so that the picture is always the same.
            beside = place + 0.34 + 0.08 * (np.arange(len(times)) % 3 - 1)
            ax.plot(beside, np.sort(times), ".", color=style.GREY, markersize=3)
    ax.set_xticks(range(1, len(labels) + 1), labels)
    ax.set_xlim(0.4, len(labels) + 0.75)
    ax.set_ylim(bottom=0.0)
    if any(len(times) < total for times, total in found.values()):
        ax.set_ylim(top=1.05 * longest)
    ax.set_ylabel("completion time (s)")
    return style.finish(ax)


def goodput_against_loss(
    cases: Mapping[str, Mapping[float, Runs]],
    flow: str | None = None,
    *,
    mss: int = 1460,
    every: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Goodput against the probability of loss: medians with their exact 95 % intervals, the analytic curve, and the limit of the links.

    ``cases`` has, for each name, the runs at each loss probability (0 to 1). The curve is that of TCP under random loss by Padhye and
    others (1998, equation 30), for segments of ``mss`` bytes and the path's propagation delay. The window grows by a segment in ``every``
    round trips (1; 2 with delayed ACKs), and the timeout is two round trips, at least the RFC's minimum of 1 s. The curve ignores queue,
    slow start and the end of the transfer.
    """
    points = {case: dict(sorted(by_loss.items())) for case, by_loss in cases.items()}
    losses = sorted({loss for by_loss in points.values() for loss in by_loss if loss > 0.0})
    if not losses:
        raise ValueError("no case has a loss above 0")
    ax = style.new_axes(ax)
    some = next(iter(next(iter(points.values())).values()))
    scenario = next(iter(some.cases.values()))
    name = flow if flow is not None else scenario.flows[0]
    from .._answers import explain

    outlook = next(look for look in explain(scenario) if look["name"] == name)
    limit, rtt_s = outlook["limit_goodput_bit_s"], outlook["rtt_ms"] / 1e3
    factor, unit = style.scale(limit or 1e6, "bit/s")
    fine = np.geomspace(losses[0], losses[-1], 200)
    rto_s = max(1.0, 2 * rtt_s)
    curve = np.array([_bentpipe.rate_under_loss(float(loss), rtt_s, rto_s, every) for loss in fine]) * mss * 8
    if limit:
        curve = np.minimum(curve, limit)
        ax.axhline(limit * factor, color=style.BLACK, linewidth=1.0, linestyle=(0, (1, 3)), label="limit of the links")
    ax.plot(fine, curve * factor, color=style.GREY, linewidth=1.2, label="TCP under random loss (Padhye 1998)")
    zeros = []
    for number, (case, by_loss) in enumerate(points.items()):
        x, y, low, high = [], [], [], []
        for loss, runs in by_loss.items():
            rates = runs.values("goodput_bit_s", None, flow).astype(float)
            found = stats.median_interval(rates) if runs.is_random else stats.certain(float(rates[0]))
            if loss <= 0.0:
                zeros.append(f"{case} without loss: {found.estimate * factor:.3g} {unit}")
                continue
            x.append(loss)
            y.append(found.estimate * factor)
            low.append((found.estimate - max(found.low, 0.0)) * factor)
            # An open end is drawn up to the limit.
            high.append((min(found.high, limit or found.estimate) - found.estimate) * factor)
        colour = style.case_style(number)["color"]
        ax.errorbar(x, y, yerr=np.array([low, np.maximum(high, 0.0)]), fmt="osD^v<>"[number % 7], color=colour, markersize=4.5, capsize=2.5, linewidth=1.2, label=case)
    if zeros:
        style.note(ax, "; ".join(zeros))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("probability of loss")
    ax.set_ylabel(f"goodput ({unit})")
    return style.finish(ax)


def fairness(result: Result, *, ax: Axes | None = None) -> Axes:
    """Goodput of each flow as a bar, beside the equal share, with Jain's index of all flows in the title.

    At most 100 bars; a note says how many were left out. The index is of all flows.
    """
    style.need_result(result)
    flows = [flow for flow in result.summary["flows"] if flow["goodput_bit_s"] is not None]
    rates = np.array([flow["goodput_bit_s"] for flow in flows], dtype=float)
    if not rates.any():
        raise ValueError("no flow has a goodput")
    ax = style.new_axes(ax)
    factor, unit = style.scale(float(rates.max()), "bit/s")
    shown = flows[:MAX_BARS]
    ax.bar(range(len(shown)), rates[: len(shown)] * factor, color=style.SKY, edgecolor=style.BLUE, linewidth=0.6, label="goodput")
    ax.axhline(float(rates.mean()) * factor, color=style.BLACK, linewidth=1.0, linestyle="--", label="equal share")
    if len(shown) <= 12:
        ax.set_xticks(range(len(shown)), [flow["name"] for flow in shown], rotation=30, ha="right")
    ax.set_xlabel(f"flow ({len(flows)} in all)")
    if len(flows) > len(shown):
        style.note(ax, f"{len(shown)} of {len(flows)} flows")
    ax.set_ylabel(f"goodput ({unit})")
    ax.set_title(f"{result.scenario.name}: Jain's index {stats.jain(rates):.3f}")
    return style.finish(ax)

"""Plots of one run over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._runs import _names
from . import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .._runs import Result
    from .._tables import Table

#: Max number of flows; a note says how many were left out.
MAX_FLOWS = 30

#: Intervals over which goodput is averaged, unless their length is given.
INTERVALS = 100


class _Flow:
    """A flow of a result: the ends of its data, and its outlook."""

    def __init__(self, result: Result, name: str | None) -> None:
        style.need_result(result)
        self.summary = result.flow(name)
        self.outlook: dict[str, Any] = next(look for look in result.outlook if look["name"] == self.summary.name)
        answers = self.outlook["nodes"][0] != self.summary.source
        self.data_forward = not answers
        # For a split flow, the first leg of the data.
        legs = len(self.summary.legs)
        self.leg = self.summary.name if not legs else f"{self.summary.name}/leg-{legs if answers else 1}"
        self.end = f"{self.leg}/{'receiver' if answers else 'sender'}"
        last = self.summary.name if not legs else f"{self.summary.name}/leg-{1 if answers else legs}"
        self.destination = f"{last}/{'sender' if answers else 'receiver'}"
        title = self.summary.variant or "UDP"
        self.title = f"{self.summary.name} ({title})"

    @property
    def is_split(self) -> bool:
        """True if the plots of windows and round trips show one leg, to which values of the whole path do not apply."""
        return bool(self.summary.legs)

    def need_connection(self) -> None:
        if self.summary.variant is None:
            raise ValueError(f"`{self.summary.name}` is UDP: it has no sequence, window or round trip")


def _end(result: Result, flow: _Flow | None = None) -> float:
    """The end of the flow if it finished, else of the run, seconds."""
    if flow is not None and flow.summary.time_s is not None:
        return flow.summary.start_s + flow.summary.time_s
    return result.end_s


def _bursts(ax: Axes, result: Result, link: str | None, end: float) -> None:
    table = result.trace("bursts")
    starts, ends = table["start_s"], table["end_s"]
    shown = starts < end
    if link is not None:
        shown &= table["link"] == link
    if shown.any():
        style.ribbon(ax, starts[shown], np.minimum(ends[shown], end), f"error burst ({np.count_nonzero(shown)})")


def _positions(packets: Table) -> np.ndarray:
    """The number of the first byte of data in each packet, from 1, as TCP counts: that of QUIC is the offset in its stream."""
    offset = packets["offset"].astype(float)
    return np.where(np.isnan(offset), packets["seq"], offset + 1)


def _acked(packets: Table, data: np.ndarray, ends: np.ndarray, acks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and bytes of the line of ACKs. `data` and `acks` select rows of the sender; `ends` is the last byte of each packet's data.

    An ACK of QUIC names a packet: the line is at the last data of the newest packet with data that it acknowledges.
    """
    time, ack = packets["time_s"], packets["ack"].astype(float)
    if np.isnan(packets["offset"].astype(float)[data]).all():
        return time[acks], ack[acks] - 1
    # The packets of the handshake are numbered separately.
    named = acks & (packets["flags"] == "1-rtt") & ~np.isnan(ack)
    newest = np.searchsorted(packets["seq"][data], ack[named], side="right") - 1
    known = newest >= 0
    return time[named][known], np.maximum.accumulate(ends[data][newest[known]])


def sequence(result: Result, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Time-sequence graph of a flow, as in xplot: the sent data, the line of ACKs, and the line of the window above it.

    The vertical axis is the sequence number in bytes from the start of the data, at the sender. A strip along the upper edge shows the
    share of packets lost at each time. Retransmissions are rings. The legend counts both. The line of the window is the last ACK plus the
    window it advertises; if it is above the picture, the legend says so. ``flow`` may be left out if there is only one. QUIC's numbers are
    offsets in the streams, and it has no line of the window.

    Raises :class:`ValueError` for UDP.
    """
    of = _Flow(result, flow)
    of.need_connection()
    ax = style.new_axes(ax)
    packets, drops, end = result.trace("packets"), result.trace("drops"), _end(result, of)
    time, seq, length = packets["time_s"], _positions(packets), np.nan_to_num(packets["len"].astype(float))
    here = packets["at"] == of.end
    data = here & (packets["event"] == "sent") & (length > 0)
    again = data & (packets["retransmission"] == True)  # noqa: E712 (an array of objects)
    acks = here & (packets["event"] == "received")
    # The SYN has number 0, the first byte of data 1.
    top = max(float((seq + length - 1)[data].max(initial=1.0)), 1.0)
    factor, unit = style.scale(top, "B")
    x, y = style.apart(time[data & ~again], (seq[data & ~again] - 1) * factor)
    ax.plot(x, y, ".", color=style.BLUE, markersize=2.5, label=f"sent ({np.count_nonzero(data)} segments)")
    x, acked = _acked(packets, data, seq + length - 1, acks)
    x, y = style.envelope(x, acked * factor)
    ax.step(x, y, where="post", color=style.GREEN, linewidth=1.1, label="ACK")
    first = packets["ack"].astype(float)[acks] - 1
    edge = first + packets["window"].astype(float)[acks]
    # The window of a SYN is not scaled, and before data it limits nothing. QUIC's is not in the trace.
    opened = (first > 0) & np.isfinite(edge)
    if opened.any():
        beyond = " (above the picture)" if edge[opened].min() > 1.1 * top else ""
        x, y = style.envelope(time[acks][opened], edge[opened] * factor)
        ax.step(x, y, where="post", color=style.ORANGE, linewidth=1.1, linestyle="--", label=f"window{beyond}")
    if again.any():
        x, y = style.apart(time[again], (seq[again] - 1) * factor)
        ax.plot(
            x, y, "o", markersize=4, markerfacecolor="none", markeredgecolor=style.VERMILION, markeredgewidth=0.8, label=f"sent again ({np.count_nonzero(again)})"
        )
    lost = (drops["flow"] == of.leg) & (drops["forward"].astype(bool) == of.data_forward)
    if lost.any():
        # A mark per loss would look like a wall even if few packets were lost; the strip shows their share at each time.
        share = 100 * int(lost.sum()) / max(int(data.sum()), 1)
        where = np.isin(packets["at"], np.unique(drops["at"][lost]))
        offered = where & (packets["event"] == "offered") & (packets["flow"] == of.leg)
        label = f"lost ({np.count_nonzero(lost)}, {share:.2g} %),\nheight: share of packets"
        style.losses(ax, drops["time_s"][lost], time[offered], end, label)
    _bursts(ax, result, of.outlook["bottleneck"], end)
    style.time_axis(ax, end)
    ax.set_ylim(0.0, top * 1.08 * factor)
    ax.set_ylabel(f"sequence number ({unit})")
    ax.set_title(of.title)
    return style.finish(ax)


def cwnd(result: Result, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Congestion window and data in flight of a flow, beside the path's bandwidth-delay product; timeouts are ticks at the upper edge.

    Values are in bytes, after each ACK or loss. ssthresh is drawn where it fits into the picture. For a split flow the first leg of the
    data is drawn, without the product, which belongs to the whole path. Raises :class:`ValueError` for UDP.
    """
    of = _Flow(result, flow)
    of.need_connection()
    ax = style.new_axes(ax)
    windows, end = result.trace("windows"), _end(result, of)
    here = windows["at"] == of.end
    time, window = windows["time_s"][here], windows["cwnd_bytes"][here]
    flight, threshold = windows["flight_bytes"][here], windows["ssthresh_bytes"].astype(float)[here]
    product = None if of.is_split else of.outlook["bdp_bytes"]
    top = max(float(window.max(initial=1)), float(flight.max(initial=0)), float(product or 0))
    factor, unit = style.scale(top, "B")
    ax.step(*style.envelope(time, flight * factor), where="post", color=style.SKY, linewidth=0.9, label="in flight")
    ax.step(*style.envelope(time, window * factor), where="post", color=style.BLUE, linewidth=1.4, label="congestion window")
    limited = np.where(threshold <= top, threshold, np.nan)
    if np.isfinite(limited).any():
        ax.step(time, limited * factor, where="post", color=style.PURPLE, linewidth=1.0, linestyle=":", label="ssthresh")
    if product:
        ax.axhline(product * factor, color=style.BLACK, linewidth=1.0, linestyle="--", label="bandwidth-delay product")
    recovery = result.trace("recovery")
    timeouts = (recovery["at"] == of.end) & (recovery["event"] == "timeout")
    style.rug(ax, recovery["time_s"][timeouts], f"timeout ({np.count_nonzero(timeouts)})")
    _bursts(ax, result, of.outlook["bottleneck"], end)
    style.time_axis(ax, end)
    ax.set_ylim(0.0, top * 1.08 * factor)
    ax.set_ylabel(f"window ({unit})")
    ax.set_title(of.title)
    return style.finish(ax)


def queue(result: Result, link: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The queue before a link, in packets, as arriving packets find it; the strip along the upper edge has the share that was dropped.

    The default ``link`` is the bottleneck of the first flow. Raises :class:`ValueError` if there is no such link.
    """
    style.need_result(result)
    ax, end = style.new_axes(ax), result.end_s
    if link is None:
        link = result.outlook[0]["bottleneck"]
        if link is None:
            raise ValueError(f"no line on the first flow's path takes time: name a link; there are {', '.join(result.scenario.links)}")
    if link not in result.scenario.links:
        raise ValueError(f"no link `{link}`; there are {', '.join(result.scenario.links)}")
    waiting, drops = result.trace("queue"), result.trace("drops")
    here = waiting["link"] == link
    time, packets = waiting["time_s"][here], waiting["packets"][here]
    # Dots, because the trace does not show how the queue drains between arrivals.
    ax.plot(*style.apart(time, packets), ".", color=style.BLUE, markersize=2.5, label="waiting, at arrivals")
    average = waiting["average_packets"].astype(float)[here]
    if np.isfinite(average).any():
        ax.plot(*style.envelope(time, average), color=style.ORANGE, linewidth=1.2, linestyle="--", label="RED's average")
    rooms = [look["queue"]["packets"] for look in result.outlook if look["bottleneck"] == link and look["queue"]]
    room = rooms[0] if rooms else None
    if room is not None:
        ax.axhline(room, color=style.BLACK, linewidth=1.0, linestyle="--", label="limit")
    lost = (drops["at"] == link) & (drops["reason"] != "channel")
    label = f"dropped ({np.count_nonzero(lost)}),\nheight: share of packets"
    # The trace of the queue has a row for each packet that was offered.
    style.losses(ax, drops["time_s"][lost], time, end, label)
    _bursts(ax, result, link, end)
    style.time_axis(ax, end)
    ax.set_ylim(0.0, 1.1 * max(float(packets.max(initial=1)), room or 0.0))
    ax.set_ylabel("queue (packets)")
    ax.set_title(f"queue of {link}")
    return style.finish(ax)


def rtt(result: Result, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Round-trip samples of a flow's sender, in milliseconds, beside the propagation delay of the path.

    For a split flow the samples are from the first leg of the data, and the delay, which belongs to the whole path, is left out. Raises
    :class:`ValueError` for UDP.
    """
    of = _Flow(result, flow)
    of.need_connection()
    ax = style.new_axes(ax)
    samples, end = result.trace("rtt"), _end(result, of)
    here = samples["at"] == of.end
    x, y = style.apart(samples["time_s"][here], samples["rtt_s"][here] * 1e3)
    ax.plot(x, y, ".", color=style.BLUE, markersize=3, label=f"sample ({np.count_nonzero(here)})")
    least = 0.0 if of.is_split else of.outlook["rtt_ms"]
    if least:
        name = "propagation, on average" if of.outlook["delay_changes"] else "propagation"
        ax.axhline(least, color=style.BLACK, linewidth=1.0, linestyle="--", label=name)
    _bursts(ax, result, of.outlook["bottleneck"], end)
    style.time_axis(ax, end)
    ax.set_ylim(0.0, 1.08 * max(float(y.max(initial=0.0)), least) or 1.0)
    ax.set_ylabel("round trip (ms)")
    ax.set_title(of.title)
    return style.finish(ax)


def throughput(result: Result, flows: list[str] | None = None, *, interval_s: float | None = None, ax: Axes | None = None) -> Axes:
    """Goodput of flows over time: new data that arrives at the receiver in each interval, in bit/s, beside the limit of the links.

    The default is all connections, at most 30; a note says how many were left out. The default ``interval_s`` is a hundredth of the run.

    Raises :class:`ValueError` for UDP, whose packets are traced at the links only.
    """
    style.need_result(result)
    ax, end = style.new_axes(ax), result.end_s
    names = [flow["name"] for flow in result.summary["flows"] if flow["variant"] is not None] if flows is None else _names("flows", flows)
    if not names:
        raise ValueError("there are no connections to draw")
    shown = names[:MAX_FLOWS]
    width = end / INTERVALS if interval_s is None else interval_s
    if not width > 0.0:
        raise ValueError(f"an interval is longer than 0 s, not {width} s")
    packets = result.trace("packets")
    time, length = packets["time_s"], np.nan_to_num(packets["len"].astype(float))
    position = np.stack([np.nan_to_num(packets["stream"].astype(float)), _positions(packets)], axis=1)
    received = (packets["event"] == "received") & (length > 0)
    edges = np.arange(0.0, end + width, width)
    curves, limit, changes = [], 0.0, False
    for name in shown:
        of = _Flow(result, name)
        of.need_connection()
        changes |= of.outlook["rate_changes"]
        here = received & (packets["at"] == of.destination)
        # Data that arrives again is not new.
        _, first = np.unique(position[here], axis=0, return_index=True)
        bits, _ = np.histogram(time[here][first], bins=edges, weights=length[here][first] * 8)
        curves.append((of, bits / width))
        limit = max(limit, of.outlook["limit_goodput_bit_s"] or 0.0)
    factor, unit = style.scale(max(limit, *(float(rates.max(initial=1.0)) for _, rates in curves)), "bit/s")
    for number, (of, rates) in enumerate(curves):
        ax.stairs(rates * factor, edges, label=of.title if len(shown) <= len(style.CASES) else None, **style.case_style(number))
    if limit:
        # At times, a rate that changes is above the limit of the whole transfer.
        name = "limit of the links, on average" if changes else "limit of the links"
        ax.axhline(limit * factor, color=style.BLACK, linewidth=1.0, linestyle=(0, (1, 3)), label=name)
    if len(shown) > len(style.CASES):
        ax.plot([], [], color=style.GREY, label=f"{len(shown)} flows")
    if len(names) > len(shown):
        style.note(ax, f"{len(shown)} of {len(names)} flows")
    _bursts(ax, result, None, end)
    style.time_axis(ax, end)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel(f"goodput ({unit})")
    ax.set_title(result.scenario.name)
    return style.finish(ax)


def fades(result: Result, *, ax: Axes | None = None) -> Axes:
    """Error bursts of each link as a ribbon over time, with their number and their share of the time. Each is at least a pixel wide."""
    style.need_result(result)
    ax, end = style.new_axes(ax), result.end_s
    bursts = result.trace("bursts")
    links, names = list(dict.fromkeys(bursts["link"])), []
    for row, link in enumerate(links):
        here = bursts["link"] == link
        starts, ends = bursts["start_s"][here], np.minimum(bursts["end_s"][here], end)
        low, high = row / len(links) + 0.15 / len(links), (row + 1) / len(links) - 0.15 / len(links)
        style.ribbon(ax, starts, ends, "", low, high, alpha=1.0)
        share = 100 * float(np.sum(ends - starts)) / end
        names.append(f"{link}\n{len(starts)} burst{'s' * (len(starts) != 1)}, {share:.2g} %")
    if not links:
        ax.text(0.5, 0.5, "no error bursts in this run", transform=ax.transAxes, ha="center", va="center")
    style.time_axis(ax, end)
    ax.set_ylim(0.0, 1.0)
    ax.set_yticks([(row + 0.5) / max(len(links), 1) for row in range(len(links))], names, fontsize="small")
    ax.set_ylabel("error bursts")
    ax.set_title(result.scenario.name)
    return style.finish(ax)


def overview(result: Result, flow: str | None = None) -> Figure:
    """A Figure with sequence numbers, windows, queue and round trips of a flow, one below the other over the same axis of time."""
    from matplotlib import pyplot

    _Flow(result, flow).need_connection()
    figure, axes = pyplot.subplots(4, 1, figsize=(8.0, 11.0), sharex=True, layout="constrained")
    sequence(result, flow, ax=axes[0])
    cwnd(result, flow, ax=axes[1])
    queue(result, _Flow(result, flow).outlook["bottleneck"], ax=axes[2])
    rtt(result, flow, ax=axes[3])
    for ax in axes[:-1]:
        ax.set_xlabel("")
    # The axes are shared, and the last plot has set them.
    style.time_axis(axes[-1], _end(result, _Flow(result, flow)))
    return figure

"""Paths, formulas, fits, recommendations and papers."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _bentpipe
from ._bentpipe import Scenario
from ._runs import _seed, _threads, _whole
from ._scenarios import ScenarioLike, load
from ._tables import Table


def explain(scenario: ScenarioLike, *, set: Mapping[str, Any] | None = None, variant: str | None = None) -> list[dict[str, Any]]:
    """The outlook for each flow, without a run: path, delay, bottleneck, BDP, queue, limit, hints.

    A list of dictionaries in the order of the flows, with the keys of ``bentpipe explain --json``: ``rtt_ms`` and ``one_way_ms``
    (propagation only), ``bottleneck`` (a link) with ``bottleneck_bit_s``, ``bdp_bytes``, ``queue`` (``packets``, ``bytes``, ``ms``,
    ``bdps``, or None if unlimited), ``mean_loss`` (0 to 1), ``limit_time_s``, ``limit_goodput_bit_s``, ``hints``.

    >>> import bentpipe as bp
    >>> path = bp.explain("geo")[0]
    >>> path["rtt_ms"], path["bottleneck"], path["bdp_bytes"]
    (600.0, 'sat/forward', 1500000)
    """
    return json.loads(load(scenario, set=set, variant=variant).outlook())["flows"]


def model(name: str, *, sweep: Mapping[str, str] | None = None, **values: Any) -> list[dict[str, Any]]:
    """Evaluates formulas from a paper and returns a list of points.

    ``"hybrid"``: TCP split at a satellite gateway, or end to end over ARQ (Zhu, Roy and Kim). ``buffer``, ``t1``, ``t2``, ``loss`` and
    optionally ``rate``, ``packet`` and ``segments`` are texts with units; ``sweep`` varies one of them: ``FROM..TO:STEP``, including
    both ends, or ``A,B,C``.

    ``"rates"``: rates of the layers of IP over ATM over SONET. ``line`` is ``"OC-3c"`` and the like, or a list of them; ``mtu`` and
    ``transport`` (``tcp``, ``udp``) are optional.

    Raises :class:`ValueError` with the command's message for a missing or invalid value.

    >>> import bentpipe as bp
    >>> points = bp.model("hybrid", t1="100 ms", t2="500 ms", loss="10 %", sweep={"buffer": "20 packets..60 packets:20 packets"})
    >>> [point["value"] for point in points]
    ['20 packets', '40 packets', '60 packets']
    >>> round(bp.model("rates", line="OC-3c")[0]["ip_bits_per_second"] / 1e6, 1)
    135.1
    """
    if name == "hybrid":
        if sweep is not None and not isinstance(sweep, Mapping):
            raise TypeError(f"`sweep` is a dictionary from a parameter to its values, not a {type(sweep).__name__}")
        if sweep is not None and len(sweep) != 1:
            raise ValueError("a sweep takes one parameter through its values")
        given = [(key, str(value)) for key, value in values.items()]
        swept = None if sweep is None else next((key, str(value)) for key, value in sweep.items())
        return json.loads(_bentpipe.hybrid(given, swept))
    if name == "rates":
        unknown = values.keys() - {"line", "mtu", "transport"}
        if unknown:
            raise ValueError(f"the model has no parameter `{min(unknown)}`; expected line, mtu or transport")
        if sweep is not None:
            raise ValueError("nothing can be swept here: give `line` a list")
        lines = values.get("line", [])
        lines = [lines] if isinstance(lines, str) else list(lines)
        mtu, transport = (None if values.get(key) is None else str(values[key]) for key in ("mtu", "transport"))
        return json.loads(_bentpipe.rates(lines, mtu, transport))
    raise ValueError(f"no model `{name}`; expected hybrid or rates")


@dataclasses.dataclass(frozen=True)
class Fit:
    """The estimates of a path by :func:`fit`."""

    #: ``transfer`` for a capture, ``pings`` for a log.
    source: str
    #: Estimates by name, in seconds, bytes and bit/s: dictionaries with ``kind`` (``measured``, ``at-least``, ``at-most``, ``unknown``),
    #: ``value``, the ends ``low`` and ``high`` of the 95 % interval, and ``why``, the reason that it is a bound or unknown.
    estimates: dict[str, dict[str, Any]]
    #: Losses: ``probability`` and ``burst_segments`` are such estimates; ``prefers`` is ``independent``, ``bursts``, or ``neither`` if the
    #: losses are too few or include those of a full queue.
    losses: dict[str, Any]
    #: Round trips over time: ``time_s`` since the start, ``rtt_s``.
    round_trips: Table
    #: Other findings: the ends of the transfer, its length, the queue's losses, steps of the delay.
    about: dict[str, Any]
    #: Limitations of the estimates.
    notes: list[str]
    #: A scenario that behaves like the path.
    scenario: Scenario


def fit(path: str | os.PathLike[str]) -> Fit:
    """Estimates a path from a packet capture (pcap, pcapng) of a TCP transfer, or from a log of ``ping -D``.

    A capture has to be made near the sender or the receiver; its largest transfer is used. An estimate that the file does not support is
    ``unknown``, with the reason.

    Raises :class:`ValueError` if the file has no usable data, and :class:`RunError` if it cannot be read.

    >>> import bentpipe as bp
    >>> import pathlib, tempfile
    >>> line = "[{:.1f}] 64 bytes from 192.0.2.1: icmp_seq={} ttl=55 time={}.0 ms\\n".format
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = pathlib.Path(folder, "pings.txt")
    ...     _ = log.write_text("".join(line(1.7e9 + n / 5, n + 1, 600 + n % 3) for n in range(100)))
    ...     found = bp.fit(log)
    >>> found.source, found.estimates["median"]["value"], found.estimates["rate"]["kind"]
    ('pings', 0.601, 'unknown')
    >>> len(found.round_trips), found.scenario.links[:2]
    (100, ['measured/forward', 'measured/backward'])
    """
    answer, round_trips, behaves = _bentpipe.fit(path)
    found = json.loads(answer)
    source, notes, losses = found.pop("source"), found.pop("notes"), found.pop("losses")
    del found["round_trips"]
    estimates = {name: value for name, value in found.items() if isinstance(value, dict) and "kind" in value}
    about = {name: value for name, value in found.items() if name not in estimates}
    return Fit(source, estimates, losses, Table(round_trips), about, notes, behaves)


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """The result of :func:`recommend`."""

    #: The system: ``plain``, ``bbr``, ``uplink``, ``link`` or ``split``; None if most transfers did not finish with any.
    system: str | None
    #: The transfer, the satellite link, and the minimum time that the links allow, seconds.
    flow: str
    link: str
    limit_s: float | None
    #: For each system the estimate by formulas (``estimate_s``), the minimum time that the links allow it (``limit_s``), and the times of
    #: its replications (``times_s``), seconds.
    candidates: list[dict[str, Any]]
    #: How the chosen system compares with the others, with 95 % intervals (``gains``); None without a choice.
    verdict: dict[str, Any] | None
    #: Changes of loss, size or delay that change the answer.
    flips: list[dict[str, Any]]
    #: The scenario with the chosen system; None without a choice.
    scenario: Scenario | None


def recommend(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    size: str | None = None,
    hosts: str | None = "linux-cubic",
    runs: int = 20,
    flips: bool = True,
    margin: float = 0.05,
    threads: int = 0,
) -> Recommendation:
    """Chooses the hosts as they are, BBR, or a gateway (uplink, link, split) for the path of a scenario's first transfer.

    ``size`` replaces the size of the transfer. ``hosts`` is the TCP of the hosts; None keeps that of the scenario. The answer is the
    simplest system that is not shown to be slower than the fastest, or is shown to be slower by at most ``margin`` (0.05 is 5 %), with
    95 % confidence, from ``runs`` paired runs. ``flips`` searches for changes of the path that change the answer. ``threads`` is the
    number of threads (0: one per core); the answer does not depend on it.

    Raises :class:`ValueError` if the scenario is not a bare path with a transfer over it.
    """
    if _whole("runs", runs) < 2:
        raise ValueError(f"at least 2 runs are needed, not {runs}")
    if not 0.0 <= margin <= 1.0:
        raise ValueError(f"margin is a share between 0 and 1, not {margin}")
    base = load(scenario, set=set)
    if size is not None and base.transfer is not None:
        base = load(base, set={f"flows.{base.transfer}.bytes": size})
    # As many replications at each point of the search as in the command.
    flip_runs = min(6, runs) if flips else 0
    answer, equipped = _bentpipe.recommend(load(base, hosts=hosts), runs, flip_runs, margin, _threads(threads))
    found = json.loads(answer)
    verdict = found["verdict"]
    return Recommendation(
        system=verdict and verdict["system"],
        flow=found["flow"],
        link=found["link"],
        limit_s=found["limit_s"],
        candidates=found["candidates"],
        verdict=verdict,
        flips=found["flips"],
        scenario=equipped,
    )


def reproduce(
    paper: str,
    *,
    table: int | None = None,
    figure: int | None = None,
    runs: int = 200,
    seed: int = 1,
    threads: int = 0,
) -> list[dict[str, Any]]:
    """Compares a paper's tables, figures, claims and mechanisms with ours and returns a list of rows.

    ``paper`` is ``transat``, ``minei``, ``acts``, ``hybrid``, ``stp`` or ``all``; ``table`` and ``figure`` select one of them. A row
    has ``id``, ``paper`` (the published value), ``ours``, a ``verdict`` (``match``, ``shape``, ``differs``, ``built``, ``decision``,
    ``missing``) and ``why``, its reason. Whole papers take minutes.

    Raises :class:`ValueError` for a part that the paper does not have, or for fewer than two ``runs``.
    """
    for part, number in (("table", table), ("figure", figure)):
        if number is not None and not 0 <= _whole(part, number) < 256:
            raise ValueError(f"no paper has a {part} {number}")
    if not 0 <= _whole("runs", runs) < 2**32:
        raise ValueError(f"from 2 to 2^32 - 1 runs are possible, not {runs}")
    return json.loads(_bentpipe.reproduce(paper, table, figure, runs, _seed(seed), _threads(threads)))["rows"]


__all__: Sequence[str] = ("Fit", "Recommendation", "explain", "fit", "model", "recommend", "reproduce")

"""Runs of scenarios and their results."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _bentpipe
from ._bentpipe import Scenario
from ._scenarios import ScenarioLike, load
from ._tables import Table, Tabular

if TYPE_CHECKING:
    import numpy
    import pandas

#: Traces that are recorded together, because they are small in comparison with ``packets``.
_SMALL = ("windows", "rtt", "queue", "drops", "recovery", "bursts")


@dataclasses.dataclass(frozen=True)
class FlowResult:
    """The result of one flow, with the numbers of ``bentpipe run --json``."""

    name: str
    #: The nodes that send and receive (or request and respond).
    source: str
    to: str
    #: TCP variant and profile; None for UDP.
    variant: str | None
    profile: str | None
    #: When it started, seconds.
    start_s: float
    #: Payload at the receiver, bytes.
    bytes: int
    #: Time from its start to the arrival of the last byte, seconds; None if it is endless or did not finish.
    time_s: float | None
    #: Payload rate until the last byte arrived, or until the end of the flow or the run, bit/s.
    goodput_bit_s: float | None
    #: The minimum time (seconds) and the maximum payload rate (bit/s) that the links allow.
    limit_time_s: float | None
    limit_goodput_bit_s: float | None
    #: Time over the minimum time. For a flow that is endless or did not finish: maximum goodput over goodput.
    x_limit: float | None
    #: Segments sent with data, SYN or FIN; retransmissions among them; timeouts; losses found by duplicate ACKs or SACK; timeouts found
    #: spurious.
    segments: int
    retransmissions: int
    timeouts: int
    fast_retransmits: int
    spurious_timeouts: int
    #: Maximum data in flight, bytes.
    max_flight_bytes: int
    #: Why it was aborted, or None.
    aborted: str | None
    #: Number of window reductions caused by marks (RFC 3168).
    ecn_reductions: int = 0
    #: The legs of a split flow, in order from ``source``.
    legs: tuple[Mapping[str, Any], ...] = ()
    #: One-way delays of datagrams (``mean_s``, ``median_s``, ``p99_s``, ``longest_s``), or None.
    delay: Mapping[str, Any] | None = None
    #: Times of the responses to its requests (``requests``, ``answered``, ``mean_s``, ``median_s``, ``p95_s``, ``p99_s``,
    #: ``longest_s``), or None. A request without a response ranks last, and a time that depends on one is None.
    response: Mapping[str, Any] | None = None


_FIELDS = frozenset(field.name for field in dataclasses.fields(FlowResult))


def _flow_result(summary: dict[str, Any]) -> FlowResult:
    # Keys that only a newer engine has are left out; the tables have them.
    fields = {key: value for key, value in summary.items() if key in _FIELDS}
    fields["legs"] = tuple(summary.get("legs", ()))
    return FlowResult(source=summary["from"], **fields)


class Result(Tabular):
    """One run of a scenario: summaries, tables, and traces on demand.

    Read as an Arrow table it is :attr:`flows`: ``polars.DataFrame(result)``.
    """

    def __init__(self, scenario: Scenario, raw: _bentpipe.Run) -> None:
        #: The scenario, with its changes.
        self.scenario = scenario
        self._raw = raw
        self._traces: dict[str, Table] = {}

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._raw.seed

    @property
    def end_s(self) -> float:
        """End of the run, seconds: when all finite flows were done, or the time limit was reached."""
        return self._raw.end_s

    @property
    def timed_out(self) -> bool:
        """True if the time limit ended the run before all finite flows were done."""
        return self._raw.timed_out

    @property
    def events(self) -> int:
        """Number of simulated events."""
        return self._raw.events

    @property
    def took_s(self) -> float:
        """Time that the engine took on this machine, seconds. It differs from run to run."""
        return self._raw.took_s

    @functools.cached_property
    def flows(self) -> Table:
        """A row per flow: ``time_s``, ``goodput_bit_s``, ``x_limit``, ``retransmissions``, ``timeouts`` and others."""
        return Table(self._raw.flows())

    @functools.cached_property
    def links(self) -> Table:
        """A row per link and direction: utilisation, packets, drops by reason, longest queue."""
        return Table(self._raw.links())

    @functools.cached_property
    def channels(self) -> Table:
        """A row per channel of a link layer; empty without link layers."""
        return Table(self._raw.channels())

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """The whole summary, as ``bentpipe run --json`` prints it."""
        return json.loads(self._raw.json())

    def flow(self, name: str | None = None) -> FlowResult:
        """The result of a flow; without ``name``, of the only flow.

        Raises :class:`KeyError` if no flow has this name, or if there are several flows and no name is given.

        >>> import bentpipe as bp
        >>> bp.run("geo", set={"flows.download.bytes": "1 MB"}).flow().timeouts
        0
        """
        flows = self.scenario.flows
        return _flow_result(json.loads(self._raw.flow(flows.index(_only("flow", name, flows)))))

    def trace(self, kind: str = "packets") -> Table:
        """A trace of the run as a table; times are in seconds from the start of the run.

        ============  ==========================================================================================
        ``packets``   segments sent and received at the ends; packets offered, delivered and dropped at each link
        ``drops``     the dropped packets alone
        ``windows``   congestion window, ssthresh and flight of the senders, bytes, after each ACK or loss
        ``rtt``       round-trip samples and the resulting timeout
        ``queue``     packets and bytes waiting at a link when a packet arrives
        ``recovery``  begin and end of loss recoveries, timeouts
        ``bursts``    error bursts of the links as intervals: ``start_s``, ``end_s``
        ``events``    every event, with the columns of ``bentpipe run --trace`` (docs/reference/trace.md); times in ns
        ============  ==========================================================================================

        Traces are recorded on request: the run is then repeated, and the same seed gives the same packets. Tables are cached.

        Raises :class:`ValueError` for another kind.

        >>> import bentpipe as bp
        >>> result = bp.run("geo", set={"flows.download.bytes": "1 MB"})
        >>> rtt = result.trace("rtt")
        >>> round(float(rtt["rtt_s"].min()), 3)
        0.6
        """
        if kind not in self._traces:
            kinds = _SMALL if kind in _SMALL else (kind,)
            self._traces.update((name, Table(raw)) for name, raw in self._raw.record(list(kinds)))
        return self._traces[kind]

    @functools.cached_property
    def outlook(self) -> list[dict[str, Any]]:
        """The result of :func:`explain` for the scenario."""
        return json.loads(self.scenario.outlook())["flows"]

    def _rows(self) -> Table:
        return self.flows

    def __repr__(self) -> str:
        flows = ", ".join(
            f"{flow['name']} {'not done' if flow['time_s'] is None else format(flow['time_s'], '.2f') + ' s'}"
            for flow in self.summary["flows"][:3]
        )
        more = ", …" if len(self.summary["flows"]) > 3 else ""
        return f"<Result of {self.scenario.name}, seed {self.seed}: {flows}{more}>"


class Runs(Tabular):
    """Runs of one or several cases under the same seeds.

    Read as an Arrow table it is :attr:`flows`, a row per case, seed and flow. With the same seed all cases meet the same fades, so
    differences are computed pair by pair.
    """

    def __init__(self, cases: dict[str, Scenario], raw: _bentpipe.Runs) -> None:
        #: The scenarios, by the names of the cases.
        self.cases = cases
        self._raw = raw

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return self._raw.seeds

    @functools.cached_property
    def flows(self) -> Table:
        """A row per case, seed and flow, in this order."""
        return Table(self._raw.flows())

    @functools.cached_property
    def links(self) -> Table:
        """A row per case, seed and link."""
        return Table(self._raw.links())

    @functools.cached_property
    def is_random(self) -> bool:
        """False if no case draws anything at random (``Scenario.random_parts``): every seed gives the same run, so there is only one."""
        return any(case.random_parts for case in self.cases.values())

    def values(self, column: str = "time_s", case: str | None = None, flow: str | None = None) -> numpy.ndarray:
        """A column of :attr:`flows` for one case and one flow, in the order of the seeds; NaN where there is no value.

        ``case`` and ``flow`` may be left out if there is only one. Raises :class:`KeyError` if there are several, or none with this name.
        """
        case = _only("case", case, list(self.cases))
        flow = _only("flow", flow, self.cases[case].flows)
        rows = (self.flows["case"] == case) & (self.flows["flow"] == flow)
        return self.flows[column][rows]

    def medians(self, column: str = "time_s", *, confidence: float = 0.95) -> pandas.DataFrame:
        """The median of a column for each case and flow, with its exact interval, as a DataFrame of pandas.

        The interval is that of order statistics (:func:`bentpipe.stats.median_interval`), which assumes nothing about the distribution.
        ``low`` is never below zero, ``high`` is infinite if the runs are too few, ``confidence`` is the level reached. If all runs are
        equal, or nothing is random, ``note`` says so, and both ends equal the value. ``missing`` counts the runs without a value: their
        transfers did not finish, so they rank above all others, and a median that falls on one is infinite. If no run has a value,
        ``note`` says so: the median is infinite, or NaN for an endless flow and for values that no transfer has, such as response
        times without requests.

        Raises :class:`KeyError` if there is no such column, and :class:`ValueError` for one of text.
        """
        import numpy as np
        import pandas

        from . import stats

        if _is_text(self.flows, column):
            numbers = [name for name in self.flows.columns if not _is_text(self.flows, name)]
            raise ValueError(f"`{column}` is a column of text; those of numbers are {', '.join(numbers)}")
        rows = []
        for case, scenario in self.cases.items():
            asking = _asking(scenario) if column.startswith("response_") else scenario.flows
            for flow in scenario.flows:
                values = self.values(column, case, flow).astype(float)
                missing = np.isnan(values)
                row: dict[str, Any] = {"case": case, "flow": flow, "runs": int((~missing).sum()), "missing": int(missing.sum())}
                if missing.all():
                    # None for a flow without an end.
                    unfinished = flow in asking and any(done is not None and not done for done in self.values("finished", case, flow))
                    value = np.inf if unfinished else np.nan
                    found = stats.Interval(value, value, value, 1.0, "no run has a value")
                else:
                    values[missing] = np.inf
                    found = stats.median_interval(values, confidence) if scenario.random_parts else stats.certain(float(values[0]))
                row |= {"median": found.estimate, "low": found.low, "high": found.high, "confidence": found.confidence}
                row["note"] = found.note
                rows.append(row)
        return pandas.DataFrame(rows)

    @functools.cached_property
    def _comparison(self) -> tuple[str, Table]:
        measure, raw = self._raw.compare()
        return measure, Table(raw)

    @property
    def measure(self) -> str:
        """The measure of :meth:`summary`: ``slowest_time_s``, or ``goodput_bit_s`` of all flows if none is finite."""
        return self._comparison[0]

    def summary(self) -> Table:
        """A row per case, as ``bentpipe compare`` prints it: quartiles and mean of :attr:`measure`; the ratio to the first case, pair
        by pair, with its 95 % interval; and the median ``x_limit``."""
        return self._comparison[1]

    def _rows(self) -> Table:
        return self.flows

    def __len__(self) -> int:
        return len(self.cases) * len(self.seeds)

    def __repr__(self) -> str:
        random = "" if self.is_random else "; nothing here is random: one run"
        count = len(self.seeds)
        return f"<Runs: {count} seed{'s' * (count != 1)} of {', '.join(self.cases)}{random}>"


def _names(what: str, names: Sequence[str]) -> list[str]:
    """The names as a list. A text is refused: it would be taken for a list of letters."""
    if isinstance(names, str):
        raise TypeError(f"`{what}` is a list of names, such as [{names!r}], not a text")
    return list(names)


def _is_text(table: Table, column: str) -> bool:
    kind, _, _, words = table._raw.plain(column)
    return kind == "O" or words is not None


def _asking(scenario: Scenario) -> list[str]:
    """Names of the flows with requests."""
    import tomllib

    return [flow["name"] for flow in tomllib.loads(scenario.to_toml()).get("flows", []) if "request_response" in flow]


def _only(what: str, name: str | None, names: list[str]) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise KeyError(f"there are {len(names)} {what}s: name one of {', '.join(names)}")
    if name not in names:
        raise KeyError(f"no {what} `{name}`; there are {', '.join(names)}")
    return name


def _whole(what: str, value: int) -> int:
    """The value, if it is a whole number: Python's or NumPy's."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"`{what}` is a whole number, not {value!r}") from None


def _seed(seed: int) -> int:
    seed = _whole("seed", seed)
    if not 0 <= seed < 2**64:
        raise ValueError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed}")
    return seed


def _threads(threads: int) -> int:
    threads = _whole("threads", threads)
    if threads < 0:
        raise ValueError(f"`threads` is 0, for one per core, or more, not {threads}")
    return threads


def run(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    variant: str | None = None,
    seed: int | None = None,
) -> Result:
    """Runs a scenario once in virtual time.

    ``scenario``, ``set`` and ``variant`` are as for :func:`load`. ``seed`` seeds all random draws; the default is the scenario's seed.
    Other Python threads keep running. Ctrl-C ends the run.

    Raises :class:`ScenarioError` for mistakes in the scenario, :class:`RunError` if it cannot be run.

    >>> import bentpipe as bp
    >>> slow = bp.run("geo", set={"links.sat.loss": "1 %"}, seed=7)
    >>> slow.flow("download").x_limit > 3
    True
    """
    read = load(scenario, set=set, variant=variant)
    return Result(read, _bentpipe.run(read, read.seed if seed is None else _seed(seed)))


def replicate(
    scenario: ScenarioLike,
    runs: int,
    *,
    set: Mapping[str, Any] | None = None,
    variant: str | None = None,
    seed: int | None = None,
    threads: int = 0,
) -> Runs:
    """Runs a scenario ``runs`` times, with successive seeds from ``seed`` on, on ``threads`` threads (0: one per core).

    The numbers do not depend on the threads. Only the summaries of the runs are kept. If the scenario draws nothing at random, every
    seed gives the same run, and there is only one.

    >>> import bentpipe as bp
    >>> fades = bp.replicate("transat-bursts", runs=20)
    >>> fades.values("time_s").shape
    (20,)
    """
    read = load(scenario, set=set, variant=variant)
    return _runs({read.name: read}, runs, seed, threads)


def compare(
    scenario: ScenarioLike | Mapping[str, Scenario],
    variants: Sequence[str] = (),
    *,
    runs: int,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    threads: int = 0,
) -> Runs:
    """Runs variants of TCP, or several scenarios, under the same seeds: in each replication all meet the same fades.

    Each of the ``variants`` is a case. Without ``variants``, ``scenario`` is a dictionary from the names of the cases to :class:`Scenario`
    objects, as :func:`load` returns them. ``runs``, ``seed`` and ``threads`` are as for :func:`replicate`.

    >>> import bentpipe as bp
    >>> found = bp.compare("geo-bursts", ["sack", "newreno"], runs=5, set={"flows.download.bytes": "5 MB"})
    >>> found.summary()["case"].tolist()
    ['sack', 'newreno']
    """
    if isinstance(scenario, Mapping) and scenario and all(isinstance(case, Scenario) for case in scenario.values()):
        if variants:
            raise ValueError("give either variants or a dictionary of scenarios")
        cases = {name: load(case, set=set) for name, case in scenario.items()}
    else:
        if not variants:
            raise ValueError("give a list of variants, or a dictionary from names to scenarios that `load` returned")
        base = load(scenario, set=set)
        names = _names("variants", variants)
        if twice := [name for number, name in enumerate(names) if name in names[:number]]:
            raise ValueError(f"`{twice[0]}` is there twice")
        cases = {name: load(base, variant=name) for name in names}
    return _runs(cases, runs, seed, threads)


def _runs(cases: dict[str, Scenario], runs: int, seed: int | None, threads: int) -> Runs:
    runs = _whole("runs", runs)
    if runs < 1:
        raise ValueError(f"at least one run is needed, not {runs}")
    first = next(iter(cases.values())).seed if seed is None else _seed(seed)
    if not any(case.random_parts for case in cases.values()):
        runs = 1
    seeds = [(first + n) % 2**64 for n in range(runs)]
    return Runs(cases, _bentpipe.runs(list(cases.items()), seeds, _threads(threads)))

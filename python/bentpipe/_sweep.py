"""Sweeps: many runs over keys, transports and gateways, on this machine or on a cluster. Each run is saved when it ends."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _bentpipe
from ._runs import _names, _threads
from ._scenarios import ScenarioLike, _literal, _quoted, load
from ._tables import Table, Tabular

if TYPE_CHECKING:
    import pandas


class Sweep(Tabular):
    """The results of a sweep: a table of runs, medians, and paired differences to the baseline.

    Read as an Arrow table it is :attr:`runs`: ``polars.DataFrame(sweep)``.
    """

    def __init__(self, raw: _bentpipe.Sweep, folder: str | None) -> None:
        self._raw = raw
        #: The folder of the results, or None if none was given. The same call with the same folder continues where this one ended.
        self.folder = folder

    @functools.cached_property
    def runs(self) -> Table:
        """A row for each flow of each run, in the order of points, repetitions and candidates: ``point``, ``candidate``, ``repetition``,
        a column for each axis (a number in its base unit where it has one), ``seed``, ``time_s``, ``x_limit`` and others."""
        return Table(self._raw.runs())

    @functools.cached_property
    def _summary(self) -> dict[str, Any]:
        return json.loads(self._raw.summary())

    @property
    def measure(self) -> str:
        """The compared measure: ``slowest-time-s``, or ``goodput-bit-s`` of all flows if none is finite."""
        return self._summary["measure"]

    def summary(self) -> pandas.DataFrame:
        """A row for each point and candidate, as a DataFrame of pandas: ``median`` with its 95 % interval ``low`` to ``high``, ``x_limit``
        (median), and ``difference`` to the baseline with ``difference_low`` and ``difference_high``.

        Differences are medians over pairs under the same seed. Intervals come from order statistics; an end is missing if there are too
        few runs to bound it (fewer than six).
        """
        import pandas

        rows = []
        for number, point in enumerate(self._summary["points"]):
            for candidate in point["candidates"]:
                value, difference = candidate["value"] or {}, candidate["difference"] or {}
                rows.append(
                    {
                        "point": number,
                        **dict(point["axes"]),
                        "candidate": candidate["name"],
                        "finished": candidate["finished"],
                        "unfinished": candidate["unfinished"],
                        "median": value.get("median"),
                        "low": value.get("low"),
                        "high": value.get("high"),
                        "x_limit": candidate["x_limit"],
                        "difference": difference.get("median"),
                        "difference_low": difference.get("low"),
                        "difference_high": difference.get("high"),
                    }
                )
        return pandas.DataFrame(rows)

    def _rows(self) -> Table:
        return self.runs

    def __len__(self) -> int:
        return self._raw.progress[0]

    def __repr__(self) -> str:
        done, at_most, points_done, points = self._raw.progress
        return f"<Sweep: {done} of {at_most} runs, {points_done} of {points} points>"


def sweep(
    scenario: ScenarioLike,
    axes: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]] = (),
    *,
    variants: Sequence[str] = (),
    gateways: Sequence[str] = (),
    baseline: str | None = None,
    set: Mapping[str, Any] | None = None,
    repetitions: int = 20,
    seed: int | None = None,
    tolerance: str | None = None,
    min_repetitions: int = 10,
    folder: str | os.PathLike[str] | None = None,
    executor: concurrent.futures.Executor | None = None,
    threads: int = 0,
    chunk: int = 25,
    ahead: int = 64,
    progress: bool | None = None,
) -> Sweep:
    """Runs a scenario over many values of its keys.

    ``axes`` is a dictionary from keys, as for ``--set``, to their values: a grid. Or it is a list of points, each a dictionary from keys
    to values, as :func:`latin_hypercube` and :func:`sobol` return them. ``variants`` and ``gateways`` (``"none"``, ``"uplink"``,
    ``"link"``, ``"split"``) are compared at each point, with the same seeds: ``seed`` (by default the scenario's) and the following ones.
    Each is compared with ``baseline``, by default the first.

    With ``tolerance`` (``"2 %"``, ``"50 ms"``) a point ends, after ``min_repetitions`` at the earliest, when half the 95 % interval of
    the median paired difference is at most the tolerance; ``repetitions`` is the maximum. The runs and their results depend neither on
    threads nor on the executor.

    Each run is saved in ``folder`` when it ends. After Ctrl-C, ``kill -9`` or a full disk, the same call continues without losing or
    repeating a run. Without ``folder``, runs are kept in memory and in a temporary folder until the call ends.

    ``executor`` is any executor of :mod:`concurrent.futures`; Dask's is ``Client.get_executor()``. Without it the runs are made on
    ``threads`` threads of this process (0: one per core). A call of a worker makes up to ``chunk`` runs, and up to ``ahead`` calls are
    submitted at a time. ``progress`` writes a line to standard error while an executor makes the runs; by default, if standard
    error is a terminal.

    Raises :class:`ScenarioError` for mistakes, at their place in the sweep's text as ``bentpipe sweep`` would read it; :class:`OSError` if
    results cannot be saved; :class:`RunError` if a run fails; and the exceptions of the executor. All runs before the error are kept.

    If nothing is random, as without loss in this example, a candidate has one run.

    >>> import bentpipe as bp
    >>> found = bp.sweep(
    ...     "geo",
    ...     {"links.sat.loss": ["0 %", "1 %"]},
    ...     variants=["sack", "newreno"],
    ...     set={"flows.download.bytes": "1 MB"},
    ...     repetitions=6,
    ... )
    >>> found
    <Sweep: 14 of 14 runs, 2 of 2 points>
    >>> found.summary()["candidate"].tolist()
    ['sack', 'newreno', 'sack', 'newreno']
    """
    threads = _threads(threads)
    read = load(scenario, set=set)
    text = _text(axes, variants, gateways, baseline, repetitions, seed, tolerance, min_repetitions)
    show = sys.stderr.isatty() if progress is None else progress
    with contextlib.ExitStack() as after:
        if folder is None:
            kept = after.enter_context(tempfile.TemporaryDirectory(prefix="bentpipe-sweep-"))
        else:
            kept = os.fspath(folder)
        raw = _bentpipe.Sweep(text, read, kept)
        after.callback(raw.close)
        if executor is None:
            raw.run(threads)
        else:
            _drive(raw, executor, max(chunk, 1), max(ahead, 1), show)
    return Sweep(raw, None if folder is None else kept)


def _text(
    axes: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    variants: Sequence[str],
    gateways: Sequence[str],
    baseline: str | None,
    repetitions: int,
    seed: int | None,
    tolerance: str | None,
    min_repetitions: int,
) -> str:
    """The sweep as the text of a file."""
    is_grid = isinstance(axes, Mapping)
    columns = dict(axes) if isinstance(axes, Mapping) else _columns(list(axes))
    keys: dict[str, Any] = {"scenario": "scenario", "design": "grid" if is_grid else "list", "repetitions": repetitions}
    keys |= {"variants": _names("variants", variants)} if variants else {}
    keys |= {"gateways": _names("gateways", gateways)} if gateways else {}
    keys |= {"baseline": baseline} if baseline is not None else {}
    keys |= {"seed": seed} if seed is not None else {}
    lines = [f"{key} = {_literal(value, key)}" for key, value in keys.items()]
    for key, values in columns.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"`{key}`: expected a list of values, not {values!r}")
        lines += ["[[axes]]", f"key = {_quoted(key)}", f"values = {_literal(list(values), key)}"]
    if tolerance is not None:
        lines += ["[stop]", f"tolerance = {_literal(tolerance, 'tolerance')}", f"min = {min_repetitions}"]
    return "\n".join(lines) + "\n"


def _columns(points: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    if not points:
        return {}
    if not all(isinstance(point, Mapping) for point in points):
        raise TypeError("`axes` is a dictionary from keys to lists of values, or a list of such points, each with a value for each key")
    keys = list(points[0])
    for number, point in enumerate(points):
        if list(point) != keys:
            raise ValueError(f"point {number} has the keys {', '.join(point)}; expected {', '.join(keys)}, as the first point")
    return {key: [point[key] for point in points] for key in keys}


def _work(work: str) -> list[bytes]:
    """The work of a worker, in any process or on any machine."""
    return _bentpipe.run_batch(work)


def _drive(raw: _bentpipe.Sweep, executor: concurrent.futures.Executor, chunk: int, ahead: int, show: bool) -> None:
    """Submits work until the plan is done, and saves results as they arrive."""
    pending: dict[concurrent.futures.Future[list[bytes]], int] = {}
    started, before = time.monotonic(), raw.progress[0]
    try:
        while not raw.finished:
            while len(pending) < ahead and (work := raw.take(chunk)) is not None:
                pending[executor.submit(_work, work[1])] = work[0]
            if not pending:
                continue
            done, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            failed = [future for future in done if future.cancelled() or future.exception() is not None]
            # First what has ended well, so that an error loses none of it.
            for future in [*(done - {*failed}), *failed]:
                raw.give(pending.pop(future), future.result())
            if show:
                _show(raw, started, before)
    finally:
        for future in pending:
            future.cancel()
        if show:
            sys.stderr.write("\n")


def _show(raw: _bentpipe.Sweep, started: float, before: int) -> None:
    done, at_most, _, _ = raw.progress
    left = (time.monotonic() - started) / max(done - before, 1) * (at_most - done)
    sys.stderr.write(f"\r{done} of at most {at_most} runs, at most {left:.0f} s left   ")
    sys.stderr.flush()


def latin_hypercube(ranges: Mapping[str, tuple[Any, Any]], n: int, *, seed: int = 1, log: Iterable[str] = ()) -> list[dict[str, str]]:
    """The ``n`` points of a Latin hypercube for :func:`sweep`: one in each n-th part of each range (:class:`scipy.stats.qmc.LatinHypercube`).

    ``ranges`` maps keys to both ends: ``{"links.sat.delay": ("10 ms", "300 ms")}``. The ranges of the keys in ``log`` are logarithmic.

    >>> import bentpipe as bp
    >>> points = bp.latin_hypercube({"links.sat.delay": ("10 ms", "300 ms"), "links.sat.loss": ("0.01 %", "1 %")}, 4, log=["links.sat.loss"])
    >>> len(points), sorted(points[0])
    (4, ['links.sat.delay', 'links.sat.loss'])
    """
    from scipy.stats import qmc

    return _between(ranges, qmc.LatinHypercube(d=len(ranges), rng=seed).random(n), log)


def sobol(ranges: Mapping[str, tuple[Any, Any]], n: int, *, seed: int = 1, log: Iterable[str] = ()) -> list[dict[str, str]]:
    """The ``n`` points of a scrambled Sobol sequence for :func:`sweep` (:class:`scipy.stats.qmc.Sobol`). The other arguments are those of
    :func:`latin_hypercube`.

    The sequence is balanced only if ``n`` is a power of two. Raises :class:`ValueError` otherwise.

    >>> import bentpipe as bp
    >>> len(bp.sobol({"links.sat.delay": ("10 ms", "300 ms")}, 8))
    8
    """
    from scipy.stats import qmc

    if n < 1 or n & (n - 1):
        raise ValueError(f"a Sobol sequence is balanced for powers of two; n is {n}")
    return _between(ranges, qmc.Sobol(d=len(ranges), rng=seed).random(n), log)


def _between(ranges: Mapping[str, tuple[Any, Any]], unit: Any, log: Iterable[str]) -> list[dict[str, str]]:
    """Maps points of the unit cube to these ranges."""
    log = {*log}
    if unknown := log - {*ranges}:
        raise ValueError(f"`log` has {', '.join(sorted(unknown))}, which is no range")
    columns = {}
    for (key, (first, last)), parts in zip(ranges.items(), unit.T, strict=True):
        ends = [_literal(end, key, top=True) for end in (first, last)]
        columns[key] = _bentpipe.between(ends[0], ends[1], key in log, [float(part) for part in parts])
    return [dict(zip(columns, point, strict=True)) for point in zip(*columns.values(), strict=True)]

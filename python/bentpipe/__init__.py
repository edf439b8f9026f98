"""Data transfer over satellite links: scenarios in, tables, intervals and plots out.

One protocol engine, in Rust, runs a *scenario* in virtual time: nodes, links with their delays, rates, queues and losses, and flows. A
scenario is a shipped name, a file, TOML text, a dictionary, or built from :class:`Link` and :class:`Flow`. Quantities are texts with units:
``"279 ms"``, ``"20 Mbit/s"``, ``"10 MB"``. Mistakes raise :class:`ScenarioError` with the command's message.

>>> import bentpipe as bp
>>> result = bp.run("geo")
>>> flow = result.flow("download")
>>> flow.retransmissions, round(flow.time_s, 2), round(flow.x_limit, 2)
(1429, 9.23, 1.84)

==================  ==========================================================================================
:func:`run`         runs a scenario once: a :class:`Result` with tables of flows, links and traces
:func:`replicate`   the same under many seeds, on all cores: :class:`Runs`
:func:`compare`     several variants or scenarios under the same seeds: :class:`Runs`
:func:`sweep`       many values of a scenario's keys, here or on a cluster, all runs saved: :class:`Sweep`
:func:`explain`     delay, BDP, queue and limit of the paths, without a run
:func:`model`       formulas from papers
:func:`fit`         a path from a packet capture or a log of pings
:func:`recommend`   other hosts, or a gateway of one or two boxes
:func:`reproduce`   a paper's tables and figures beside ours
:mod:`stats`        medians, intervals, paired differences, Jain's index
:mod:`plots`        the plots of this field, on Axes of matplotlib
==================  ==========================================================================================

Tables have Arrow's PyCapsule interface: polars, pandas, pyarrow and duckdb read them without a copy. Time is in seconds, data in bytes,
rates in bit/s; column names contain the unit. A run is deterministic: the same scenario and seed give the same packets on every machine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._answers import Fit, Recommendation, explain, fit, model, recommend, reproduce
from ._bentpipe import RunError, Scenario, ScenarioError, __version__, shipped, variants
from ._runs import FlowResult, Result, Runs, compare, replicate, run
from ._scenarios import Flow, Link, load, scenario
from ._sweep import Sweep, latin_hypercube, sobol, sweep
from ._tables import Table

if TYPE_CHECKING:
    from . import plots, stats

__all__ = [
    "Fit",
    "Flow",
    "FlowResult",
    "Link",
    "Recommendation",
    "Result",
    "RunError",
    "Runs",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "Table",
    "__version__",
    "compare",
    "explain",
    "fit",
    "latin_hypercube",
    "load",
    "model",
    "plots",
    "recommend",
    "replicate",
    "reproduce",
    "run",
    "scenario",
    "shipped",
    "sobol",
    "stats",
    "sweep",
    "variants",
]


def __getattr__(name: str) -> object:
    # NumPy, SciPy and matplotlib take longer to import than a run takes.
    if name in ("plots", "stats"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

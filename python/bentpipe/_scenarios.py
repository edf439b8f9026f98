"""Scenarios: shipped names, files, TOML, dictionaries and typed objects."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from ._bentpipe import Scenario, shipped

#: Types that are accepted as a scenario.
ScenarioLike = Union[Scenario, str, "os.PathLike[str]", Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Link:
    """Two links, one in each direction, between two nodes.

    ``between`` names the nodes; the forward link goes from the first to the second. ``rate``, ``delay``, ``queue`` and ``loss`` are
    texts with units, for both directions; ``forward`` and ``backward`` are dictionaries with the keys of one direction. ``more`` has any
    other key of ``[[links]]`` (docs/reference/scenario.md).

    >>> import bentpipe as bp
    >>> sat = bp.Link("sat", ("gateway", "terminal"), rate="2 Mbit/s", delay="279 ms", forward={"queue": "50 packets"})
    >>> sat.to_dict()["forward"]
    {'queue': '50 packets'}
    """

    name: str
    between: tuple[str, str]
    rate: str | None = None
    delay: str | None = None
    queue: str | None = None
    loss: str | None = None
    forward: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    backward: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``[[links]]``."""
        return _entry(self)


@dataclasses.dataclass(frozen=True)
class Flow:
    """A flow from one node to another: by default a TCP transfer of ``bytes``.

    ``tcp`` has the flow's own TCP settings, such as ``{"variant": "cubic"}``; ``more`` has any other key of ``[[flows]]``, such as ``start``.

    >>> import bentpipe as bp
    >>> bp.Flow("download", "server", "client", bytes="1 MB").to_dict()
    {'name': 'download', 'from': 'server', 'to': 'client', 'bytes': '1 MB'}
    """

    name: str
    source: str
    to: str
    bytes: str | None = None
    count: int | None = None
    tcp: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``[[flows]]``."""
        return _entry(self)


def _entry(of: Link | Flow) -> dict[str, Any]:
    """The given fields by their names in the scenario language, and the keys of ``more``."""
    entry: dict[str, Any] = {}
    for field in dataclasses.fields(of):
        value = getattr(of, field.name)
        if field.name == "more":
            entry.update(value)
        elif value is not None and value != {}:
            entry["from" if field.name == "source" else field.name] = value
    return entry


def scenario(name: str, links: Sequence[Link], flows: Sequence[Flow], **keys: Any) -> Scenario:
    """Makes a scenario from objects and checks it.

    ``keys`` are the other keys of a scenario: ``seed``, ``time_limit``, ``tcp``, ``variants``, ``layers``, ``nodes``, ``description``.

    Raises :class:`ScenarioError` for mistakes, as :func:`load` does.

    >>> import bentpipe as bp
    >>> mine = bp.scenario(
    ...     "mine",
    ...     links=[bp.Link("sat", ("server", "client"), rate="2 Mbit/s", delay="275 ms", forward={"queue": "50 packets"})],
    ...     flows=[bp.Flow("download", "server", "client", bytes="1 MB")],
    ...     tcp={"variant": "sack"},
    ... )
    >>> mine
    <Scenario mine: 2 links, 1 flow>
    """
    return load({"name": name, **keys, "links": list(links), "flows": list(flows)})


def load(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    variant: str | None = None,
    hosts: str | None = None,
) -> Scenario:
    """Reads and checks a scenario.

    ``scenario`` is a file's path, the name of a shipped scenario (:func:`shipped`), TOML text (which contains a line break), a
    dictionary, or a :class:`Scenario`. A file takes precedence over a shipped scenario of the same name. ``set`` replaces values, as ``--set`` of
    the command does: ``{"links.sat.delay": "40 ms"}``. ``variant`` is the TCP variant of all flows, ``hosts`` that of hosts with
    Linux's settings.

    Raises :class:`ScenarioError` with the command's message: file, line, key, and what was expected.

    >>> import bentpipe as bp
    >>> bp.load("geo", set={"links.sat.dealy": "40 ms"})
    Traceback (most recent call last):
        ...
    bentpipe.ScenarioError: error: `links.sat` has no key `dealy`
      --> --set:1:11
      |
    1 | links.sat.dealy=40 ms
      |           ^^^^^ expected one of name, between, ...
      = help: did you mean `delay`?
    """
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"`set` is a dictionary from keys to values, such as {{'links.sat.delay': '40 ms'}}, not a {type(set).__name__}")
    changes = tuple((key, _literal(value, key, top=True)) for key, value in (set or {}).items()), variant, hosts
    if isinstance(scenario, Scenario):
        return scenario if changes == ((), None, None) else scenario.changed(*changes)
    if isinstance(scenario, Mapping):
        return Scenario.json(json.dumps(_plain(scenario, "")), "dict", *changes)
    if isinstance(scenario, str) and "\n" in scenario:
        return Scenario.text(scenario, "text", *changes)
    if isinstance(scenario, (str, os.PathLike)):
        name = os.fspath(scenario)
        return _shipped(name, *changes) if name in _SHIPPED and not os.path.exists(name) else Scenario.named(name, *changes)
    raise TypeError(f"a scenario is a name, a path, TOML text, a dict or a Scenario, not {type(scenario).__name__}")


_SHIPPED = frozenset(shipped())

# Neither shipped scenarios nor Scenario objects change, and reading a scenario takes longer than a short run of it.
_shipped = functools.lru_cache(maxsize=256)(Scenario.named)


def _plain(value: Any, path: str) -> Any:
    """The value in JSON's types. Raises :class:`TypeError`, with the key, for a value that TOML does not have."""
    if isinstance(value, (Link, Flow)):
        value = value.to_dict()
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        # A number of NumPy, as in its ranges.
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        # Beyond TOML's whole numbers. As text it is read as a number, or refused with its key.
        return str(value)
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, f"{path}.{key}".lstrip(".")) for key, inner in value.items()}
    if isinstance(value, Iterable):
        return [_plain(inner, f"{path}.{index}".lstrip(".")) for index, inner in enumerate(value)]
    raise TypeError(f"`{path}`: {value!r} cannot be a value of a scenario; expected text with a unit, a number, a bool, a list or a dict")


def _quoted(text: str) -> str:
    """The text as a string of TOML, which has no pairs of surrogates and, other than JSON, no DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _literal(value: Any, key: str, *, top: bool = False) -> str:
    """The value as TOML. A text at the top level has no quotes, as on the command line."""
    value = _plain(value, key)
    if isinstance(value, str):
        return value if top else _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_literal(inner, key) for inner in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_quoted(name)} = {_literal(inner, key)}' for name, inner in value.items())} }}"
    return json.dumps(value)

"""Tables of Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from . import _bentpipe


class Table:
    """A table of Arrow columns.

    polars, pyarrow, duckdb and everything else that supports Arrow's PyCapsule interface read it without a copy, through
    ``__arrow_c_stream__``. ``table["time_s"]`` is a column as a NumPy array. If values are missing, whole numbers become floats with NaN,
    and text has None.

    >>> import bentpipe as bp
    >>> flows = bp.run("geo").flows
    >>> len(flows), flows.columns[:4]
    (1, ['seed', 'case', 'flow', 'from'])
    >>> flows.meaning("x_limit")
    'Time over the minimum time, or maximum goodput over goodput.'
    >>> flows["retransmissions"]
    array([1429])
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _bentpipe.Table) -> None:
        self._raw = raw

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._raw.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self._raw.column_names

    def meaning(self, column: str) -> str:
        """The meaning of a column, with its unit. Raises :class:`KeyError` if there is no such column."""
        return self._raw.meaning(column)

    def __len__(self) -> int:
        return self._raw.num_rows

    def __getitem__(self, column: str) -> numpy.ndarray:
        import numpy as np

        kind, values, missing, words = self._raw.plain(column)
        if kind == "O":
            return np.array(values, dtype=object)
        array = np.frombuffer(values, dtype=kind)
        gone = None if missing is None else np.frombuffer(missing, dtype="?")
        if words is not None:
            # Index -1, of a missing value, selects the None at the end.
            known = np.array([*words, None], dtype=object)
            return known[array if gone is None else np.where(gone, -1, array)]
        if gone is None:
            return array.copy()
        if kind == "?":
            flags = array.astype(object)
            flags[gone] = None
            return flags
        return np.where(gone, np.nan, array)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a DataFrame of pandas."""
        import pandas

        return pandas.DataFrame({name: self[name] for name in self.columns})

    def to_polars(self) -> polars.DataFrame:
        """The table as a DataFrame of polars, without a copy."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """The table as a pyarrow Table, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table cannot be pickled: pass `to_pandas()` or `to_arrow()` of it")

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"


class Tabular:
    """An object that can be read as one of its tables."""

    def _rows(self) -> Table:
        """The table."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"`{kind}` cannot be pickled: pass numbers of it, such as `to_pandas()`")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """The table's rows as a DataFrame of pandas."""
        return self._rows().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The table's rows as a DataFrame of polars."""
        return self._rows().to_polars()

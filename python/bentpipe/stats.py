"""Statistics of runs: medians, intervals, paired differences, fairness, distributions.

Functions take lists or NumPy arrays of finite numbers. Quantiles and their intervals also take infinity, which stands for a transfer
that did not finish: it ranks above all others. The confidence of an interval is the level it reaches. If no value is negative,
the interval does not reach below zero. If nothing is random, one run is enough: the interval is the value itself, and its note says so.

>>> from bentpipe import stats
>>> stats.median_interval(range(1, 21))
Interval(estimate=10.5, low=6.0, high=15.0, confidence=0.9586105346679688, note='')
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy import stats as _stats

#: Number of draws of a bootstrap, as in `bentpipe compare`.
DRAWS = 4000

#: The note of an interval of equal values.
CONSTANT = "nothing here is random: one run"


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    #: The estimate, in the unit of the values, as are the ends.
    estimate: float
    #: Lower end.
    low: float
    #: Upper end; infinite if there are too few values for one.
    high: float
    #: The confidence, 0 to 1; order statistics allow only some levels, so this is the level reached.
    confidence: float
    #: A remark, or empty.
    note: str = ""

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def _sample(values: Iterable[float], least: int = 1, infinite: bool = False) -> np.ndarray:
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=float)
    if array.ndim != 1:
        raise ValueError(f"values have one dimension, not {array.ndim}")
    if len(array) < least:
        raise ValueError(f"{len(array)} value{'s' * (len(array) != 1)}: at least {least} needed")
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise ValueError(f"value {index} is {array[index]}: leave out runs that did not finish, and say how many they are")
    return array


def _level(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} is between 0 and 1, not {value}")


def _floor(array: np.ndarray) -> float:
    """The lower bound of such values: 0 if none is negative (as for times, rates and counts), else minus infinity."""
    return 0.0 if array.min() >= 0.0 else -math.inf


def certain(value: float) -> Interval:
    """The interval of a value in which nothing is random: every run gives the same.

    >>> certain(7.5).high
    7.5
    """
    return Interval(value, value, value, 1.0, CONSTANT)


def _constant(array: np.ndarray) -> Interval | None:
    """The interval of equal values; None if they differ or there is only one."""
    if len(array) < 2 or array.min() != array.max():
        return None
    value = float(array[0])
    return Interval(value, value, value, 1.0, f"all {len(array)} runs are equal")


def quantile(values: Iterable[float], p: float) -> float:
    """The quantile ``p`` (0 to 1), interpolated between neighbours (Hyndman and Fan 1996, type 7), as in ``bentpipe compare``.

    >>> quantile([10, 20, 30, 40, 50], 0.9)
    46.0
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p is between 0 and 1, not {p}")
    return _quantile(np.sort(_sample(values, infinite=True)), p)


def _quantile(ordered: np.ndarray, p: float) -> float:
    # NumPy's rule, but NumPy gives NaN between infinite values.
    rank = (len(ordered) - 1) * p
    low, high = float(ordered[math.floor(rank)]), float(ordered[math.ceil(rank)])
    return low if low == high else float(np.quantile(ordered, p)) if math.isfinite(low) and math.isfinite(high) else high


def median(values: Iterable[float]) -> float:
    """The median."""
    return quantile(values, 0.5)


def quantile_interval(values: Iterable[float], p: float, confidence: float = 0.95) -> Interval:
    """The quantile ``p`` with its exact interval from order statistics (David and Nagaraja 2003, section 7.1).

    Of n independent values of any continuous distribution, the number below the quantile has a binomial distribution. Each tail has at
    most half of ``1 - confidence``. If there are too few values, the end is open: 0 (or minus infinity, if a value is negative) below,
    infinity above.

    >>> quantile_interval(range(1, 11), 0.9).high
    inf
    """
    _level("p", p)
    _level("confidence", confidence)
    array = np.sort(_sample(values, infinite=True))
    if (constant := _constant(array)) is not None:
        return constant
    n, tail = len(array), (1.0 - confidence) / 2.0
    below = _stats.binom(n, p)
    # The maximum rank r with P(B <= r-1) <= tail, and the minimum s with P(B >= s) <= tail.
    ranks = np.arange(1, n + 1)
    low = int(np.count_nonzero(below.cdf(ranks - 1) <= tail))
    high = n + 1 - int(np.count_nonzero(below.sf(ranks - 1) <= tail))
    missed = (float(below.cdf(low - 1)) if low else 0.0) + (float(below.sf(high - 1)) if high <= n else 0.0)
    note = "" if low and high <= n else f"{n} values are too few for an end on {'either' if not low and high > n else 'one'} side"
    return Interval(
        estimate=_quantile(array, p),
        low=float(array[low - 1]) if low else _floor(array),
        high=float(array[high - 1]) if high <= n else math.inf,
        confidence=1.0 - missed,
        note=note,
    )


def median_interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """The median with its exact interval: :func:`quantile_interval` of one half."""
    return quantile_interval(values, 0.5, confidence)


def mean_interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """The mean with Student's t interval, cut off at zero for values that are never negative.

    Use it if the mean is nearly normal; for skewed times of few runs prefer :func:`bootstrap_interval`. The cut does not change the
    coverage, because the mean of such values is not below zero.

    >>> mean_interval([1, 100]).low
    0.0
    """
    _level("confidence", confidence)
    array = _sample(values, 2)
    if (constant := _constant(array)) is not None:
        return constant
    mean = float(array.mean())
    low, high = _stats.t.interval(confidence, len(array) - 1, loc=mean, scale=_stats.sem(array))
    return Interval(mean, max(float(low), _floor(array)), float(high), confidence)


def bootstrap_interval(
    values: Iterable[float],
    statistic: Callable[..., float] = np.mean,
    confidence: float = 0.95,
    *,
    draws: int = DRAWS,
    seed: int = 1,
    method: str = "BCa",
) -> Interval:
    """A statistic with its bootstrap interval (:func:`scipy.stats.bootstrap`); ``seed`` makes it repeatable.

    ``statistic`` takes an array and, if it can, ``axis``. ``method`` is that of SciPy: ``BCa``, ``basic`` or ``percentile``.
    """
    _level("confidence", confidence)
    array = _sample(values, 2)
    if (constant := _constant(array)) is not None:
        value = float(statistic(array))
        return dataclasses.replace(constant, estimate=value, low=value, high=value)
    found = _stats.bootstrap(
        (array,), statistic, n_resamples=draws, confidence_level=confidence, method=method, random_state=np.random.default_rng(seed)
    )
    low, high = (float(end) for end in found.confidence_interval)
    return Interval(float(statistic(array)), max(low, _floor(array)), high, confidence)


def _pairs(first: Iterable[float], second: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
    one, other = _sample(first, 2), _sample(second, 2)
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values cannot be paired with {len(other)}")
    return one, other


def paired_difference(first: Iterable[float], second: Iterable[float], confidence: float = 0.95) -> Interval:
    """The mean of ``second - first``, pair by pair, with Student's t interval. It may be negative.

    With the same seed both runs of a pair meet the same fades, so their difference varies less than either time.

    >>> round(paired_difference([100, 400, 900], [101, 402, 903]).high, 2)
    4.48
    """
    one, other = _pairs(first, second)
    _level("confidence", confidence)
    differences = other - one
    if (constant := _constant(differences)) is not None:
        return constant
    mean = float(differences.mean())
    low, high = _stats.t.interval(confidence, len(differences) - 1, loc=mean, scale=_stats.sem(differences))
    return Interval(mean, float(low), float(high), confidence)


def paired_ratio(
    first: Iterable[float], second: Iterable[float], confidence: float = 0.95, *, draws: int = DRAWS, seed: int = 1
) -> Interval:
    """The geometric mean of ``second / first``, pair by pair, with the bootstrap interval of pairs.

    Raises :class:`ValueError` unless all values are above zero.

    >>> paired_ratio([1, 10], [2, 80]).estimate
    4.0
    """
    one, other = _pairs(first, second)
    if min(one.min(), other.min()) <= 0.0:
        raise ValueError("a ratio needs values above zero")
    logs = np.log(other / one)
    found = bootstrap_interval(logs, np.mean, confidence, draws=draws, seed=seed, method="percentile")
    return dataclasses.replace(found, estimate=_exp(found.estimate), low=_exp(found.low), high=_exp(found.high))


def _exp(value: float) -> float:
    # Rounded, because a logarithm and its inverse change the last digits.
    return float(f"{math.exp(value):.14g}")


def jain(values: Iterable[float]) -> float:
    """Jain's fairness index of shares (Jain, Chiu and Hawe 1984): 1 if all are equal, 1/n if one has everything.

    Raises :class:`ValueError` for negative shares, or if all are zero.

    >>> jain([1, 1, 1, 1]), jain([1, 0, 0, 0])
    (1.0, 0.25)
    """
    shares = _sample(values)
    if shares.min() < 0.0 or shares.max() == 0.0:
        raise ValueError("shares are not negative, and one at least is above zero")
    # Scaled, so that squares neither overflow nor vanish.
    shares = shares / shares.max()
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))


def cdf(values: Iterable[float], runs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The empirical distribution function: the sorted values, and the share of runs at or below each.

    ``runs`` counts all runs if some have no value, such as transfers that did not finish: the function then ends below 1.

    >>> cdf([3, 1, 2], runs=4)
    (array([1., 2., 3.]), array([0.25, 0.5 , 0.75]))
    """
    array = _sample(values)
    total = len(array) if runs is None else runs
    if total < len(array):
        raise ValueError(f"{len(array)} values of {total} runs")
    found = _stats.ecdf(array).cdf
    return found.quantiles, found.probabilities * (len(array) / total)


__all__: Sequence[str] = (
    "Interval",
    "bootstrap_interval",
    "cdf",
    "certain",
    "jain",
    "mean_interval",
    "median",
    "median_interval",
    "paired_difference",
    "paired_ratio",
    "quantile",
    "quantile_interval",
)

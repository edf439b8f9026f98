"""Statistics, against values worked out by hand."""

import math

import numpy as np
import pytest

from bentpipe import stats


def test_ranks_of_the_median_as_tabled():
    # Binomial(20, 1/2): P(B <= 5) = 21700 / 2^20 = 0.0207, P(B <= 6) = 0.0577. So ranks 6 and 15, 95.86 %.
    found = stats.median_interval(range(1, 21))
    assert (found.low, found.high) == (6.0, 15.0)
    assert found.confidence == pytest.approx(1 - 2 * 21700 / 2**20, abs=1e-12)


def test_too_few_values_leave_an_end_open():
    # P(B = 0) = 1/16 is more than 2.5 %: four values bound no 95 % interval. Times begin at zero all the same.
    found = stats.median_interval([1, 2, 3, 4])
    assert (found.low, found.high) == (0.0, math.inf) and "too few" in found.note
    assert stats.median_interval([-1, 2, 3, 4]).low == -math.inf
    # Binomial(10, 0.9): P(B <= 6) = 0.0128, P(B <= 7) = 0.0702; P(B = 10) = 0.349 leaves the top open.
    found = stats.quantile_interval(range(1, 11), 0.9)
    assert (found.low, found.high) == (7.0, math.inf)
    assert found.confidence == pytest.approx(0.9872, abs=1e-4)


def test_what_did_not_finish_is_last():
    # Ranks 2 and 9 of ten bound the median by 97.9 %.
    found = stats.median_interval([*range(1, 10), math.inf])
    assert (found.estimate, found.low, found.high) == (5.5, 2.0, 9.0)
    assert stats.median([1, 2, math.inf]) == 2.0 and stats.median([1, math.inf, math.inf, math.inf]) == math.inf
    assert stats.median([1, math.inf]) == math.inf
    with pytest.raises(ValueError, match="did not finish"):
        stats.mean_interval([1, math.inf])


def test_the_interval_covers_as_often_as_it_says():
    # 2000 samples of 20 uniform draws; 1/2 is inside in 95.86 %, give or take 4 deviations of sqrt(0.9586 * 0.0414 / 2000).
    draws = np.random.default_rng(5).uniform(size=(2000, 20))
    covered = np.mean([0.5 in stats.median_interval(sample) for sample in draws])
    assert covered == pytest.approx(0.9586, abs=4 * 0.0045)


def test_no_interval_of_times_reaches_below_zero():
    # Mean 50.5, s = 70, t(1, 97.5 %) = 12.7: without the cut the interval begins at -578.
    assert stats.mean_interval([1, 100]).low == 0.0
    assert stats.mean_interval([1, 100]).high == pytest.approx(50.5 + 12.7062 * 49.5, rel=1e-4)
    for method in ("basic", "percentile", "BCa"):
        skewed = [0.01, 0.02, 0.03, 0.05, 60.0, 70.0]
        assert stats.bootstrap_interval(skewed, np.mean, method=method).low >= 0.0
    # A difference may be negative.
    assert stats.paired_difference([3, 5, 4], [1, 2, 3]).low < 0.0


def test_t_interval_by_hand():
    # Mean 5, s = sqrt(20/3), t(3, 97.5 %) = 3.182446.
    half = 3.182446 * math.sqrt(20 / 3) / 2
    found = stats.mean_interval([2, 4, 6, 8])
    assert (found.low, found.high) == pytest.approx((max(5 - half, 0), 5 + half), abs=1e-5)


def test_pairing_takes_away_what_is_common():
    # The runs differ by hundreds, the pairs by 1, 2 and 3: mean 2, s = 1, t(2, 97.5 %) = 4.302653.
    found = stats.paired_difference([100, 400, 900], [101, 402, 903])
    assert found.estimate == pytest.approx(2.0)
    assert found.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-5)


def test_ratios_invert():
    there = stats.paired_ratio([1, 2, 4, 3], [2, 2, 16, 6])
    back = stats.paired_ratio([2, 2, 16, 6], [1, 2, 4, 3])
    assert there.estimate * back.estimate == pytest.approx(1.0)
    assert there.low * back.high == pytest.approx(1.0, rel=1e-9)


def test_equal_runs_say_so():
    for found in (stats.median_interval([7.0] * 5), stats.mean_interval([7.0] * 5), stats.bootstrap_interval([7.0] * 5)):
        assert (found.low, found.estimate, found.high, found.note) == (7.0, 7.0, 7.0, "all 5 runs are equal")


def test_the_bootstrap_is_repeatable_and_near_students_t():
    values = np.random.default_rng(2).exponential(10.0, 200)
    t = stats.mean_interval(values)
    b = stats.bootstrap_interval(values, np.mean, method="percentile")
    assert b == stats.bootstrap_interval(values, np.mean, method="percentile")
    # Skewness 2 and n = 200 move the ends by under a tenth of the interval's length.
    tenth = (t.high - t.low) / 10
    assert abs(t.low - b.low) < tenth and abs(t.high - b.high) < tenth


def test_jain_by_hand():
    assert stats.jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert stats.jain([1e200, 1e200]) == 1.0
    for wrong in ([0, 0], [1, -1]):
        with pytest.raises(ValueError, match="shares"):
            stats.jain(wrong)


def test_cdf_counts_runs_without_a_value():
    x, p = stats.cdf([2, 2, 1], runs=6)
    assert x.tolist() == [1, 2] and p.tolist() == pytest.approx([1 / 6, 3 / 6])


def test_the_engine_agrees():
    import bentpipe as bp

    found = bp.compare("geo-bursts", ["sack", "newreno"], runs=9, set={"flows.download.bytes": "5 MB"})
    summary = found.summary()
    first, second = found.values("time_s", "sack"), found.values("time_s", "newreno")
    assert stats.median(first) == pytest.approx(summary["median"][0], rel=1e-12)
    assert stats.quantile(first, 0.25) == pytest.approx(summary["p25"][0], rel=1e-12)
    interval = stats.mean_interval(first)
    assert (interval.low, interval.high) == pytest.approx((summary["mean_low"][0], summary["mean_high"][0]), rel=1e-8)
    ratio = stats.paired_ratio(first, second)
    assert ratio.estimate == pytest.approx(summary["ratio"][1], rel=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: stats.median([]), "0 values: at least 1 needed"),
        (lambda: stats.median([1, math.nan]), "value 1 is nan"),
        (lambda: stats.mean_interval([1]), "1 value: at least 2 needed"),
        (lambda: stats.quantile([1], 1.5), "p is between"),
        (lambda: stats.median_interval([1, 2], 1.0), "confidence is between"),
        (lambda: stats.paired_difference([1, 2], [1, 2, 3]), "cannot be paired"),
        (lambda: stats.cdf([1, 2], runs=1), "2 values of 1 runs"),
    ],
)
def test_what_has_no_place_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()

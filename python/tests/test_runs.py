"""Runs: their numbers are the command's and depend only on scenario and seed."""

import json
import math
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bentpipe as bp


def test_the_same_seed_gives_the_same_packets_on_any_threads():
    small = {"flows.download.bytes": "5 MB"}
    one = bp.replicate("geo-bursts", runs=8, set=small, threads=1)
    two = bp.replicate("geo-bursts", runs=8, set=small, threads=2)
    assert one.flows.to_pandas().equals(two.flows.to_pandas())
    alone = bp.run("geo-bursts", set=small, seed=one.seeds[3])
    assert alone.flow().time_s == one.values("time_s")[3]


def test_compare_is_the_command():
    command = ["compare", "geo-bursts", "--variants", "sack,newreno", "--reps", "6", "--json", "--set", "flows.download.bytes=5 MB"]
    printed = json.loads(subprocess.run([sys.executable, "-m", "bentpipe", *command], capture_output=True, check=True).stdout)
    found = bp.compare("geo-bursts", ["sack", "newreno"], runs=6, set={"flows.download.bytes": "5 MB"})
    assert found.measure == "slowest_time_s"
    summary = found.summary()
    for row, theirs in enumerate(printed["variants"]):
        assert summary["case"][row] == theirs["variant"]
        for name in ("median", "p25", "mean", "mean_low", "x_limit"):
            assert summary[name][row] == theirs[name]
    assert summary["ratio_low"][1] == printed["variants"][1]["ratio_to_first"]["low"]


def test_several_scenarios_are_compared():
    near, far = (bp.load("geo", set={"links.sat.delay": delay, "flows.download.bytes": "1 MB"}) for delay in ("40 ms", "279 ms"))
    found = bp.compare({"near": near, "far": far}, runs=1)
    assert found.values("time_s", "near")[0] < found.values("time_s", "far")[0]


def test_where_nothing_is_random_it_says_so():
    same = bp.replicate("geo", runs=3, set={"flows.download.bytes": "1 MB"})
    assert not same.is_random and len(same.seeds) == 1 and bp.load("geo").random_parts == []
    (row,) = same.medians().to_dict("records")
    assert row["low"] == row["median"] == row["high"] and "nothing here is random" in row["note"]
    assert bp.load("geo-bursts").random_parts == ["link sat/forward: bursts"]
    # Beside a random case, both have all seeds, because they are compared pair by pair.
    pair = {"clear": bp.load("geo"), "faded": bp.load("geo-bursts", set={"flows.download.bytes": "10 MB"})}
    assert len(bp.compare(pair, runs=3)) == 6


def test_runs_that_do_not_finish_are_counted():
    never = bp.replicate("geo", runs=2, set={"time_limit": "2 s"})
    (row,) = never.medians().to_dict("records")
    assert (row["runs"], row["missing"]) == (0, 1)
    assert not never.flows["finished"].any()
    # Some finish: a median over those alone would be too low.
    for limit, most_finish in (("40 s", False), ("60 s", True)):
        some = bp.replicate("geo", runs=9, set={"links.sat.loss": "1 %", "flows.download.bytes": "2 MB", "time_limit": limit})
        (row,) = some.medians().to_dict("records")
        finished = sorted(time for time in some.values("time_s") if time == time)
        assert 0 < row["runs"] == len(finished) < 9 and row["runs"] + row["missing"] == 9
        assert row["median"] == (finished[4] if most_finish else float("inf"))


def test_other_threads_run_meanwhile():
    # A run of seconds beside a counter: if the run held Python's lock, the counter would not advance.
    done, counted = threading.Event(), 0
    work = threading.Thread(target=lambda: (bp.run("geo", set={"flows.download.bytes": "200 MB"}), done.set()))
    work.start()
    while not done.wait(0.001):
        counted += 1
    work.join()
    assert counted > 5


# The runs of the third call are too short to ask for signals themselves.
@pytest.mark.parametrize(
    "call",
    [
        "bp.run('geo', set=BIG)",
        "bp.replicate('geo', runs=50, set=BIG)",
        "bp.replicate('geo-bursts', runs=1_000_000, set=SMALL)",
        "bp.fit('lines.txt')",
    ],
)
def test_ctrl_c_ends_a_run(call, tmp_path):
    if "fit" in call:
        # Empty lines, which take seconds.
        (tmp_path / "lines.txt").write_bytes(b"\n" * 100_000_000)
    script = (
        "import bentpipe as bp, sys\n"
        "BIG = {'flows.download.bytes': '100 GB', 'time_limit': '1000000 s'}\n"
        "SMALL = {'flows.download.bytes': '5 MB'}\n"
        "print('begun', flush=True)\n"
        f"try:\n    {call}\nexcept KeyboardInterrupt:\n    sys.exit(42)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path)
    try:
        child.stdout.readline()
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        # Not a speed limit: a run that ignores signals would take an hour.
        assert child.wait(timeout=60) == 42
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_numbers_go_between_processes_and_results_do_not():
    one = bp.run("geo", set={"flows.download.bytes": "200 kB"})
    again = pickle.loads(pickle.dumps((one.scenario, one.flow())))
    assert (again[0].to_toml(), again[1]) == (one.scenario.to_toml(), one.flow())
    with pytest.raises(TypeError, match=r"`Result` cannot be pickled: pass numbers of it, such as `to_pandas\(\)`"):
        pickle.dumps(one)
    with pytest.raises(TypeError, match=r"a table cannot be pickled: pass `to_pandas\(\)`"):
        pickle.dumps(one.flows)


def test_numbers_are_whole():
    with pytest.raises(TypeError, match="`seed` is a whole number, not '1'"):
        bp.run("geo", seed="1")
    with pytest.raises(TypeError, match="`runs` is a whole number, not 2.0"):
        bp.replicate("geo", runs=2.0)
    assert bp.run("geo", set={"flows.download.bytes": "1 kB"}, seed=np.int64(3)).seed == 3


def test_flows_are_found_by_name():
    four = bp.run("transat-four-flows")
    with pytest.raises(KeyError, match="name one of"):
        four.flow()
    with pytest.raises(KeyError, match="no flow `x`"):
        four.flow("x")
    assert all(four.flow(name).name == name for name in four.scenario.flows)


def test_explain_model_recommend_reproduce():
    assert bp.explain("geo")[0]["limit_time_s"] == bp.run("geo").flow().limit_time_s
    with pytest.raises(ValueError, match="did you mean `buffer`"):
        bp.model("hybrid", bufer="20 packets")
    with pytest.raises(ValueError, match="expected hybrid or rates"):
        bp.model("other")
    found = bp.recommend("geo-bursts", size="5 MB", runs=4, flips=False)
    assert found.system in {"plain", "bbr", "uplink", "link", "split"}
    assert np.isfinite(bp.run(found.scenario).flow(found.flow).time_s)
    with pytest.raises(ValueError, match="has 1 to"):
        bp.reproduce("transat", table=99)
    # They raised OverflowError.
    for part in ({"table": -1}, {"figure": 256}, {"runs": -1}, {"seed": -1}):
        with pytest.raises(ValueError, match=str(*part.values())):
            bp.reproduce("stp", **part)
    rows = bp.reproduce("transat", table=1, runs=2)
    assert rows and {"id", "verdict"} <= rows[0].keys()


def test_a_text_is_no_list_of_variants():
    # Its letters would be taken for variants.
    with pytest.raises(TypeError, match=r"`variants` is a list of names, such as \['sack'\]"):
        bp.compare("geo", "sack", runs=1)
    with pytest.raises(TypeError, match="`gateways` is a list of names"):
        bp.sweep("geo", gateways="link")


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_has_bounds(seed):
    for call in (lambda: bp.run("geo", seed=seed), lambda: bp.replicate("geo", 2, seed=seed)):
        with pytest.raises(ValueError, match="a seed is a whole number from 0"):
            call()


def test_medians_have_the_same_columns_if_nothing_finishes():
    finite = bp.replicate("geo", 2, set={"time_limit": "2 s"}).medians()
    assert finite.loc[0, ["missing", "median", "low", "high", "note"]].tolist() == [1, math.inf, math.inf, math.inf, "no run has a value"]
    link = bp.Link("sat", ("a", "b"), rate="2 Mbit/s", delay="10 ms")
    greedy = bp.scenario("greedy", [link], [bp.Flow("data", "a", "b", more={"greedy": True})], time_limit="2 s")
    endless = bp.replicate(greedy, 2).medians()
    assert endless["median"].isna().all() and endless.loc[0, "note"] == "no run has a value"


def test_each_seed_has_its_own_number():
    """Tables have signed numbers: above 2^63 - 1 a seed is shown minus 2^64, as in a sweep's table."""
    small = {"flows.download.bytes": "100 kB", "links.sat.forward.loss": "1 %"}
    runs = bp.compare("geo", ["sack"], runs=2, seed=2**64 - 2, set=small)
    assert runs.seeds == [2**64 - 2, 2**64 - 1]
    assert [sorted({*table["seed"].tolist()}) for table in (runs.flows, runs.links)] == [[-2, -1]] * 2


def test_what_no_transfer_has_is_not_infinite():
    """A transfer without requests has no responses, but it finished: their time is not beyond all others."""
    runs = bp.replicate("geo-bursts", 3, set={"flows.download.bytes": "1 MB"})
    row = runs.medians("response_median_s").loc[0]
    assert row["missing"] == 3 and math.isnan(row["median"]) and row["note"] == "no run has a value"


def test_what_no_unfinished_transfer_has_is_not_infinite_either():
    # It was, as if the responses had been late.
    runs = bp.replicate("geo", 2, set={"time_limit": "2 s"})
    row = runs.medians("response_median_s").loc[0]
    assert row["missing"] == 1 and math.isnan(row["median"]) and row["note"] == "no run has a value"
    link = bp.Link("sat", ("a", "b"), rate="2 Mbit/s", delay="300 ms")
    asks = {"request_response": {"request": "100 B", "response": "10 MB", "think": "0 s", "count": 1}}
    late = bp.scenario("late", [link], [bp.Flow("web", "a", "b", more=asks)], time_limit="2 s")
    assert bp.replicate(late, 2).medians("response_median_s").loc[0, "median"] == math.inf


@pytest.mark.parametrize("column", ["from", "variant", "aborted"])
def test_text_has_no_median(column):
    # It said "could not convert string to float"; a column without any text was taken for times that were not reached.
    runs = bp.replicate("geo", 2, set={"flows.download.bytes": "1 MB"})
    with pytest.raises(ValueError, match=f"`{column}` is a column of text; those of numbers are seed, finished, time_s, "):
        runs.medians(column)


def test_threads_are_not_negative():
    # They raised OverflowError.
    for call in (
        lambda: bp.replicate("geo", 2, threads=-1),
        lambda: bp.sweep("geo", threads=-1),
        lambda: bp.recommend("geo", threads=-1),
        lambda: bp.reproduce("transat", threads=-1),
    ):
        with pytest.raises(ValueError, match="`threads` is 0, for one per core, or more, not -1"):
            call()


def test_each_variant_is_there_once():
    # The second was left out, and a pair of cases was one.
    with pytest.raises(ValueError, match="`sack` is there twice"):
        bp.compare("geo", ["sack", "newreno", "sack"], runs=1)


def test_a_swept_parameter_is_named():
    with pytest.raises(TypeError, match="`sweep` is a dictionary from a parameter to its values, not a list"):
        bp.model("hybrid", sweep=["buffer"])
    with pytest.raises(ValueError, match="`5` has no unit"):
        bp.model("hybrid", sweep={"buffer": 5}, t1="1 ms", t2="1 ms", loss=0.1)
    with pytest.raises(TypeError, match="`links.sat.delay`: expected a list of values, not 5"):
        bp.sweep("geo", {"links.sat.delay": 5})

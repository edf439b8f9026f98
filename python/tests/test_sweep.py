"""Sweeps: the same numbers on threads, processes and Dask's workers, also if a worker dies."""

import concurrent.futures
import multiprocessing
import os
import resource
import signal
import threading
import time

import pytest

import bentpipe as bp

SMALL = {"flows.download.bytes": "100 kB", "links.sat.forward.loss": "1 %"}
AXES = {"links.sat.delay": ["40 ms", "280 ms"], "links.sat.rate": ["2 Mbit/s", "20 Mbit/s"]}


def table(folder):
    return (folder / "table.parquet").read_bytes()


def sweep(folder, **more):
    given = {"variants": ["sack", "newreno"], "set": SMALL, "repetitions": 60, **more}
    return bp.sweep("geo", AXES, folder=folder, **given)


def processes():
    return concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The table from a run with one thread."""
    folder = tmp_path_factory.mktemp("alone")
    found = sweep(folder, threads=1)
    assert len(found) == 480
    return table(folder)


def test_the_table_has_a_row_for_each_run(tmp_path):
    found = sweep(tmp_path, repetitions=7)
    frame = found.to_pandas()
    assert len(frame) == len(found) == 56
    assert sorted(frame["links.sat.delay"].unique()) == [0.04, 0.28]
    assert frame.loc[0, "candidate"] == "sack" and frame.loc[1, "candidate"] == "newreno"
    assert (frame["seed"] == 1 + frame["repetition"]).all()
    one = bp.run("geo", set={**SMALL, "links.sat.delay": "40 ms", "links.sat.rate": "2 Mbit/s"}, variant="newreno", seed=1)
    assert frame.loc[1, "time_s"] == one.flow().time_s
    summary = found.summary()
    assert len(summary) == 8 and (summary["low"] <= summary["median"]).all() and (summary["median"] <= summary["high"]).all()
    assert summary["difference"].isna().tolist() == [True, False] * 4


def test_threads_change_nothing(tmp_path, alone):
    sweep(tmp_path)
    assert table(tmp_path) == alone


def test_processes_change_nothing(tmp_path, alone):
    with processes() as executor:
        sweep(tmp_path, executor=executor)
    assert table(tmp_path) == alone


def test_results_that_cannot_be_saved(tmp_path, alone):
    """Files of at most 4 kB stand for a full disk. The runs before are kept, and the next call continues."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="journal-000001.log"):
            sweep(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert 0 < (tmp_path / "journal-000001.log").stat().st_size <= 4096
    sweep(tmp_path)
    assert table(tmp_path) == alone


def test_a_dead_process_loses_no_run(tmp_path, alone):
    """A pool does not replace a process that dies, so the call fails. The next call continues."""
    with processes() as executor:
        # All processes are up: a pool that loses one while it starts another fails in many ways.
        list(executor.map(time.sleep, [0.5] * executor._max_workers))

        def kill():
            time.sleep(0.05)
            os.kill(next(iter(executor._processes)), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(concurrent.futures.BrokenExecutor):
            sweep(tmp_path, executor=executor, repetitions=100_000)
        killer.join()
    sweep(tmp_path)
    assert table(tmp_path) == alone


@pytest.mark.filterwarnings("ignore")  # Dask's own.
def test_dask_with_a_worker_killed_in_the_middle(tmp_path, alone):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None, memory_limit=0)
    with cluster, distributed.Client(cluster) as client:
        workers = client.run(os.getpid)
        killed = threading.Event()
        executor = client.get_executor(retries=3)
        submit, count = executor.submit, iter(range(10**9))

        def counting(*work):
            # Kills a worker when a third of the work has been submitted.
            if next(count) == 6:
                os.kill(next(iter(workers.values())), signal.SIGKILL)
                killed.set()
            return submit(*work)

        executor.submit = counting
        sweep(tmp_path, executor=executor, ahead=4)
        assert killed.is_set()
    assert table(tmp_path) == alone


class Together(concurrent.futures.Executor):
    """Its calls end before the sweep waits for them, and the n-th one fails."""

    def __init__(self, failing=None):
        self.failing, self.calls = failing, 0

    def submit(self, function, *arguments):
        future = concurrent.futures.Future()
        if self.calls == self.failing:
            future.set_exception(RuntimeError("a dead machine"))
        else:
            future.set_result(function(*arguments))
        self.calls += 1
        return future


def test_a_failing_call_loses_no_other(tmp_path, alone):
    with pytest.raises(RuntimeError, match="a dead machine"):
        sweep(tmp_path, executor=Together(failing=3))
    rest = Together()
    sweep(tmp_path, executor=rest)
    assert rest.calls == 1
    assert table(tmp_path) == alone


def test_a_rule_asks_for_more_on_any_executor(tmp_path):
    rule = {"tolerance": "3 %", "min_repetitions": 6, "repetitions": 200}
    first = sweep(tmp_path / "threads", **rule)
    with concurrent.futures.ThreadPoolExecutor(3) as executor:
        second = sweep(tmp_path / "executor", executor=executor, **rule)
    assert table(tmp_path / "threads") == table(tmp_path / "executor")
    assert 48 <= len(first) == len(second) < 1600


def test_samplers(tmp_path):
    ranges = {"links.sat.delay": ("10 ms", "300 ms"), "links.sat.loss": ("0.01 %", "1 %")}
    points = bp.latin_hypercube(ranges, 10, seed=3, log=["links.sat.loss"])
    assert points == bp.latin_hypercube(ranges, 10, seed=3, log=["links.sat.loss"]) != bp.latin_hypercube(ranges, 10, seed=4)
    found = bp.sweep("geo", points, set={"flows.download.bytes": "100 kB"}, repetitions=1).to_pandas()
    delays, losses = found["links.sat.delay"], found["links.sat.loss"]
    # One point in each tenth of the range; in a logarithmic range one in each fifth of a decade.
    assert sorted(((delays - 0.01) / 0.029).astype(int)) == list(range(10))
    assert losses.between(1e-4, 1e-2).all() and (losses < 1e-3).sum() == 5
    assert len(bp.sobol(ranges, 8)) == 8
    with pytest.raises(ValueError, match="powers of two"):
        bp.sobol(ranges, 10)


def test_mistakes():
    with pytest.raises(bp.ScenarioError, match="did you mean `loss`"):
        bp.sweep("geo", {"links.sat.los": ["1 %"]})
    with pytest.raises(bp.ScenarioError, match="nothing is called"):
        bp.sweep("geo", {}, variants=["sack"], baseline="reno")
    with pytest.raises(ValueError, match="point 1 has the keys"):
        bp.sweep("geo", [{"seed": 1}, {"other": 2}])
    with pytest.raises(TypeError, match="expected a list of values"):
        bp.sweep("geo", {"links.sat.loss": "1 %"})


def test_points_are_dictionaries():
    with pytest.raises(TypeError, match="`axes` is a dictionary from keys to lists of values, or a list of such points"):
        bp.sweep("geo", ["links.sat.delay"])

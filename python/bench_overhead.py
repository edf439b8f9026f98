"""Overhead of the Python layer: the time of a call minus that of the engine, for a run of 1 MB.

usage: python python/bench_overhead.py [RUNS]

The engine's time is measured in the same call. Prints medians over the runs. Install the package with `pip install .` first: the build for
the tests is slower.
"""

import statistics
import sys
import time

import bentpipe as bp

SET = {"flows.download.bytes": "1 MB"}


def measure(call, count: int) -> tuple[float, float]:
    """Median time of the engine, and of the rest of the call, seconds."""
    engine, rest = [], []
    for _ in range(count):
        begun = time.perf_counter()
        result = call()
        took = time.perf_counter() - begun
        engine.append(result.took_s)
        rest.append(took - result.took_s)
    return statistics.median(engine), statistics.median(rest)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    loaded = bp.load("geo", set=SET)

    def with_numbers():
        result = bp.run(loaded)
        result.flow()
        return result

    for name, call in {
        "run of a loaded scenario": lambda: bp.run(loaded),
        "the same with its flow's numbers": with_numbers,
        "run of a shipped scenario again": lambda: bp.run("geo", set=SET),
    }.items():
        engine, rest = measure(call, count)
        print(f"{name:36} engine {engine * 1e6:7.0f} us, layer {rest * 1e6:6.0f} us, {100 * rest / engine:5.1f} %")


if __name__ == "__main__":
    main()

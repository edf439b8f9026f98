"""What `random_links.py` and `random_pings.py` have in common: their options, and how often the intervals hold the truth."""

import argparse
import sys


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bentpipe", default="bentpipe")
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def holds(estimate: dict, low: float, high: float) -> bool:
    """True if an interval or a bound allows a truth between `low` and `high`."""
    if estimate["kind"] == "measured":
        return estimate["low"] <= high and low <= estimate["high"]
    if estimate["kind"] == "at-most":
        return low <= estimate["value"]
    return high >= estimate["value"]


class Tally:
    """For each kind of estimate, how many hold the truth and how many there are."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}

    def add(self, kind: str, is_right: bool) -> None:
        count = self.counts.setdefault(kind, [0, 0])
        count[0] += is_right
        count[1] += 1

    def end(self) -> None:
        """Prints the counts, and exits with 1 if fewer than four in five of a kind are right."""
        for kind, (right, count) in sorted(self.counts.items()):
            print(f"{kind}: {right} of {count}")
        sys.exit(any(right * 5 < count * 4 for right, count in self.counts.values()))

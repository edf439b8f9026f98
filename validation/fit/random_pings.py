"""How often the intervals of `bentpipe fit` of a ping log hold the truth: python validation/fit/random_pings.py --bentpipe BIN

Writes logs as `ping -D` does, with its rounding: 500 to 20 000 pings, 20 ms to 1 s apart, over a base round trip of 10 to 700 ms with
correlated jitter; losses that are independent, come in bursts, or do not exist; in three logs of ten, levels that are drawn anew every 10, 15
or 20 s. Prints each interval or bound that does not hold the truth, and for each kind how many there were and how many hold it. Exits with 1
if fewer than four in five of a kind do. The bound of losses where nothing was lost assumes independent losses, so bursts are not counted there.
"""

import json
import math
import random
import subprocess
import tempfile
from pathlib import Path

from tally import Tally, arguments, holds

# Of a normal distribution: the quantiles that `fit` estimates.
QUANTILES = {"median": 0.0, "p95": 1.644854, "p99": 2.326348}


def draw(rng: random.Random) -> tuple[str, dict]:
    """Returns a log and the truth."""
    count, spacing = int(10 ** rng.uniform(2.7, 4.3)), rng.choice([0.02, 0.1, 0.2, 1])
    base, jitter, memory = 10 ** rng.uniform(1, 2.85), 10 ** rng.uniform(-1, 1.5), rng.choice([0, 0.5, 0.95])
    kind, loss, burst = rng.choice(["none", "independent", "bursts"]), 10 ** rng.uniform(-3, -1), rng.uniform(1.5, 12)
    period, size = rng.choice([(None, 0), (None, 0), (rng.choice([10, 15, 20]), jitter * rng.uniform(1, 3))])
    start, noise, is_bad, levels = 1.79e9 + rng.uniform(0, 1000), rng.gauss(0, 1), rng.random() < loss, {}
    lines = ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."]
    for number in range(1, count + 1):
        at = start + number * spacing
        noise = memory * noise + math.sqrt(1 - memory**2) * rng.gauss(0, 1)
        took = base + jitter * math.exp(noise / 2)
        if period:
            took += levels.setdefault(at // period, rng.uniform(0, 2 * size))
        leaves, enters = 1 / burst, loss / (1 - loss) / burst
        is_bad = rng.random() < ((1 - leaves if is_bad else enters) if kind == "bursts" else loss)
        if kind == "none" or not is_bad:
            digits = 3 if took < 1 else 2 if took < 10 else 1 if took < 100 else 0
            lines.append(f"[{at + took / 1000:.6f}] 64 bytes from 192.0.2.1: icmp_seq={number & 0xFFFF} ttl=50 time={took:.{digits}f} ms")
    truth = {name: (base + jitter * math.exp(normal / 2)) / 1000 for name, normal in QUANTILES.items() if not period}
    truth["losses"] = 0.0 if kind == "none" else loss
    return "\n".join(lines) + "\n", {"kind": kind, "burst": burst if kind == "bursts" else 1 / (1 - loss), "period": period, **truth}


def fitted(bentpipe: str, log: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pings.txt"
        path.write_text(log)
        done = subprocess.run([bentpipe, "fit", str(path), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    args = arguments(__doc__).parse_args()
    rng = random.Random(args.seed)
    tally = Tally()

    def count(what: str, is_right: bool, said: object) -> None:
        tally.add(what, is_right)
        if not is_right:
            print(f"{number}: {what}: {said}, truth {truth}", flush=True)

    for number in range(args.count):
        log, truth = draw(rng)
        fit = fitted(args.bentpipe, log)
        losses = fit["losses"]
        estimates = {name: (fit[name], truth[name]) for name in QUANTILES if name in truth}
        if truth["kind"] != "bursts" or losses["lost"]:
            estimates["losses"] = (losses["probability"], truth["losses"])
        if losses["lost"] and truth["kind"] != "none":
            estimates["burst"] = (losses["burst_segments"], truth["burst"])
        for name, (estimate, true) in estimates.items():
            if estimate["kind"] != "unknown":
                count(f"{name}, {estimate['kind']}", holds(estimate, true, true), estimate)
        steps, period = fit["steps"], truth["period"]
        if steps or not period:
            count("steps" if steps else "no steps", (steps and steps["period"]) == period, steps)
    tally.end()


if __name__ == "__main__":
    main()

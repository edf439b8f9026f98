"""Linux's TCP over paths drawn at random, beside the simulation: python validation/linux/random_paths.py --bentpipe BIN

Needs root. Draws a rate of 1 to 32 Mbit/s, a round trip of 20 to 630 ms, a drop-tail queue of 0.3 to 3 times what fits into it but at least
20 packets, a control (reno, cubic, bbr), the amount of data, and up to three packets that are lost. `bentpipe verify` runs each transfer
with the kernel's TCP over the emulated link. `bentpipe run` runs the nearest variant in virtual time, with SEEDS draws of a jitter of
10 us, since the order of two packets that are microseconds apart may decide. Prints a line for each path, with the difference of the
kernel's time to the median of ours, and by how much it is outside of all of ours. Exits with 1 if more than one path in twenty is outside
by more than 1 %.

--only 22,49 runs these paths of the same draw again.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FULL_PACKET = 1500
SEEDS = 11
JITTER = "links.line.jitter.delay.exponential=10 us"
VARIANTS = {"reno": "linux-reno", "cubic": "linux-cubic", "bbr": "bbr"}


def draw(rng: random.Random) -> tuple[str, str]:
    """Returns a congestion control and the text of a scenario."""
    rate = 10 ** rng.uniform(6, 7.5)
    delay = 10 ** rng.uniform(-2, -0.5)
    control = rng.choice(["reno", "cubic", "bbr"])
    queue = max(rng.choice([0.3, 1, 3]) * 2 * delay * rate / 8 / FULL_PACKET, 20)
    some_seconds = min(max(0.3, rate / 8 * rng.uniform(2, 10) / 1e6), 12)
    few = rng.choice([False, False, True])
    size = rng.randint(1, 60) * 1000 if few else int(some_seconds * 1e6)
    lost = sorted(rng.sample(range(2, 400), rng.choice([0, 1, 3]))) if rng.random() < 0.5 else []
    drops = f"forward.drop_list = {lost}\n" if lost else ""
    return control, (
        'name = "random path"\ntime_limit = "90 s"\n[tcp]\nprofile = "linux"\nvariant = "linux-cubic"\n'
        f'[[links]]\nname = "line"\nbetween = ["a", "b"]\nrate = "{int(rate)} bit/s"\ndelay = "{int(delay * 1e6)} us"\n'
        f'queue = "{int(queue)} packets"\n{drops}[[flows]]\nname = "data"\nfrom = "a"\nto = "b"\nbytes = "{size} B"\n'
    )


def asked(command: list[str]) -> dict:
    """Returns the JSON that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # `verify` exits with 1 if the engine's own run in real time differs, which is not the question here.
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def times(bentpipe: str, control: str, scenario: str) -> tuple[float, list[float]]:
    """Returns the kernel's time and ours, sorted; infinite for a transfer that did not end."""
    infinite = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "path.toml"
        path.write_text(scenario)
        verify = ["chrt", "-r", "10", bentpipe, "verify", str(path), "--control", control, "--draws", "0", "--json"]
        kernel = asked(verify)["flows"][0]["kernel_s"]
        run = [bentpipe, "run", str(path), "--variant", VARIANTS[control], "--set", JITTER, "--json", "--seed"]
        ours = [asked([*run, str(seed)])["flows"][0]["time_s"] for seed in range(1, SEEDS + 1)]
    return kernel or infinite, sorted(time or infinite for time in ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bentpipe", default="bentpipe")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=lambda text: {int(number) for number in text.split(",")})
    args = parser.parse_args()
    rng = random.Random(args.seed)
    differences = []
    for number in range(args.count):
        control, scenario = draw(rng)
        if args.only and number not in args.only:
            continue
        kernel, ours = times(args.bentpipe, control, scenario)
        difference = (kernel / statistics.median(ours) - 1) * 100
        outside = max(ours[0] / kernel - 1, kernel / ours[-1] - 1, 0) * 100
        differences.append((abs(difference), outside))
        said = [line for line in scenario.splitlines() if line.startswith(("rate", "delay", "queue", "forward", "bytes"))]
        print(
            f"{number:3} {control:5} ours {ours[0]:.3f} to {ours[-1]:.3f} kernel {kernel:.3f} {difference:+.3f} %, "
            f"outside by {outside:.3f} %: {', '.join(said)}",
            flush=True,
        )
    beyond, outside = (sum(pair[column] > 1 for pair in differences) for column in (0, 1))
    median = statistics.median(pair[0] for pair in differences)
    print(f"{len(differences)} paths: median difference {median:.3f} %, {beyond} beyond 1 %, {outside} outside of ours by more than 1 %")
    sys.exit(outside * 20 > len(differences))


if __name__ == "__main__":
    main()

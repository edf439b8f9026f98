"""Gateways over paths drawn at random, beside the simulation: python validation/gateway/random_paths.py --bentpipe BIN --bench BIN

Needs root. Draws a shape (split, link, uplink), a rate of 1 to 24 Mbit/s, a round trip of 20 to 700 ms, a drop-tail queue of 0.5 to 2 times
what fits into it but at least 40 packets, losses of 0.1 or 1 % or none, and the amount of data. `--bench` is the program that
`cargo bench -p bentpipe-gateway --bench gateway --no-run` names: real gateways between hosts with the kernel's cubic. The same path runs in
virtual time with 20 seeds. Prints the medians for each path. A path differs if its median is more than 2 % below or above everything that
the 20 seeds gave. Exits with 1 if more than one path in ten differs.
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
SEEDS = 20

SCENARIO = """
name = "random path"
time_limit = "400 s"
[tcp]
profile = "linux"
first_window = "64 kB"
ack.gro = "20 us"
[[links]]
name = "lan"
between = ["client", "near"]
rate = "10 Gbit/s"
delay = "10 us"
[[links]]
name = "sat"
between = ["near", "far"]
rate = "{rate} Mbit/s"
delay = "{delay} ms"
queue = "{queue} packets"
loss = {loss}
[[links]]
name = "net"
between = ["far", "server"]
rate = "10 Gbit/s"
delay = "10 us"
[[gateways]]
name = "box"
shape = "{shape}"
{at}
rate = "{told} kbit/s"
[[flows]]
name = "transfer"
from = "client"
to = "server"
spread = "60 s"
{work}
"""


def draw(rng: random.Random) -> dict:
    shape = rng.choice(["split", "link", "uplink"])
    rate = int(10 ** rng.uniform(0, 1.39))
    round_trip = 2 * int(10 ** rng.uniform(1, 2.54))
    queue = max(int(rng.choice([0.5, 1, 2]) * round_trip / 1000 * rate * 1e6 / 8 / FULL_PACKET), 40)
    loss = rng.choice([0, 0.001, 0.01])
    return {
        "shape": shape,
        "rate": rate,
        "round_trip": round_trip,
        "queue": queue,
        "loss": loss,
        "bytes": int(rate * 1e6 / 8 * rng.uniform(3, 12)),
    }


def simulated(bentpipe: str, path: dict) -> list[float]:
    """Returns the rate that each seed gives, Mbit/s."""
    is_down = path["shape"] == "uplink"
    text = SCENARIO.format(
        rate=path["rate"],
        delay=path["round_trip"] // 2,
        queue=path["queue"],
        loss=path["loss"],
        shape=path["shape"],
        at='at = "far"\nvariant = "burst"' if is_down else 'near = "near"\nfar = "far"',
        told=path["rate"] * 995,
        work=f'request_response = {{ request = "1 B", response = "{path["bytes"]} B", count = 1 }}'
        if is_down
        else f'bytes = "{path["bytes"]} B"',
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "path.toml"
        file.write_text(text)
        rates = []
        for seed in range(1, SEEDS + 1):
            done = subprocess.run([bentpipe, "run", str(file), "--seed", str(seed), "--json"], capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1) or not done.stdout:
                sys.exit(f"{done.stderr}\n{text}")
            seconds = json.loads(done.stdout)["flows"][0]["time_s"]
            rates.append(path["bytes"] * 8e-6 / seconds if seconds else 0.0)
        return rates


def measured(bench: str, path: dict, seeds: int) -> list[float]:
    """Returns the rate that each seed of the real gateways gives, Mbit/s."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = ["chrt", "-r", "10", bench, "--bench", "--objects", "1000", "--ping", "no", "--seeds", str(seeds)]
        command += ["--modes", path["shape"], "--losses", str(path["loss"]), "--rate", f"{path['rate']} Mbit/s"]
        command += ["--round-trip", f"{path['round_trip']} ms", "--queue", str(path["queue"]), "--bulk", str(path["bytes"])]
        command += ["--direction", "down" if path["shape"] == "uplink" else "up", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return json.loads(out.read_text())[0]["mbits_runs"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bentpipe", default="bentpipe")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3, help="of the real gateways, for each path")
    parser.add_argument("--only", type=lambda text: {int(number) for number in text.split(",")})
    args = parser.parse_args()
    rng = random.Random(args.seed)
    differences, outside = [], 0
    for number in range(args.count):
        path = draw(rng)
        if args.only and number not in args.only:
            continue
        ours, real = simulated(args.bentpipe, path), measured(args.bench, path, args.seeds if path["loss"] else 1)
        middle, seen = statistics.median(ours), statistics.median(real)
        difference = (seen / middle - 1) * 100
        differences.append(abs(difference))
        beyond = not 0.98 * min(ours) <= seen <= 1.02 * max(ours)
        outside += beyond
        print(
            f"{number:3} {'DIFFERS' if beyond else ''} {path}: simulated {middle:.3f} ({min(ours):.3f} to {max(ours):.3f}), "
            f"real {' '.join(f'{rate:.3f}' for rate in real)}, {difference:+.2f} %",
            flush=True,
        )
    print(f"{len(differences)} paths: median difference {statistics.median(differences):.2f} %, {outside} differ")
    sys.exit(outside * 10 > len(differences))


if __name__ == "__main__":
    main()

"""How often the intervals of `bentpipe fit` hold the truth: python validation/fit/random_links.py --bentpipe BIN

Draws a link of 0.5 to 80 Mbit/s with a round trip of 12 to 710 ms, a drop-tail queue of 0.3, 1 or 2 times that but of at least 20 packets,
losses of 0.03 to 2 % or none, a TCP variant and profile, and the side of the capture. The simulator makes the capture. Prints each interval
or bound that does not hold the truth, and for each kind how many there were and how many hold it. Exits with 1 if fewer than four in
five of a kind do. Intervals are of 95 %; one of losses that misses is mostly one loss of a full queue among thousands of packets. Nine in
ten are right in the runs that the documents cite, and of 57 with that share fewer than 45 are right once in a thousand times.
"""

import json
import random
import struct
import subprocess
import tempfile
from pathlib import Path

from tally import Tally, arguments, holds

HOST_DELAY_S = 0.001
# The type of a packet's block in pcapng.
ENHANCED_PACKET = 6


def draw(rng: random.Random) -> tuple[str, str, dict[str, float]]:
    """Returns the text of a scenario, the host of the capture, and the truth."""
    rate = 10 ** rng.uniform(5.7, 7.9)
    delay = 10 ** rng.uniform(-2.3, -0.45)
    loss = rng.choice([0, 0, 10 ** rng.uniform(-3.5, -1.7)])
    queue = max(rng.choice([0.3, 1, 2]) * 2 * delay, 20 * 1500 * 8 / rate)
    variant = rng.choice(["sack", "cubic", "newreno", "bbr", "linux-cubic", "linux-reno"])
    profile = rng.choice(["rfc", "linux"])
    size = max(1e6, min(rate / 8 * rng.uniform(10, 60), 4e7))
    host = rng.choice(["server", "client"])
    window = int(max(2e5, 4 * rate / 8 * 2 * delay)) // 1000
    truth = {"rate": rate, "base_round_trip": 2 * (int(delay * 1e6) / 1e6 + HOST_DELAY_S), "queue_time": queue, "loss": loss}
    scenario = (
        f'name = "random link"\ntime_limit = "2000 s"\n[tcp]\nprofile = "{profile}"\nvariant = "{variant}"\n'
        f'receive_buffer = "{window} kB"\n'
        '[[links]]\nname = "net"\nbetween = ["server", "gateway"]\nrate = "1 Gbit/s"\ndelay = "1 ms"\n'
        f'[[links]]\nname = "sat"\nbetween = ["gateway", "client"]\nrate = "{int(rate)} bit/s"\ndelay = "{int(delay * 1e6)} us"\n'
        f'queue = "{int(queue * 1e6)} us"\nforward.loss = "{loss * 100:.6f} %"\n'
        f'[[flows]]\nname = "data"\nfrom = "server"\nto = "client"\nbytes = "{int(size)} B"\n'
    )
    return scenario, host, truth


def without_first(capture: bytes, share: float) -> bytes:
    """Returns the pcapng file without this share of its packets."""
    blocks, at = [], 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        blocks.append((kind, capture[at : at + length]))
        at += length
    packets = [block for kind, block in blocks if kind == ENHANCED_PACKET]
    return b"".join([block for kind, block in blocks if kind != ENHANCED_PACKET] + packets[int(share * len(packets)) :])


def fitted(bentpipe: str, scenario: str, seed: int, host: str, cut: float) -> dict | None:
    """Returns the estimates from a capture without the first `cut` of its packets; `None` if the transfer did not end."""
    with tempfile.TemporaryDirectory() as folder:
        path, capture = Path(folder) / "link.toml", Path(folder) / "run.pcapng"
        path.write_text(scenario)
        run = [bentpipe, "run", str(path), "--seed", str(seed), "--pcap", str(capture), "--tap", host]
        if subprocess.run(run, capture_output=True, check=False).returncode:
            return None
        capture.write_bytes(without_first(capture.read_bytes(), cut))
        fit = subprocess.run([bentpipe, "fit", str(capture), "--json"], capture_output=True, text=True, check=True)
    return json.loads(fit.stdout)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cut", action="store_true")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    tally = Tally()
    for number in range(args.count):
        scenario, host, truth = draw(rng)
        cut = rng.uniform(0.01, 0.6) if args.cut else 0.0
        fit = fitted(args.bentpipe, scenario, number, host, cut)
        if fit is None:
            continue
        for what, true in truth.items():
            estimate = fit["losses"]["probability"] if what == "loss" else fit[what]
            if estimate["kind"] == "unknown":
                continue
            # A whole number of packets waits in the queue, whose limit is given as a time. The shortest packets take some
            # microseconds on the lines.
            less, more = {"queue_time": (1500 * 8 / truth["rate"], 0.0), "base_round_trip": (0.0, 1e-3)}.get(what, (0.0, 0.0))
            right = holds(estimate, true - less, true + more)
            tally.add(f"{what}, {estimate['kind']}", right)
            if not right:
                interval = {key: estimate.get(key) for key in ("value", "low", "high")}
                print(f"{number}, {host}, from {cut:.3f}: {what} {estimate['kind']} {interval}, truth {true}\n{scenario}", flush=True)
    tally.end()


if __name__ == "__main__":
    main()

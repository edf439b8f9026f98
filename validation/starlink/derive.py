#!/usr/bin/env python3
"""Derives scenarios/starlink.toml from public recordings: derive.py DATA > scenarios/starlink.toml

DATA is a folder with mmsys24_ping_100ms_60min.txt and mmsys24_iperf3_up_5min.json (Zhao and Pan, MMSys 2024) and leocc_rate_ms.txt
(Lai et al., LeoCC, SIGCOMM 2025).

Delay. The pings are cut into blocks of 10 minutes of the clock. Only the even blocks are used; the odd ones are for the check
(`bentpipe-validate starlink`). From the even blocks, 15 windows of 400 pings (60 s) are chosen so that their round trips together have
the distribution of the even blocks. The search starts with a random choice (seed 1) and exchanges windows as long as the misfit falls:
the Kolmogorov-Smirnov distance plus a quarter of the relative errors of the 95th and 99th percentiles. Lost pings, and the pauses of
5 s after them, are left out.

Rate downwards. The packets that could pass in each 100 ms, as Mbit/s.

Rate upwards. The best second of the recorded upload, in whole Mbit/s, rounded up. Only the even minutes are used; the odd ones are for the
check.
"""
import json
import math
import random
import sys

STEP, WINDOW, COUNT, BLOCK = 0.15, 60, 15, 600
FIXED = 7.0  # round trip of the scenario's other links, ms
HEADERS = 52  # bytes of IPv4, TCP and its timestamps in a packet


def pings(path):
    rows = [line.split() for line in open(path)]
    last, all_ = 0.0, []
    for at, _, rtt in rows:
        last = float(rtt) if float(rtt) > 0 else last
        all_.append((float(at), last, float(rtt) > 0))
    return all_


def distance(a, b):
    a, b = sorted(a), sorted(b)
    i = j = 0
    d = 0.0
    while i < len(a) and j < len(b):
        v = min(a[i], b[j])
        while i < len(a) and a[i] <= v:
            i += 1
        while j < len(b) and b[j] <= v:
            j += 1
        d = max(d, abs(i / len(a) - j / len(b)))
    return d


def windows(all_):
    """The windows inside even blocks: round trips in the order of the pings. After a lost ping the recording pauses for 5 s; the pause
    is left out, so a window has 60 s of pings, not of the clock."""
    heard = [(at, rtt) for at, rtt, is_heard in all_ if is_heard]
    size = round(WINDOW / STEP)
    cut = [heard[n:n + size] for n in range(0, len(heard) - size, size)]
    even = [part for part in cut if all(int(at) // BLOCK % 2 == 0 for at, _ in part)]
    return [[rtt for _, rtt in part] for part in even]


def misfit(values, target):
    """The Kolmogorov-Smirnov distance plus the relative errors of two tail quantiles, which hardly affect the distance."""
    values, target = sorted(values), sorted(target)
    tails = [values[int(p * len(values))] / target[int(p * len(target))] for p in (0.95, 0.99)]
    return distance(values, target) + sum(abs(tail - 1) for tail in tails) / 4


def choose(found, target):
    draw = random.Random(1)
    chosen = draw.sample(range(len(found)), COUNT)
    best = misfit(sum((found[n] for n in chosen), []), target)
    better = True
    while better:
        better = False
        for place in range(COUNT):
            for other in range(len(found)):
                if other in chosen:
                    continue
                trial = chosen[:place] + [other] + chosen[place + 1:]
                d = misfit(sum((found[n] for n in trial), []), target)
                if d < best - 1e-9:
                    chosen, best, better = trial, d, True
    return sorted(chosen), best


def uplink(path):
    """The rate that carries the best second of payload with its headers, Mbit/s."""
    recorded = json.load(open(path))
    payload = recorded["start"]["tcp_mss_default"]
    tenths = [part["sum"]["bytes"] for part in recorded["intervals"]]
    seconds = [sum(tenths[n:n + 10]) for n in range(0, len(tenths), 10)]
    even = [bytes_ for n, bytes_ in enumerate(seconds) if n // 60 % 2 == 0]
    return max(even) * 8 / 1e6 * (payload + HEADERS) / payload


def lines(values, form):
    return "\n".join(" ".join(form % value for value in values[n:n + 24]) for n in range(0, len(values), 24))


def main(data):
    all_ = pings(f"{data}/mmsys24_ping_100ms_60min.txt")
    even = [rtt for at, rtt, heard in all_ if heard and int(at) // BLOCK % 2 == 0]
    found = windows(all_)
    chosen, best = choose(found, even)
    print(f"{len(found)} windows, distance {best:.4f}", file=sys.stderr)
    delays = [rtt - FIXED for n in chosen for rtt in found[n]]
    slots = [0] * 1200
    for line in open(f"{data}/leocc_rate_ms.txt"):
        slots[min(int(line) // 100, 1199)] += 1
    # 1500 B per packet: 12 kbit in 0.1 s are 0.12 Mbit/s.
    rates = [count * 0.12 for count in slots]
    text = open(f"{sys.path[0]}/starlink.in").read()
    text = text.replace("@DELAYS@", lines(delays, "%.1f")).replace("@RATES@", lines(rates, "%.1f"))
    up = uplink(f"{data}/mmsys24_iperf3_up_5min.json")
    print(f"best second of the upload with headers {up:.2f} Mbit/s", file=sys.stderr)
    text = text.replace("@UPLINK@", str(math.ceil(up)))
    sys.stdout.write(text)


main(sys.argv[1])

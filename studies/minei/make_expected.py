#!/usr/bin/env python3
"""Writes expected.toml, the only place with the numbers of the `minei` paper.

    make_expected.py PAPERS_DIR

PAPERS_DIR holds the transcriptions of the papers, see ../expected.py. The paper has no numbered tables.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import expected

ROUNDED = "half of the last digit that is printed"
RUNS = "the paper prints no number of runs and reads its curves to whole percent: the bounds leave its ordering intact"
WITHIN = lambda value, part: (value * (1 - part), value * (1 + part))

# A gain, whatever its size.
GAIN = {"shape": (0, None)}
# More than a third: no chance, and no size.
FASTER = {"shape": (4 / 3, None)}
# The sign of the gain over Reno; over NewReno no loss that would show on the paper's curve (as M-C18).
OVER_BOTH = {"limits": {"newreno_low": -3}}

# Per claim: published number, min and max value that still support it, unit, derivation.
CLAIMS = {
    "M-C01": (387, *WITHIN(387, 0.02), "kbit/s", "what the paper leaves open (initial window, delayed ACKs) moves a lossless transfer by 1 %; twice that"),
    "M-C02": (0.96, 0.95, 0.98, "ratio", "387 of 400 kbit/s is 0.9675, printed as 96 %"),
    "M-C03": (390, *WITHIN(390, 0.02), "kbit/s", "as M-C01"),
    "M-C04": (42, 36, 42, "packets", "the smallest window that reaches 99 % of the best: a pipe of 330 ms holds 32 packets and delayed ACKs ask for some more; 42 must suffice"),
    "M-C05": (32, 31, 33, "packets", "the smallest window of the satellite leg that reaches 99 % of the best, give or take one; the Internet leg's 10 likewise"),
    "M-C06": (None, 1, 1.05, "ratio", "20 MB against 5 MB: slow start costs 5 MB at most 5 %; shorter files must get less than 5 MB do"),
    "M-C07": (None, 0.85, None, "ratio", "\"slight\": less than the 15 % that 0.04 % of lost data cost (M-C09)"),
    "M-C08": (None, 0, None, "points", "the sign: drop by ACK loss with data loss less drop without; two points may be chance", {"shape": (-2, None)}),
    "M-C09": (15, 8, 22, "%", "half of it either way: at 0.04 % a transfer of 10240 packets loses 4, give or take 2"),
    "M-C10": (81, 75, 86, "%", "a rate of 73 kbit/s, 54 to 100: a transfer loses 102 packets, give or take 10, and timeouts of 2 s each come in half seconds"),
    "M-C11": (2, 1.5, 2.6, "s", "the timer counts half seconds: one tick less or more"),
    "M-C12": (1.6, 1.55, 1.70, "s", "half of the last digit, and as much again for the clock's phase"),
    "M-C13": (2, 2.0, 2.1, "s", "\"slightly above 2 s\""),
    "M-C14": (243, *WITHIN(243, 0.15), "kbit/s", "15 %: the standard error of a loss count of 102 is 10 %, plus half of that. The shape is right at twice the direct connection; 3.3 times is printed", {"limits": {"over_direct": 2}}),
    "M-C15": (None, 0.9, 1.5, "ratio", "\"no dramatic gain\": less than half as much again, and no loss but by chance"),
    "M-C16": (19, 10, 30, "%", RUNS, GAIN),
    "M-C17": (13, 6, 22, "%", RUNS, GAIN),
    "M-C18": (0, -3, 3, "%", "no difference visible on the paper's curve"),
    "M-C19": (2, 1.6, 2.5, "ratio", "printed as a whole number: 1.5 to 2.5, less what touches no gain at all", FASTER),
    "M-C20": (3, 2.3, 3.7, "ratio", "printed as a whole number, a quarter either way", FASTER),
    "M-C21": (None, None, 0, "ratio", "the sign: gain at 10 % less gain at 5 %"),
    "M-C22": (1, 0.8, 1.4, "ratio", "\"vanishes\": nearer to none than to the half that would be called a gain"),
    "M-C23": (5, 5, 5, "packets", "the smallest window that repairs a single loss without a timeout, with the paper's receivers, which delay ACKs; counted"),
    "M-C24": (10, 9, 11, "packets", "the smallest window that repairs two losses in a row: W/2 - 2 >= 3; W may be odd"),
    "M-C25": (1, 1, None, "timeouts", "min number of timeouts over all windows and runs of three or more; counted"),
    "M-C26": (2, 2, 2, "RTT", "windows of 1 and 2 packets after a timeout; counted"),
    "M-C27": (2, 2, 3, "RTT", "the new sender: two round trips and the serialisation of the burst, which is less than a third while it fits the window; NewReno N, Reno with a timeout", {"shape": (2, 4)}),
    "M-C28": (3, 3, 3, "packets", "length of the burst; counted"),
    "M-C29": (3, 3, 3, "packets", "useless retransmissions 3, 4 and 8 of bursts 2-4 and 6-8; counted"),
    "M-C30": (2, 2, 2, "bursts", "the burst 2-4 is sent twice; counted"),
    "M-C31": (2, 2, 2, "packets", "useless retransmissions 3 and 6; counted"),
    "M-C32": (None, None, 0, "packets", "the max excess over (n-1)(n-2) for any number n of isolated losses"),
    "M-C33": (None, None, 1, "ratio", "recovery time over (1 + holes) round trips, the bursts' serialisation taken off; the page of the proof is missing in our copy"),
    "M-C34": (0, 0, 0, "timeouts", "counted"),
    "M-C35": (3, 2.2, 4, "ratio", RUNS),
    "M-C36": (2.8, 2.0, 3.6, "ratio", RUNS),
    "M-C37": (1.5, 1.2, 2.0, "ratio", RUNS),
    "M-C38": (25, 12, 40, "%", RUNS, GAIN),
    "M-C39": (22, 10, 35, "%", RUNS, GAIN),
    "M-C40": (14, 5, 25, "%", RUNS, GAIN),
    "M-C41": (0.60, 0.45, 0.75, "ratio", "\"well below\", as the paper's other numbers have it: SACK is 3 / 1.5 = 2 times as fast as"
              " Reno (M-C35, M-C37) and the new sender 1.14 to 1.25 times (M-C38 to C40), 1.20 / 2 = 0.60, a quarter either way."
              " The shape is right below 1", {"shape": (None, 1)}),
    "M-C42": (None, 0.98, 1.12, "ratio", "\"slightly\": less than the 14 % that the paper calls a gain elsewhere (M-C40), and no loss but by chance. The shape is right where neither is a fifth ahead", {"shape": (0.8, 1.2)}),
    "M-C43": (0.0081, 0.00805, 0.00815, "probability", ROUNDED),
    "M-C44": (23, 11, 35, "%", "gain over Reno, the one over NewReno likewise; " + RUNS, OVER_BOTH),
    "M-C45": (36, 24, 48, "%", "gain over Reno, the 16 over NewReno likewise; " + RUNS, OVER_BOTH),
    "M-C46": (45, 33, 57, "%", "gain over Reno, the 5 over NewReno likewise; " + RUNS, OVER_BOTH),
    "M-C47": (None, None, 1.10, "ratio", "\"less than 10 %\""),
    "M-C48": (None, None, 1, "ratio", "the ordering: SACK against the minimum of the others. The shape is right within a percent: none wastes more than the losses themselves", {"shape": (None, 1.01)}),
    "M-C49": (1, 1, 1, "timeouts", "counted"),
    "M-C50": (None, 1, None, "entries", "it happens with the guard off"),
}

# What the text prints of points of the figures: curve, x as printed, x, y, the claim.
POINTS = {
    "M-F04": [("modem 28.8 kbit/s", "42 packets", 42, 387, "M-C01")],
    "M-F05": [("direct", "5 MB", 5, 387, "M-C01")],
    "M-F07": [("direct", "1 %", 1, 73, "M-C10")],
    "M-F09": [("split", "1 %", 1, 243, "M-C14")],
    "M-F10": [("direct", "1 %", 1, 73, "M-C10")],
}


def main():
    papers = Path(sys.argv[1])
    out = expected.head(papers, "minei", "M", "High Speed Internet Access Through Unidirectional Geostationary Satellite Channels",
                        "I. Minei, R. Cohen", ["The statements of the text as claims, and the list of what it contains."])
    expected.write_claims(out, papers, "minei", CLAIMS)
    lines = expected.index(papers, "minei")
    expected.write_figures(out, lines["F"], POINTS)
    expected.write_items(out, lines)
    expected.finish(out, HERE / "expected.toml")


main()

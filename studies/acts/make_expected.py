#!/usr/bin/env python3
"""Writes expected.toml, the only place with the numbers of the `acts` paper.

    make_expected.py PAPERS_DIR

PAPERS_DIR holds the transcriptions of the papers, see ../expected.py; for this one `tables/table01_hosts.csv` to
`table06.csv`, `figure06_points.csv` and `text_numbers.csv`.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import expected
from expected import as_number, number, plain, text

WITHIN = lambda value, part: (value * (1 - part), value * (1 + part))
TRIALS = "the paper's own ten trials spread by 6 Mbit/s"

# Per claim: published number, min and max value that still support it, unit, derivation.
CLAIMS = {
    "A-C01": (0, 0, 0.001, "Mbit/s", "max distance of nine rates of table 2, printed to the third decimal; the tenth, the line rate of OC-3c, is a slip (A-Q02)"),
    "A-C02": (109.717, 109.717 - 5.544, 109.717 + 5.544, "Mbit/s", "as the cells of table 4: the mean within one standard deviation of the printed trials, and the standard deviation within a factor of two; shape: one of both",
              {"tolerance": "104.2-115.3"}),
    "A-C03": (115.295, *WITHIN(115.295, 0.05), "Mbit/s", "the position of the 34 ms of processing and fibre, and the phase of the timers, move a lossless transfer by some percent"),
    "A-C04": (157.088, *WITHIN(157.088, 1e-4), "Mbit/s", "a quotient, printed to five digits after rounding of its numerator"),
    "A-C05": (127.870, 121.835 - 6.035, 127.870 + 6.035, "Mbit/s", "the greater of two trials, 121.835 and 127.870: no farther from them than they are from each other"),
    "A-C06": (131.360, *WITHIN(131.360, 0.05), "Mbit/s", "as A-C03; at the printed bit error rate a Reno transfer of 1 GB loses nine packets and is far below"),
    "A-C07": (54.105, *WITHIN(54.105, 1 / 3), "Mbit/s", "within a third, also for the simulation's 49.641: the early-discard threshold and the sources' phases are not printed",
              {"limits": dict(zip(("simulation_low", "simulation_high"), WITHIN(49.641, 1 / 3))), "tolerance": "36.1-72.1 / 33.1-66.2"}),
    "A-C08": (109.717 / 119.838, 0.85, 1.15, "ratio", "satellite over LAN: two standard deviations of the trials are 12 %"),
    "A-C09": (0, 0, 10, "%", "max distance of the three maxima; " + TRIALS),
    "A-C10": (105, 95, 125, "Mbit/s", "one step of the offered load either way; at the upper step three shaped sources fill the link; shape: the same load at all three places"),
    "A-C11": (0, 0, 10, "%", "max distance of the three peaks; their ordering exactly, which is the shape"),
    "A-C12": (0, 0, 25, "%", "max distance of the three at full rate; their ordering exactly, which is the shape; as A-C07 the threshold is not printed"),
    "A-C13": (None, None, 0, "Mbit/s", "the sign: the max change from a load to the next one beyond the peak, and the steepest fall from the peak to full rate on the satellite; shape: full rate is below the peak"),
    "A-C14": (1.12, 1, None, "ratio", "min of the three (LAN, WAN, satellite); shape: one of them"),
    "A-C15": (9.813, *WITHIN(9.813, 0.15), "s", "simulated: one round trip of 18 more or less, and the serialisation, which the formula omits; the formula itself within 1 %", {"limits": {"formula_percent": 1}}),
    "A-C16": (14.5, 13.5, 15.5, "%", "one point: printed truncated"),
    "A-C17": (63.747, *WITHIN(63.747, 1e-3), "s", "a formula"),
    "A-C18": (305.2, *WITHIN(305.2, 5e-3), "s", "a formula; the half window comes from the MTU here and from the MSS elsewhere, which is 0.4 %"),
    "A-C19": (303.5, *WITHIN(303.5, 5e-3), "s", "satellite; as A-C18. WAN and LAN, 22.18 and 0.057 s, to one of the last digit: 22.18 is a slip for 22.17 (A-Q04)", {"limits": {"wan_s": 0.015, "lan_s": 0.001}}),
    "A-C20": (None, 2, None, "fast retransmits", "\"several times\": two for two losses in one window, and no timeout; counted in a run. Shape: not at the window of the peer's buffer, but below it"),
    "A-C21": (None, 3600, None, "s", "\"hours\": an hour at least. One segment per round trip from nothing to 1148 takes 613 s, twice that with delayed ACKs, so no single loss takes hours by the paper's own arithmetic"),
    "A-C22": (192, 192, 192, "cells", "cells that are useless after the loss of one; counted in a trace"),
    "A-C23": (8.2, None, 8.2, "%", "our max throughputs against the experiments': no farther off than the paper's own simulation, which the paper calls a match; shape: two of three are not"),
    "A-C24": (8.563, *WITHIN(8.563, 1e-4), "MB", "a product, printed to four digits; OC-12 likewise", {"limits": {"oc12": 1e-4}}),
    "A-C25": (None, 1, None, "ratio", "the sign, under congestion and on the noisy link; shape: one of both"),
}

TITLES = {
    2: "rate ladder of OC-3c and OC-12c",
    3: "scenario 1: ten trials, sorted",
    4: "averages of ten trials: LAN, WAN, satellite",
    5: "parameters of the simulation",
    6: "experiment against simulation: greatest throughput of the trials",
}

# How far the cells of a table may be off, and why.
SPREAD = 4.03 ** 0.5
LIMITS = {
    1: ({"rate": 0.001}, "a host's line is the SONET or the IP rate of its card, table 2"),
    2: ({"rate": 0.001}, "printed to the third decimal: half a unit of it, and as much for the rounding of what it was computed from"),
    3: ({"deviations": 1, "shape_deviations": 2}, "one standard deviation of the printed trials; shape: two, which hold 95 % of such trials"),
    4: ({"deviations": 1, "spread": SPREAD, "rtt_part": 0.0005, "rtt_ms": 0.05}, "means: one standard deviation of the printed trials; shape: the places are in the printed order. Standard deviations: a factor of 2.0, the 95 % range of the ratio of two samples of ten (F distribution, 4.03). Round trips: printed to three digits, the LAN's to one"),
    5: ({"exact": 1e-6}, "read from the resolved scenarios"),
    6: ({"lossless": 0.05, "congested": 1 / 3}, "the experiment of scenario 1: as A-C03; the simulation of scenario 3: as A-C07; error: not above the printed one"),
}


def hosts(folder):
    for host in expected.read_csv(folder / "table01_hosts.csv"):
        for column in ("site", "nic", "architecture", "clock_MHz", "os"):
            unit = "MHz" if column == "clock_MHz" else ""
            yield host["name"], column.removesuffix("_MHz"), host[column], unit, ""


def cells(folder, n):
    """Only what is printed: what the transcription recomputed is ours to compute."""
    for cell in expected.read_csv(folder / f"table{n:02}.csv"):
        if "recomputed" in cell["statistic"] or (n == 3 and not cell["row"].isdigit()):
            continue
        row, column = {
            3: (f"trial {cell['row']}", "throughput"),
            6: (cell["variant"], cell["statistic"].removesuffix(" (max over trials)").removesuffix(" printed")),
        }.get(n, (cell["statistic"], cell["variant"]))
        if n == 6:
            cell["note"] = ", ".join(x for x in (f"BER {cell['ber']}", cell["note"]) if x)
        yield row, column, cell["value"], cell["unit"], cell["note"]


def points(folder):
    for point in expected.read_csv(folder / "figure06_points.csv"):
        load = as_number(point["offered_load"].split()[0])
        yield point["environment"], point["offered_load"], load, float(point["aggregate_throughput_Mbps"]), point["note"]


def main():
    papers = Path(sys.argv[1])
    folder = papers / "acts" / "tables"
    out = expected.head(papers, "acts", "A",
                        "Experiments and Simulations of TCP/IP over ATM over a High Data Rate Satellite Channel",
                        "C. P. Charalambos, G. Y. Lazarou, V. S. Frost, J. Evans, R. Jonkman",
                        ["Tables 1 to 6 as printed, the points that figure 6 names, the numbers of the text."])
    lines = expected.index(papers, "acts")
    expected.write_table(out, "T01", "workstations", hosts(folder), LIMITS[1])
    for n, title in TITLES.items():
        expected.write_table(out, f"T{n:02}", title, cells(folder, n), LIMITS[n])
    for printed in expected.read_csv(folder / "text_numbers.csv"):
        out += ["[[number]]", f"id = {text(printed['id'])}", f"text = {text(printed['quantity'])}",
                f"printed = {text(printed['value'])}"]
        value = as_number(printed["value"])
        out += [f"value = {number(value, 9)}"] if value is not None else []
        rest = (("unit", "unit"), ("conditions", "conditions"), ("note", "derivation_or_check"), ("section", "section"))
        out += [f"{key} = {text(plain(printed[column]))}" for key, column in rest if printed[column]] + [""]
    expected.write_claims(out, papers, "acts", CLAIMS)
    expected.write_figures(out, lines["F"], points={"A-F06": list(points(folder))})
    expected.write_items(out, lines)
    expected.finish(out, HERE / "expected.toml")


main()

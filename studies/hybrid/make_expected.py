#!/usr/bin/env python3
"""Writes expected.toml, the only place with the numbers of the `hybrid` paper.

    make_expected.py PAPERS_DIR

PAPERS_DIR holds the transcriptions of the papers, see ../expected.py; for this one `tables/parameters.csv`. The paper
has no numbered tables, and its curves print no numbers.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import expected

SIGN = "the sign"

# Per claim: published number, min and max value that still support it, unit, derivation.
CLAIMS = {
    "H-C01": (None, -20, 20, "%", "max distance for beta <= 2, signed: the paper calls the agreement good and prints no number; the model leaves out slow start and timeouts"),
    "H-C02": (None, 1, None, "ratio", SIGN),
    "H-C03": (None, 0.95, 1, "R²", "concave, and a straight line over ln B explains all but a twentieth, which is the shape"),
    "H-C04": (0.9, 0.895, 0.905, "ratio", "1 - p at p = 0.1, to half of the second digit; and the points below saturation by Eq. 52 lie on a straight line over B, R² 0.99; shape: one of both", {"limits": {"rising": 0.8, "straight": 0.99}}),
    "H-C05": (None, 0, None, "ratio", SIGN + ": drop over p at the longer T2 less drop at the shorter"),
    "H-C06": (0.4, 0.3, 0.6, "beta/(1+2 alpha)", "one printed digit, read off a curve of a damaged scan"),
    "H-C07": (2, 1.5, 2.5, "BDP", "\"about 2\": one printed digit"),
    "H-C08": (None, 1 - 0.017, 1 + 0.017, "ratio", "growth of the buffer over that of x ln x: beside nu ln x = 2.70 at 1000 packets Eq. 55 drops (1-p)/4 - nu ln 2 = -0.046, which is 1.7 %, and less at a hundred times the pipe"),
    "H-C09": (1, 1 - 1e-5, 1 + 1e-5, "ratio", "growth of the buffer over that of x: Eq. 52 is linear, to five digits"),
    "H-C10": (None, 0, 2, "%", "max change of the throughput between five or more transmissions and twenty: with five the residual loss is p^5 = 1e-5; and twenty carry twice as much as one. Shape: it settles at ten", {"limits": {"rise": 2}}),
    "H-C11": (None, 0, None, "ratio", SIGN + ": drop of E2E less drop of splitting"),
    "H-C12": (0, 0, 0, "violations", "counted if the excess is larger than the 95 % interval of the runs, which is at most a fifth either way; and the minimum end to end is within 20 %, as H-C01, of the value for independent losses. Shape: no violations", {"limits": {"lower_end_percent": 20, "widest_percent": 20}}),
    "H-C13": (None, 0, None, "1/connection", SIGN),
    "H-C14": (None, 0, 10, "%", "\"hardly\": what one packet of buffer in ten per connection is worth; shape: so much at most by a straight line through the points"),
    "H-C15": (0, 0, 0.15, "ratio", "of the peak; \"about 0\" on a curve whose grid is 0.1; shape: with another round trip, which the paper does not print"),
    "H-C16": (2, 2, 2, "kinds", "overflows that hit one connection, and overflows that hit both; counted"),
    "H-C17": (0, 0, 0, "timeouts", "counted"),
    "H-C18": (0.0091, 0.00905, 0.00915, "probability", "half of the last digit"),
    "H-C19": (5.6, None, 5.65, "%", "the largest relative error over the stated range, to half of its last digit; shape: it falls as k grows"),
    "H-C20": (1e-5, 10**-5.5, 10**-4.5, "BER", "p = 0.1; \"about\" a power of ten: half a decade; p = 0.5 about 1e-4 likewise; shape: one of both", {"limits": {"many_low": 10**-4.5, "many_high": 10**-3.5}}),
    "H-C21": (None, 1, None, "ratio", "simulation over model, minimum"),
}

# Items of which the paper says what must come out: the same columns.
COMPARED = {
    "H-E14": (None, -20, 20, "%", "as H-C01: the model has S, the paper runs S = 1 only"),
}


def parameters(folder):
    for line in expected.read_csv(folder / "parameters.csv"):
        note = ", ".join(x for x in (line["used_in"], line["note"]) if x)
        yield line["quantity"], "value", line["value"], line["unit"], note


def main():
    papers = Path(sys.argv[1])
    out = expected.head(papers, "hybrid", "H",
                        "Performance Modelling of TCP Enhancements in Terrestrial-Satellite Hybrid Networks",
                        "J. Zhu, S. Roy, J. H. Kim",
                        ["Its parameters, the statements of the text as claims, and the list of what it contains."])
    lines = expected.index(papers, "hybrid")
    expected.write_table(out, "T01", lines["T"][0][1], parameters(papers / "hybrid" / "tables"))
    expected.write_claims(out, papers, "hybrid", CLAIMS)
    expected.write_figures(out, lines["F"])
    expected.write_items(out, lines, COMPARED)
    expected.finish(out, HERE / "expected.toml")


main()

"""Shared by the scripts that write `studies/<paper>/expected.toml`.

The transcriptions of the papers are outside the repository: per paper `claims.csv` (statements with value and
tolerance) and `tables/`, and for all of them `index.csv` (each topology, mechanism, experiment, table, figure, claim
and decision with its id) and `INDEX.md` (how many of each). The output is committed, so that a build needs none
of them. The scripts need only Python's standard library.
"""

import csv
import json
import re
from pathlib import Path

KINDS = {"N": "topology", "M": "mechanism", "E": "experiment", "T": "table", "F": "figure", "C": "claim", "Q": "decision"}

# The transcriptions refer to notes and calculations outside this repository.
PLAIN = [
    (r"\s*\(see SPEC\)", ""),
    (r"full protocol, see SPEC section 4", "the full protocol"),
    (r"SPEC section 3", "selective repeat"),
    (r"SPEC section 4, check_model\.py", "the formulas were derived anew and evaluated"),
    (r"SPEC section 4", "the sender of section 5.2"),
    (r"missing page; see decisions", "a page is missing in our copy: M-Q06"),
    (r"exact only with the in-burst rule, see Q", "exact only with the in-burst rule, M-Q08"),
    (r"; expected NOT reproducible", "; not expected to come out"),
    (r"^expected NOT reproducible", "not expected to come out"),
    (r"Reno oracle 135\.7 lossless", "a Reno model gives 135.7 without loss"),
    (r"in the lossless oracle", "without loss"),
    (r"^oracle: ", "a lossless model gives: "),
    (r"\(oracle ", "(a lossless model gives "),
    (r"^oracle within", "a lossless model within"),
    (r"^oracle insensitive", "the results hardly depend on it"),
    (r"in our scratch simulator", "in a packet-level check"),
    (r"the scratch Reno shows", "a packet-level check shows"),
    (r", known points in .*", ""),
    (r"^known points in .*", ""),
    (r"^Model unit test against model_values\.csv", "The model's values, checked point by point"),
    (r"^E\[max\] unit test against emax_values\.csv", "E[max], checked point by point"),
]
# Notes of the index on what is to be done with a line; they say nothing about the paper.
NO_DETAIL = {"", "-", "regenerate", "documentation", "documentation figure", "reproduce and compare", "unit tests",
             "generate from trace", "our pseudo-code", "documentation or trace", "documentation + unit test"}


def plain(words):
    for pattern, replacement in PLAIN:
        words = re.sub(pattern, replacement, words)
    return words.strip()


def text(x):
    return json.dumps(x, ensure_ascii=False)


def number(x, digits=6):
    shown = f"{x:.{digits}g}"
    return shown if any(c in shown for c in ".e") else shown + ".0"


def as_number(words):
    """The number that a cell holds, or None."""
    try:
        return float(words)
    except ValueError:
        return None


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def head(papers, key, letter, title, authors, comment):
    """The opening of the file: what it is, and how many of each kind there are."""
    counts = re.search(rf"^\| {key} \|(.*)\|$", (papers / "INDEX.md").read_text(), re.M).group(1).split("|")
    names = list(KINDS.values())
    *by_kind, total = (int(count) for count in counts)
    assert sum(by_kind) == total, key
    return [
        f"# The published values of the `{key}` paper:",
        f"# {authors}: {title}.",
        *(f"# {line}" for line in comment),
        "# Made by make_expected.py from a transcription of the paper. Do not edit: change the script.",
        "",
        f"key = {text(key)}",
        f"letter = {text(letter)}",
        f"title = {text(title)}",
        f"authors = {text(authors)}",
        f"counts = {{ {', '.join(f'{name} = {count}' for name, count in zip(names, by_kind))} }}",
        "",
    ]


def index(papers, key):
    """The lines of one paper by kind: {"N": [(id, what, detail)], ..}."""
    lines = {kind: [] for kind in KINDS}
    for line in read_csv(papers / "index.csv"):
        if line["paper"] == key:
            detail = line["acceptance"].strip()
            detail = "" if detail in NO_DETAIL else plain(detail)
            lines[line["id"][2]].append((line["id"], plain(line["item"]), detail))
    return lines


def shape_of(bounds):
    """Least and greatest value that have the paper's size or ordering, as an inline table."""
    return f"shape = {{ {', '.join(f'{k} = {number(x)}' for k, x in zip(('low', 'high'), bounds) if x is not None)} }}"


def write_claims(out, papers, key, numbers):
    """`numbers`: per claim the published number, least and greatest value that still bears it out (None: no bound, or
    no number printed), unit of the three, where the tolerance comes from, and if there is more a table: `shape`, least and
    greatest value that still have the size or the ordering, `limits`, bounds of what else the claim states, and `tolerance`
    in words, if the transcription's are not those of the bounds."""
    claims = read_csv(papers / key / "claims.csv")
    assert [c["claim_id"] for c in claims] == list(numbers), "claims and their numbers"
    for claim in claims:
        value, low, high, unit, why, *more = numbers[claim["claim_id"]]
        more = more[0] if more else {}
        assert low is not None or high is not None, (claim["claim_id"], "a claim without bounds cannot fail")
        out += ["[[claim]]", f"id = {text(claim['claim_id'])}"]
        if not claim["value"] and key == "transat":
            # Where only one of the two columns is filled, it is the numbers.
            claim["value"], claim["conditions"] = claim["conditions"], "four flows"
        if claim["tolerance"].startswith("report"):
            # The transcription leaves these to be reported. They have bounds, so they are judged by them.
            claim["tolerance"] = why
        # What is shown as allowed has to be what is allowed.
        claim["tolerance"] = more.get("tolerance", claim["tolerance"])
        columns = [("text", "description"), ("metric", "metric"), ("conditions", "conditions"), ("printed", "value"),
                   ("tolerance", "tolerance"), ("source", "source")]
        out += [f"{name} = {text(plain(claim[column]))}" for name, column in columns]
        numbers_of = [("value", value), ("low", low), ("high", high)]
        out += [f"{name} = {number(x)}" for name, x in numbers_of if x is not None]
        out += [shape_of(more["shape"])] if "shape" in more else []
        limits = ", ".join(f"{name} = {number(x)}" for name, x in more.get("limits", {}).items())
        out += [f"limits = {{ {limits} }}"] if limits else []
        out += [f"unit = {text(unit)}", f"derivation = {text(why)}", ""]


def write_table(out, name, title, cells, limits=None):
    """`cells`: (row, column, value as printed, unit, note). `limits`: how far ours may be off, by name, and why."""
    out += [f"[table.{name}]", f"title = {text(title)}"]
    if limits:
        bounds, why = limits
        out += [f"limits = {{ {', '.join(f'{key} = {number(x)}' for key, x in bounds.items())} }}", f"derivation = {text(why)}"]
    out += ["cells = ["]
    for row, column, printed, unit, note in cells:
        value = as_number(printed)
        parts = [f"row = {text(row)}", f"column = {text(column)}", f"printed = {text(printed)}"]
        parts += [f"value = {number(value, 9)}"] if value is not None else []
        parts += [f"{key} = {text(x)}" for key, x in (("unit", unit), ("note", note)) if x]
        out.append(f"    {{ {', '.join(parts)} }},")
    out += ["]", ""]


def write_figures(out, lines, points=None, values=None):
    """`points`: per figure what can be read off it; `values`: other numbers that it prints."""
    for figure, what, detail in lines:
        out += ["[[figure]]", f"id = {text(figure)}", f"title = {text(what)}"]
        out += [f"detail = {text(detail)}"] if detail else []
        if values and values.get(figure):
            out += [f"values = {{ {', '.join(f'{k} = {number(v)}' for k, v in values[figure].items())} }}"]
        if points and figure in points:
            out.append("points = [")
            for curve, at, x, y, note in points[figure]:
                parts = [f"curve = {text(curve)}", f"at = {text(at)}"] + ([f"x = {number(x)}"] if x is not None else [])
                parts += [f"y = {number(y)}"] + ([f"note = {text(note)}"] if note else [])
                out.append(f"    {{ {', '.join(parts)} }},")
            out.append("]")
        out.append("")


def write_items(out, lines, compared=None):
    """Topologies, mechanisms and experiments, then what was decided where the paper is silent or at odds with itself.
    `compared`: for items of which the paper says without a claim what must come out, the same as `numbers` of a claim."""
    compared = compared or {}
    for kind in "NME":
        for item, what, detail in lines[kind]:
            out += ["[[item]]", f"id = {text(item)}", f"kind = {text(KINDS[kind])}", f"text = {text(what)}"]
            out += [f"detail = {text(detail)}"] if detail else []
            if item in compared:
                value, low, high, unit, why, *more = compared[item]
                assert low is not None or high is not None, (item, "what has no bounds cannot fail")
                of = [f"{name} = {number(x)}" for name, x in (("value", value), ("low", low), ("high", high)) if x is not None]
                of += [shape_of(more[0]["shape"])] if more else []
                out.append(f"expected = {{ {', '.join([*of, f'unit = {text(unit)}', f'derivation = {text(why)}'])} }}")
            out.append("")
    for decision, what, reason in lines["Q"]:
        out += ["[[decision]]", f"id = {text(decision)}", f"text = {text(what)}"]
        out += ([f"reason = {text(reason)}"] if reason else []) + [""]


def finish(out, path):
    whole = "\n".join(out)
    left = re.findall(r".*(?:\bSPEC\b|oracle|scratch|\.csv|\.py\b(?! from)).*", whole)
    assert not left, left
    Path(path).write_text(whole)

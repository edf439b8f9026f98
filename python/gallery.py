"""Draws docs/explanation/gallery/*.svg, the pictures of docs/explanation/gallery.md. usage: python python/gallery.py [FOLDER]"""

import pathlib
import sys

import matplotlib

import bentpipe as bp

matplotlib.use("Agg")
# The same bytes on every run: no date, no random names. Text stays text, which is smaller than outlines.
matplotlib.rcParams.update({"svg.hashsalt": "bentpipe", "svg.fonttype": "none", "path.simplify": True, "figure.max_open_warning": 0})

LOSSES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)


def figures():
    """Names and figures, in the order of the page."""
    one, faded = bp.run("geo"), bp.run("transat-bursts")
    yield "sequence", bp.plots.sequence(one).figure
    yield "cwnd", bp.plots.cwnd(one).figure
    yield "queue", bp.plots.queue(one).figure
    yield "rtt", bp.plots.rtt(one).figure
    yield "throughput", bp.plots.throughput(faded).figure
    yield "fades", bp.plots.fades(faded).figure
    runs = bp.compare("geo-bursts", ["sack", "newreno", "linux-cubic", "bbr"], runs=40, set={"flows.download.bytes": "50 MB"})
    yield "completion", bp.plots.completion(runs).figure
    yield "box", bp.plots.box(runs).figure

    def over_loss(variant: str):
        small = {"flows.download.bytes": "20 MB"}
        return {loss: bp.replicate("geo", 11, variant=variant, set={**small, "links.sat.loss": f"{100 * loss:g} %"}) for loss in LOSSES}

    yield "goodput-against-loss", bp.plots.goodput_against_loss({name: over_loss(name) for name in ("sack", "linux-cubic", "bbr")}).figure
    many = bp.run("geo", set={"flows.download.count": 30, "flows.download.bytes": "2 MB"})
    yield "fairness", bp.plots.fairness(many).figure


def main() -> None:
    default = pathlib.Path(__file__).parents[1] / "docs/explanation/gallery"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures():
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()

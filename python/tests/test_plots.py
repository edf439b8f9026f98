"""Plots: units and counts are right, and nothing is hidden."""

import io

import numpy as np
import pytest
from matplotlib import colors, pyplot

import bentpipe as bp
from bentpipe.plots import _style

PLOTS = {
    "sequence": (bp.plots.sequence, "time (s)", "sequence number (MB)"),
    "cwnd": (bp.plots.cwnd, "time (s)", "window (MB)"),
    "queue": (bp.plots.queue, "time (s)", "queue (packets)"),
    "rtt": (bp.plots.rtt, "time (s)", "round trip (ms)"),
    "throughput": (bp.plots.throughput, "time (s)", "goodput (Mbit/s)"),
    "fades": (bp.plots.fades, "time (s)", "error bursts"),
}


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def legend(ax) -> str:
    return "\n".join(text.get_text() for text in ax.get_legend().get_texts())


def pixels(figure, colour: str) -> np.ndarray:
    """Where the figure, drawn at 100 dots per inch, has this colour or nearly."""
    figure.set_dpi(100)
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    return (np.abs(drawn - np.array([round(255 * part) for part in colors.to_rgb(colour)])) < 60).all(axis=2)


@pytest.mark.parametrize("name", PLOTS)
def test_axes_are_the_ones_given_and_have_units(name, faded):
    draw, x, y = PLOTS[name]
    ax = pyplot.figure().subplots()
    assert draw(faded, ax=ax) is ax
    assert ax.get_xlabel() == x
    # The transfer of this scenario has 1 MB or less.
    assert ax.get_ylabel().split(" (")[0] == y.split(" (")[0]
    assert "(" in ax.get_ylabel() or name == "fades"


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_output_is_vectors(ending, faded):
    file = io.BytesIO()
    bp.plots.overview(faded).savefig(file, format=ending)
    assert b"<image" not in file.getvalue() and b"/Subtype /Image" not in file.getvalue()
    assert len(file.getvalue()) < 1_000_000


def test_many_losses_do_not_look_like_all():
    # Slow start overshoots the queue: 1429 of 6850 segments, including retransmissions, are lost.
    lossy = bp.run("geo")
    drops = lossy.trace("drops")
    lost = np.count_nonzero(drops["forward"].astype(bool))
    sent = lossy.flow().segments
    assert lost > 1000 and lost / sent < 0.2
    ax = bp.plots.sequence(lossy)
    assert f"lost ({lost}," in legend(ax)
    ax.get_legend().remove()
    # No bar of losses is as high as the strip: at most half of the packets offered at a time are lost, because the queue is served at
    # 20 Mbit/s while slow start sends 40. A tenth more allows for the edges of the intervals.
    (strip,) = (drawn for drawn in ax.collections if drawn.get_label().startswith("lost"))
    heights = [1 - path.vertices[:, 1].min() for path in strip.get_paths()]
    assert max(heights) < 0.6 * _style.STRIP
    # The sent segments are visible for the whole time of the losses.
    blue = pixels(ax.figure, _style.BLUE).any(axis=0)
    left, right = (ax.transData.transform((edge, 0))[0] for edge in (drops["time_s"].min(), drops["time_s"].max()))
    assert blue[int(left) : int(right)].mean() > 0.95


def test_the_strip_of_losses_is_at_the_upper_edge():
    # Its background lay between 0.92 and 1 of the data: packets, or megabytes.
    for ax in (bp.plots.sequence(bp.run("geo")), bp.plots.queue(bp.run("geo"))):
        (strip,) = (patch for patch in ax.patches if colors.to_hex(patch.get_facecolor()) == "#f3f3f3")
        ax.figure.canvas.draw()
        inside, outside = strip.get_window_extent(), ax.get_window_extent()
        assert inside.y1 == pytest.approx(outside.y1) and inside.height == pytest.approx(_style.STRIP * outside.height)


def test_a_fade_is_at_least_a_pixel_wide():
    # 150 ms of 350 s are 0.2 of a pixel of a picture whose axis is 470 wide.
    bursts = {"schedule": [["100 s", "150 ms"], ["220 s", "150 ms"]], "loss": "100 %"}
    sat = bp.Link("sat", ("server", "client"), rate="2 Mbit/s", delay="275 ms", forward={"queue": "50 packets", "bursts": bursts})
    result = bp.run(bp.scenario("two-fades", links=[sat], flows=[bp.Flow("download", "server", "client", bytes="80 MB")]))
    assert result.end_s > 300
    ax = bp.plots.fades(result, ax=pyplot.figure(figsize=(6, 2)).subplots())
    assert "sat/forward\n2 bursts" in ax.get_yticklabels()[0].get_text()
    ax.grid(False)
    box = ax.get_window_extent()
    white = pixels(ax.figure, "#FFFFFF")[:, int(box.x0) + 3 : int(box.x1) - 3]
    height = white.shape[0] - int((box.y0 + box.y1) / 2)
    columns = np.flatnonzero(~white[height])
    # Two bands, each of a pixel or two, no nearer to white than to black.
    assert 2 <= len(columns) <= 6 and columns[-1] - columns[0] > 100


def test_thirty_flows_are_thirty_and_more_are_counted():
    def flows(count: int) -> bp.Result:
        return bp.run("geo", set={"flows.download.count": count, "flows.download.bytes": "200 kB"})

    ax = bp.plots.throughput(flows(30))
    assert len(ax.patches) == 30 and "30 flows" in legend(ax)
    ax = bp.plots.throughput(flows(34))
    assert len(ax.patches) == 30
    assert any("30 of 34 flows" in text.get_text() for text in ax.texts)
    ax = bp.plots.fairness(flows(120))
    assert len(ax.patches) == 100 and any("100 of 120 flows" in text.get_text() for text in ax.texts)


def test_data_of_quic_is_drawn():
    # It was a flat line, and an empty graph.
    result = bp.run("geo-quic", set={"flows.download.bytes": "2 MB"})
    (curve,) = bp.plots.throughput(result).patches
    data = curve.get_data()
    # In Mbit/s. The request is a few bytes more.
    assert (data.values * np.diff(data.edges)).sum() * 1e6 / 8 == pytest.approx(2e6, rel=0.001)
    ax = bp.plots.sequence(result)
    lines = {line.get_label().split(" (")[0]: np.asarray(line.get_ydata()) for line in ax.lines}
    # Segments have some 1300 bytes.
    assert "sent (0 " not in legend(ax) and "window" not in lines
    assert 1.99 < lines["sent"].max() <= 2.0 and 1.99 < lines["ACK"].max() <= 2.0
    assert (np.diff(lines["ACK"]) >= 0).all()


def test_flows_without_goodput_are_not_called_shares():
    with pytest.raises(ValueError, match="no flow has a goodput"):
        bp.plots.fairness(bp.run("geo", set={"links.sat.loss": "100 %", "time_limit": "20 s"}))


def test_datagrams_have_no_goodput_over_time():
    with pytest.raises(ValueError, match="`cbr` is UDP"):
        bp.plots.throughput(bp.run("transat-cbr"), ["cbr"])


def test_an_overview_has_the_queue_of_its_flow():
    slow, fast = (
        bp.Link(name, (f"{name}-from", f"{name}-to"), rate=rate, delay="20 ms", queue="7 packets") for name, rate in (("slow", "1 Mbit/s"), ("fast", "2 Mbit/s"))
    )
    flows = [bp.Flow(link.name, *link.between, bytes="100 kB") for link in (slow, fast)]
    result = bp.run(bp.scenario("two", links=[slow, fast], flows=flows))
    queue = bp.plots.overview(result, "fast").axes[2]
    assert queue.get_title() == "queue of fast/forward"
    assert [line.get_ydata()[0] for line in queue.lines if line.get_label() == "limit"] == [7]


def test_a_leg_is_not_measured_by_the_whole_path():
    split = bp.run("geo-gateway", set={"flows.download.bytes": "1 MB"})
    labels = [line.get_label() for draw in (bp.plots.cwnd, bp.plots.rtt) for line in draw(split).lines]
    assert labels and not any(label.startswith(("bandwidth-delay", "propagation")) for label in labels)


def test_goodput_stays_below_the_limit():
    # Also when the ACK jumps over a repaired hole: an interval of 0.1 s has at most one packet of 1500 B more than the link rate.
    result = bp.run("geo")
    ax = bp.plots.throughput(result, interval_s=0.1)
    (curve,) = ax.patches
    limit = result.outlook[0]["limit_goodput_bit_s"] / 1e6
    values = curve.get_data().values
    assert limit * 0.99 < values.max() <= limit + 1500 * 8 / 0.1 / 1e6
    # No data is left out.
    assert values.sum() * 0.1 == pytest.approx(10e6 * 8 / 1e6)


def test_data_that_comes_twice_is_no_goodput(faded):
    packets = faded.trace("packets")
    arrived = (packets["event"] == "received") & (packets["at"] == "data/receiver")
    assert np.nansum(packets["len"].astype(float)[arrived]) > faded.flow().bytes
    (curve,) = bp.plots.throughput(faded, interval_s=1.0).patches
    values = curve.get_data().values
    assert values.sum() == pytest.approx(faded.flow().bytes * 8 / 1e6, rel=1e-9)


def test_no_peak_is_lost():
    x = np.arange(100_000) / 1000.0
    y = np.ones_like(x)
    y[77_777] = 9.0
    kept_x, kept_y = _style.envelope(x, y)
    assert len(kept_x) <= 4 * (_style.CELLS + 1) and kept_y.max() == 9.0 and (np.diff(kept_x) >= 0).all()


def test_completion_counts_those_that_did_not_finish():
    # Some of these transfers meet a fade and are late.
    runs = bp.replicate("geo-bursts", runs=30, set={"flows.download.bytes": "20 MB", "time_limit": "20 s"})
    finished = np.count_nonzero(np.isfinite(runs.values("time_s").astype(float)))
    assert 0 < finished < 30
    ax = bp.plots.completion(runs)
    assert f"({finished} of 30 finished)" in legend(ax)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(finished / 30)
    assert f"{finished} of 30" in bp.plots.box(runs).get_xticklabels()[0].get_text()


def test_boxes_count_those_that_did_not_finish():
    # 16 of 20 runs finish within 22 s with SACK, one with NewReno: its median is not among the finished ones.
    runs = bp.compare("geo-bursts", ["sack", "newreno"], runs=20, set={"flows.download.bytes": "20 MB", "time_limit": "22 s"})
    medians = runs.medians()["median"]
    assert medians[0] < 22 and medians[1] == np.inf
    ax = bp.plots.box(runs)
    drawn = [line.get_ydata() for line in ax.lines if line.get_color() == _style.VERMILION]
    assert drawn[0][0] == medians[0] and drawn[1][0] > ax.get_ylim()[1]


def test_a_plot_of_runs_refuses_a_single_run(faded):
    with pytest.raises(TypeError, match="of the Runs that replicate and compare return, not of a Result"):
        bp.plots.completion(faded)


def test_goodput_against_loss_has_curve_and_limit():
    points = {loss: bp.replicate("geo", 3, set={"links.sat.loss": f"{100 * loss:g} %"}) for loss in (0.0, 0.001, 0.01)}
    ax = bp.plots.goodput_against_loss({"sack": points})
    assert "Padhye" in legend(ax) and "limit of the links" in legend(ax)
    assert any("without loss" in text.get_text() for text in ax.texts)
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_udp_has_no_window():
    with pytest.raises(ValueError, match="is UDP"):
        result = bp.run("transat-cbr")
        udp = next(flow["name"] for flow in result.summary["flows"] if flow["variant"] is None)
        bp.plots.cwnd(result, udp)


def test_what_changes_is_drawn_as_an_average():
    for name, suffix in [("geo", ""), ("starlink", ", on average")]:
        result = bp.run(name, set={"flows.download.bytes": "2 MB"})
        assert f"limit of the links{suffix}" in legend(bp.plots.throughput(result)).splitlines()
        assert f"propagation{suffix}" in legend(bp.plots.rtt(result)).splitlines()


@pytest.mark.parametrize("name", ["sequence", "cwnd", "queue", "rtt", "throughput", "fades", "overview", "fairness"])
def test_a_plot_of_a_run_refuses_several(name):
    runs = bp.replicate("geo", 1, set={"flows.download.bytes": "100 kB"})
    with pytest.raises(TypeError, match="of the Result that run returns, not of a Runs"):
        getattr(bp.plots, name)(runs)
    assert not pyplot.get_fignums(), "no empty figure is left"

"""Tables, read by each of the libraries that users have. The reference is the command's trace."""

import csv
import subprocess
import sys

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import bentpipe as bp


def test_every_reader_sees_the_same(faded):
    # Some packets are dropped, so that text is missing in some columns.
    packets = faded.trace("packets")
    frame = packets.to_pandas()
    arrow = pyarrow.table(packets)
    data = polars.DataFrame(packets)
    (rows,) = duckdb.sql("select count(*) from arrow where event = 'sent'").fetchall()[0]
    assert len(frame) == arrow.num_rows == data.height == len(packets) > 2000
    assert rows == (frame["event"] == "sent").sum() == data.filter(polars.col("event") == "sent").height
    for column in packets.columns:
        here = packets[column]
        there = np.array([value if value is not None else (np.nan if here.dtype == float else None) for value in arrow[column].to_pylist()])
        if here.dtype.kind == "f":
            np.testing.assert_array_equal(here, there.astype(float))
        else:
            assert here.tolist() == there.tolist(), column


def test_arrow_is_read_without_a_copy(short):
    rtt = short.trace("rtt")
    one, two = (pyarrow.table(rtt)["rtt_s"].chunk(0).buffers()[1].address for _ in range(2))
    # Two readers, the same memory.
    assert one == two


def test_events_are_those_of_the_command(short, tmp_path):
    trace = tmp_path / "trace.csv"
    command = ["run", "geo", "--set", "flows.download.bytes=1 MB", "--trace", str(trace)]
    subprocess.run([sys.executable, "-m", "bentpipe", *command], capture_output=True, check=True)
    with trace.open() as file:
        rows = list(csv.DictReader(file))
    events = short.trace("events")
    assert events.columns == list(rows[0])
    assert len(events) == len(rows)
    for column in ("time_ns", "who", "event", "seq", "cwnd", "rtt_ns", "queue_packets", "sack"):
        ours = ["" if value is None else value for value in pyarrow.table(events)[column].to_pylist()]
        assert [str(value) for value in ours] == [row[column] for row in rows], column


def test_packets_are_conserved(faded):
    packets = faded.trace("packets").to_pandas()
    links = faded.links.to_pandas().set_index("link")
    for link, seen in packets[packets["event"].isin(["offered", "delivered", "dropped"])].groupby("at"):
        counts = seen["event"].value_counts()
        of_link = links.loc[link]
        assert counts["offered"] == of_link["offered_packets"]
        assert counts["delivered"] == of_link["delivered_packets"]
        assert counts.get("dropped", 0) == of_link[[name for name in links.columns if name.startswith("dropped_")]].sum()


def test_drops_are_the_dropped_packets(faded):
    packets, drops = faded.trace("packets").to_pandas(), faded.trace("drops").to_pandas()
    # Segments at the ends have no length on the wire, so the lengths are floats.
    dropped = packets[packets["event"] == "dropped"].reset_index(drop=True)
    pandas.testing.assert_frame_equal(dropped, drops, check_dtype=False)
    assert len(drops) > 0


def test_windows_and_samples_are_of_the_sender(short):
    windows, rtt = short.trace("windows"), short.trace("rtt")
    sender = windows["at"] == "download/sender"
    assert sender.sum() > 300
    assert rtt["rtt_s"].min() >= 0.6  # the propagation delay of the scenario
    assert windows["flight_bytes"][sender].max() <= short.flow().max_flight_bytes
    # ssthresh is unlimited until the first loss, and there is no loss.
    assert np.isnan(windows["ssthresh_bytes"][sender]).all()


def test_bursts_are_where_packets_are_lost(faded):
    bursts, drops = faded.trace("bursts"), faded.trace("drops")
    lost = drops["time_s"][drops["reason"] == "channel"]
    starts, ends = bursts["start_s"], bursts["end_s"]
    # A packet is lost if any of it met the burst: it was on the line for its transmission, and then on its way. So a loss is
    # seen at most a second after a burst: 0.3 s of propagation and 6 ms of 1500 B at 2 Mbit/s are less.
    assert len(lost) > 0
    assert all(((starts - 1 <= time) & (time <= ends + 1)).any() for time in lost)
    assert (ends > starts).all() and (starts[1:] >= ends[:-1]).all()


def test_an_unknown_name_lists_those_that_there_are(short):
    with pytest.raises(ValueError, match="expected one of windows"):
        short.trace("window")
    with pytest.raises(KeyError, match="time_s"):
        short.flows["time"]


def test_meanings_have_units(short):
    for table in (short.flows, short.links, short.trace("packets"), short.trace("windows"), short.trace("queue"), short.trace("bursts")):
        for column in table.columns:
            meaning = table.meaning(column)
            assert meaning, column
            for ending, unit in (("_s", "econd"), ("_bytes", "bytes"), ("_bit_s", "bit/s")):
                if column.endswith(ending) and not column.startswith("longest") and column != "case":
                    assert unit in meaning.lower() or "bit/s" in meaning, f"{column}: {meaning}"


def test_tables_of_results(short):
    assert short.flows["time_s"][0] == short.flow().time_s
    assert polars.DataFrame(short).height == 1
    assert short.channels.to_pandas().empty
    assert len(bp.run("slacp-geo").channels) > 0

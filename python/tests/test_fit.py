"""Paths from captures and logs of pings."""

import subprocess
import sys

import numpy as np
import pytest

import bentpipe as bp


def test_a_capture_of_the_simulator_gives_its_path_back(tmp_path):
    command = [sys.executable, "-m", "bentpipe", "run", "geo", "--pcap", "geo.pcapng"]
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    found = bp.fit(tmp_path / "geo.pcapng")
    assert (found.source, found.about["near"]) == ("transfer", "sender")
    for name, truth in {"rate": 20e6, "base_round_trip": 0.6}.items():
        figure = found.estimates[name]
        assert figure["kind"] == "measured" and figure["low"] <= truth <= figure["high"], (name, figure)
    assert found.losses["probability"]["kind"] == "at-most"
    assert len(found.round_trips) > 100 and np.all(np.diff(found.round_trips["time_s"]) > 0.0)
    assert "rtt_s" in found.round_trips.columns and found.notes == list(found.notes)
    # The scenario runs, and is about as fast.
    again = bp.run(found.scenario).flow()
    assert again.time_s is not None


def test_what_cannot_be_used_says_why(tmp_path):
    with pytest.raises(bp.RunError, match="none.pcap"):
        bp.fit(tmp_path / "none.pcap")
    empty = tmp_path / "empty.txt"
    empty.write_text("nothing\n")
    with pytest.raises(ValueError, match="empty.txt"):
        bp.fit(str(empty))

"""Fixtures of the tests."""

import matplotlib
import pytest

import bentpipe as bp

matplotlib.use("Agg")


@pytest.fixture(scope="session")
def short() -> bp.Result:
    """1 MB over the GEO link."""
    return bp.run("geo", set={"flows.download.bytes": "1 MB"})


@pytest.fixture(scope="session")
def faded() -> bp.Result:
    """A transfer that meets bursts and loses packets in a queue."""
    return bp.run("transat-bursts")

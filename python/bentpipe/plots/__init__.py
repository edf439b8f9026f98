"""The plots of this field. Each function draws with matplotlib on the given Axes, or on new ones, and returns them.

===============================  ==============================================================================
:func:`sequence`                 time-sequence graph of a flow, with the lines of ACKs and of the window
:func:`cwnd`                     congestion window and flight beside the BDP
:func:`queue`                    a link's queue, with its drops
:func:`rtt`                      round-trip samples beside the propagation delay
:func:`throughput`               goodput over time beside the limit
:func:`fades`                    error bursts as a ribbon
:func:`overview`                 these one below the other, over a shared time axis: a Figure
:func:`completion`               completion times as distribution functions
:func:`box`                      completion times side by side
:func:`goodput_against_loss`     beside the analytic curve and the limit
:func:`fairness`                 goodput of each flow, with Jain's index
===============================  ==============================================================================

Axes have units. Colours are Okabe and Ito's, which colour-blind readers can tell apart; marks and dashes differ, too. Points on the same
spot are drawn once, counts are in the legend, and a note says what is left out. Save as SVG or PDF: ``axes.figure.savefig("run.svg")``.

>>> import bentpipe as bp
>>> result = bp.run("geo", set={"flows.download.bytes": "1 MB"})
>>> bp.plots.cwnd(result).get_ylabel()
'window (MB)'
"""

from ._many import box, completion, fairness, goodput_against_loss
from ._time import cwnd, fades, overview, queue, rtt, sequence, throughput

__all__ = [
    "box",
    "completion",
    "cwnd",
    "fades",
    "fairness",
    "goodput_against_loss",
    "overview",
    "queue",
    "rtt",
    "sequence",
    "throughput",
]

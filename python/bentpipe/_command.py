"""The command ``bentpipe``, in the process of its entry point.

A wheel can carry an extension module or a program, not both, so the extension module has the command in it. It is the only thread
of its process, which the namespaces of ``shell`` and ``emulate`` need: nothing here may import NumPy, which starts threads.
"""

from __future__ import annotations

import signal
import sys

from ._bentpipe import command


def main() -> int:
    """Runs the command with the process's arguments; returns its exit code."""
    # The command heeds signals itself; Python's handlers would wait for it to end. SIGPIPE stays ignored, as in Rust's programs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["bentpipe", *sys.argv[1:]])

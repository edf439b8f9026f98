"""The command ``bentpipe``, in the process of its entry point.

A wheel can carry an extension module or a program, not both, so the extension module has the command in it. It is the only thread
of its process, which the namespaces of ``shell`` and ``emulate`` need: nothing here may import NumPy, which starts threads.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from ._bentpipe import command


#: The page of ``bentpipe lab``; `make wheel` puts it here.
PAGE = Path(__file__).with_name("bentpipe-lab.html")


def main() -> int:
    """Runs the command with the process's arguments; returns its exit code."""
    # The command heeds signals itself; Python's handlers would wait for it to end. SIGPIPE stays ignored, as in Rust's programs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if PAGE.is_file():
        os.environ.setdefault("BENTPIPE_PAGE", str(PAGE))
    return command(["bentpipe", *sys.argv[1:]])

"""The command ``bentpipe``, in the process of its entry point.

A wheel can contain an extension module or a program, not both, so the extension module contains the command. The namespaces of
``shell`` and ``emulate`` need a process with a single thread, so nothing here may import NumPy, which starts threads.
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
    # The command handles signals itself; Python's handlers would run only after it ends. SIGPIPE stays ignored, as in Rust programs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if PAGE.is_file():
        os.environ.setdefault("BENTPIPE_PAGE", str(PAGE))
    # The command starts itself for the gateways of `shell` and `emulate`.
    os.environ["BENTPIPE_PYTHON"] = sys.executable
    return command(["bentpipe", *sys.argv[1:]])

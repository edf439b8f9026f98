"""A pytest fixture that runs a program behind a satellite link."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pytest

#: Words in the message of `bentpipe shell` if the machine cannot make a link. A mistake in the arguments may give the same exit code.
_LACKING = ("not permitted", "Permission denied", "user namespaces", "/dev/net/tun", "No such device")


class BehindLink(Protocol):
    """Runs a command behind a scenario's links."""

    def __call__(
        self,
        scenario: str | os.PathLike[str],
        command: Sequence[str],
        *,
        set: Mapping[str, str] | None = None,
        fail_if: Sequence[str] = (),
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[str]: ...


def _run(arguments: list[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
    """Like :func:`subprocess.run`, but a timeout leaves neither the command nor its link behind: SIGTERM ends both, SIGKILL would not."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                out, errors = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                out, errors = process.communicate()
            raise subprocess.TimeoutExpired(arguments, timeout or 0, out, errors) from None
        except BaseException:
            process.terminate()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, errors)


def _behind_link(
    scenario: str | os.PathLike[str],
    command: Sequence[str],
    *,
    set: Mapping[str, str] | None = None,
    fail_if: Sequence[str] = (),
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "bentpipe", "shell", os.fspath(scenario), "--quiet"]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={value}"]
    for condition in fail_if:
        arguments += ["--fail-if", condition]
    with tempfile.TemporaryDirectory(prefix="bentpipe-") as folder:
        # Written when the command has run. A command may give the same exit codes and messages as the link.
        report = os.path.join(folder, "report.json")
        ended = _run([*arguments, "--json", report, "--", *command], timeout)
        has_run = os.path.exists(report)
    is_ours = not has_run and ended.returncode in (1, 2) and ended.stderr.lstrip().startswith("error")
    if is_ours and any(words in ended.stderr for words in _LACKING):
        reason = f"no link on this machine: {ended.stderr.strip()}"
        if os.environ.get("BENTPIPE_REQUIRE_LINK"):
            pytest.fail(reason)
        pytest.skip(reason)
    if is_ours and ended.returncode == 2:
        pytest.fail(f"{' '.join(arguments)}: {ended.stderr.strip()}")
    return ended


@pytest.fixture
def behind_link() -> BehindLink:
    """Runs a command behind a scenario's links in real time: ``behind_link("geo", ["curl", url], fail_if=["time > 8 s"])``.

    The result is a :class:`subprocess.CompletedProcess` with the output as text, in which bytes that are not valid text become U+FFFD. Its
    return code is the command's, or 1 if a condition of ``fail_if`` is met (see ``bentpipe shell --help``). The test is skipped if this
    machine cannot create the link, or fails if ``BENTPIPE_REQUIRE_LINK`` is set.
    """
    return _behind_link

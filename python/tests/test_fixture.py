"""The fixture that puts a program behind a link."""

import os
import subprocess
import sys
import time

import pytest

import bentpipe._pytest as plugin


def test_a_program_runs_behind_the_link(behind_link):
    started = time.monotonic()
    ended = behind_link("geo", [sys.executable, "-c", "import os; print(os.environ['BENTPIPE_SHELL'])"], timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "geo"
    assert time.monotonic() - started < 60


def test_a_condition_fails_it(behind_link):
    ended = behind_link("geo", ["sleep", "0.3"], fail_if=["time > 100 ms"], timeout=60)
    assert ended.returncode == 1 and "time is 0." in ended.stderr and "--fail-if 'time > 100 ms'" in ended.stderr
    assert behind_link("geo", ["sh", "-c", "exit 7"], timeout=60).returncode == 7


def test_a_timeout_ends_the_command(behind_link, tmp_path):
    behind_link("geo", ["true"], timeout=60)  # skips where there is no link
    script = 'import os, sys, time; print("begun", flush=True); open(sys.argv[1], "w").write(str(os.getpid())); time.sleep(600)'
    pid = tmp_path / "pid"
    # On a busy machine the command has not begun after the first of these.
    for seconds in (3, 15, 75):
        with pytest.raises(subprocess.TimeoutExpired) as raised:
            behind_link("geo", [sys.executable, "-c", script, str(pid)], timeout=seconds)
        if pid.exists() and pid.read_text():
            break
    assert raised.value.output == "begun\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_commands_own_errors_are_the_tests(behind_link):
    # They were taken for those of the link: a test was skipped, or failed without its own assertion.
    ended = behind_link("geo", ["sh", "-c", "echo 'error: /x: Permission denied' >&2; exit 1"], timeout=60)
    assert ended.returncode == 1 and ended.stderr.startswith("error: /x")
    assert behind_link("geo", ["sh", "-c", "echo 'error: unexpected argument' >&2; exit 2"], timeout=60).returncode == 2


def test_output_that_is_no_text_is_kept(behind_link):
    assert behind_link("geo", ["printf", r"a\377b"], timeout=60).stdout == "a\ufffdb"


def test_a_mistake_is_no_skip():
    with pytest.raises(pytest.fail.Exception, match="no shipped scenario"):
        plugin._behind_link("absent", ["true"])


def test_a_missing_link_is_a_reason(monkeypatch):
    def refused(arguments, _):
        return plugin.subprocess.CompletedProcess(arguments, 1, "", "error: unshare: Operation not permitted\n")

    monkeypatch.setattr(plugin, "_run", refused)
    monkeypatch.delenv("BENTPIPE_REQUIRE_LINK", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no link on this machine"):
        plugin._behind_link("geo", ["true"])
    monkeypatch.setenv("BENTPIPE_REQUIRE_LINK", "1")
    with pytest.raises(pytest.fail.Exception, match="not permitted"):
        plugin._behind_link("geo", ["true"])

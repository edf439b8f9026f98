"""Sources of scenarios, and the messages for mistakes."""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import bentpipe as bp

TEXT = """
name = "mine"
[[links]]
name = "sat"
between = ["server", "client"]
rate = "2 Mbit/s"
delay = "275 ms"
forward.queue = "50 packets"
[[flows]]
name = "download"
from = "server"
to = "client"
bytes = "1 MB"
"""

AS_DICT = {
    "name": "mine",
    "links": [
        {"name": "sat", "between": ["server", "client"], "rate": "2 Mbit/s", "delay": "275 ms", "forward": {"queue": "50 packets"}}
    ],
    "flows": [{"name": "download", "from": "server", "to": "client", "bytes": "1 MB"}],
}


def typed() -> bp.Scenario:
    return bp.scenario(
        "mine",
        links=[bp.Link("sat", ("server", "client"), rate="2 Mbit/s", delay="275 ms", forward={"queue": "50 packets"})],
        flows=[bp.Flow("download", "server", "client", bytes="1 MB")],
    )


def test_all_forms_are_the_same_scenario(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    wanted = bp.load(file).to_toml()
    for form in (str(file), TEXT, AS_DICT, typed(), bp.load(TEXT)):
        assert bp.load(form).to_toml() == wanted


def test_set_is_that_of_the_command():
    slow = bp.load("geo", set={"links.sat.rate": "2 Mbit/s", "links.sat.forward.bursts": {"gap": "1 s", "length": "100 ms", "loss": "100 %"}})
    assert "2 Mbit/s" in slow.to_toml() and "bursts" in slow.to_toml()
    # Successive changes add up, also on a scenario that already has changes.
    assert bp.load(slow, set={"links.sat.delay": "40 ms"}).to_toml() != slow.to_toml()
    assert "2 Mbit/s" in bp.load(slow, set={"links.sat.delay": "40 ms"}).to_toml()


def test_a_file_takes_precedence_over_a_shipped_scenario_that_was_read_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bp.load("geo") is bp.load("geo")
    assert bp.load("geo", set={"links.sat.delay": "40 ms"}).to_toml() != bp.load("geo").to_toml()
    (tmp_path / "geo").write_text(TEXT)
    assert bp.load("geo").name == "mine"


def test_whole_numbers_beyond_tomls():
    """A seed has 64 bits, TOML's numbers have 63 and a sign."""
    base = bp.load("geo").to_toml()
    mine = {"name": "mine", "links": [{"name": "l", "between": ["a", "b"], "rate": "1 Mbit/s", "delay": "1 ms"}]}
    assert bp.load({**mine, "seed": 2**64 - 1}).seed == 2**64 - 1
    assert bp.load(base, set={"seed": 2**63}).seed == 2**63
    with pytest.raises(bp.ScenarioError, match="`seed` must be at most 18446744073709551615") as caught:
        bp.load({**mine, "seed": 2**70})
    assert caught.value.mistakes[0]["key"] == "seed"


def test_a_mistake_has_file_line_key_and_what_was_expected(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text(TEXT.replace("delay =", "dealy ="))
    with pytest.raises(bp.ScenarioError) as raised:
        bp.load(file)
    # Two mistakes: a missing key and an unknown one.
    missing, unknown = raised.value.mistakes
    assert missing["key"] == "links.sat.delay"
    assert (unknown["file"], unknown["line"], unknown["key"]) == (str(file), 7, "links.sat.dealy")
    assert unknown["help"] == "did you mean `delay`?"
    assert f"--> {file}:7:1" in str(raised.value)


@pytest.mark.parametrize(
    ("form", "kind", "says"),
    [
        ("geoo", bp.ScenarioError, "did you mean `geo`"),
        ({**AS_DICT, "seed": None}, TypeError, "`seed`: None cannot be a value"),
        ({**AS_DICT, "time_limit": 600}, bp.ScenarioError, "time_limit"),
        (7, TypeError, "not int"),
    ],
)
def test_what_is_no_scenario_is_refused(form, kind, says):
    with pytest.raises(kind, match=says):
        bp.load(form)


def test_an_unknown_variant_names_those_that_there_are():
    with pytest.raises(bp.ScenarioError, match="did you mean `sack`"):
        bp.run("geo", variant="sakc")


def test_a_scenario_without_flows_cannot_be_run():
    with pytest.raises(bp.ScenarioError, match="no flows"):
        bp.run({key: value for key, value in AS_DICT.items() if key != "flows"})


def test_a_scenario_goes_to_other_processes():
    there = pickle.loads(pickle.dumps(bp.load("geo-bursts", set={"links.sat.delay": "40 ms"})))
    assert bp.run(there).summary == bp.run("geo-bursts", set={"links.sat.delay": "40 ms"}).summary


def test_the_command_is_here():
    command = [sys.executable, "-m", "bentpipe", "run", "geo", "--json", "--set", "flows.download.bytes=1 MB"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = json.loads(ran.stdout)
    # The command line that reproduces the run names `bentpipe`, not Python.
    assert printed["command"] == "bentpipe run geo --json --set 'flows.download.bytes=1 MB'"
    ours = bp.run("geo", set={"flows.download.bytes": "1 MB"}).summary
    assert {key: printed[key] for key in ours} == ours


@pytest.mark.parametrize(("arguments", "code"), [(["run", "nothing"], 2), (["--version"], 0), (["runn"], 2)])
def test_the_command_has_its_exit_codes(arguments, code):
    ran = subprocess.run([sys.executable, "-m", "bentpipe", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr


def test_shell_works_from_pythons_process():
    # Without root it needs a process with one thread, as that of the entry point, and a kernel that allows user namespaces.
    ran = subprocess.run(
        [sys.executable, "-m", "bentpipe", "shell", "geo", "--", "sh", "-c", "exit 7"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 7 or "allows no user namespaces" in ran.stderr, ran.stderr


def test_the_schema_for_editors_takes_what_is_read():
    # It refused `.5 s`, `5. s` and `+5 ms`.
    printed = subprocess.run([sys.executable, "-m", "bentpipe", "schema"], capture_output=True, text=True, check=True).stdout
    keys = json.loads(printed)["properties"]["links"]["items"]["properties"]
    patterns = {"delay": keys["delay"]["pattern"], "loss": keys["loss"]["anyOf"][1]["pattern"]}
    good = [("delay", text) for text in ("5 ms", ".5 s", "5. s", "+5 ms", "5e-1 s", "1_000ms")] + [("loss", text) for text in (".5 %", "+0.1", "1e-6", "5%")]
    bad = [("delay", text) for text in ("5", ". s", "ms", "-5 ms", "5 m")] + [("loss", text) for text in ("%", "x", "-1 %", "1 ppm")]
    for key, text in good:
        assert re.search(patterns[key], text), (key, text)
        bp.load(TEXT, set={f"links.sat.{key}": text})
    for key, text in bad:
        assert not re.search(patterns[key], text), (key, text)
        with pytest.raises(bp.ScenarioError):
            bp.load(TEXT, set={f"links.sat.{key}": text})


def test_numbers_of_numpy_are_numbers():
    changes = {"flows.download.count": np.arange(1, 4)[1], "links.sat.loss": np.float32(0.25), "tcp.timestamps": np.bool_(True)}
    plain = {"flows.download.count": 2, "links.sat.loss": 0.25, "tcp.timestamps": True}
    assert bp.load("geo", set=changes).to_toml() == bp.load("geo", set=plain).to_toml()


def test_changes_are_a_dictionary():
    with pytest.raises(TypeError, match="`set` is a dictionary from keys to values, .* not a list"):
        bp.run("geo", set=["links.sat.delay=40 ms"])


def test_texts_may_have_any_letter():
    for word in ("Ku-Band: 🛰", "Übertragung", 'a "b" \\ c', "\x7f"):
        found = bp.load("geo", set={"variants.mine": {"base": "sack", "description": word}})
        assert found.to_toml() == bp.load(found.to_toml()).to_toml()
        assert bp.load("geo", set={"description": word}).description == word

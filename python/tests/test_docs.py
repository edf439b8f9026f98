"""The examples in the documentation run, and say what they say."""

import doctest
import importlib
import pathlib
import re

import pytest

import bentpipe as bp

ROOT = pathlib.Path(__file__).parents[2]
MODULES = ["", "._answers", "._runs", "._scenarios", "._sweep", "._tables", ".plots", ".stats"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    module = importlib.import_module(f"bentpipe{name}")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    ran = doctest.testmod(module, optionflags=flags)
    assert ran.attempted > 0 and ran.failed == 0


@pytest.mark.parametrize("page", ["README.md", "docs/howto/cluster.md", "docs/howto/python.md"])
def test_code_of_pages(page, tmp_path, monkeypatch):
    """The blocks of a page, one after the other, in an empty folder."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, page
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_everything_public_is_documented_and_typed():
    stub = (ROOT / "python/bentpipe/_bentpipe.pyi").read_text()
    raw = importlib.import_module("bentpipe._bentpipe")
    for name in dir(raw):
        assert name.startswith("__") or re.search(rf"\b{name}\b", stub), f"{name} is not in _bentpipe.pyi"
    for name in bp.__all__:
        assert name == "__version__" or (getattr(bp, name).__doc__ or "").strip(), name

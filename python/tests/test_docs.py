"""The examples in the documentation run and print what the pages show."""

import doctest
import importlib
import pathlib
import re

import nbclient
import nbformat
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
    """Runs the blocks of a page, one after the other, in an empty folder."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, page
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_the_notebook_runs_from_start_to_end(tmp_path):
    notebook = nbformat.read(ROOT / "python/notebook.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells and not any(cell.outputs or cell.execution_count for cell in cells), "outputs are not kept"
    # Raises the exception of a failing cell.
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs), "it draws"


def test_everything_public_is_documented_and_typed():
    stub = (ROOT / "python/bentpipe/_bentpipe.pyi").read_text()
    raw = importlib.import_module("bentpipe._bentpipe")
    for name in dir(raw):
        assert name.startswith("__") or re.search(rf"\b{name}\b", stub), f"{name} is not in _bentpipe.pyi"
    for name in bp.__all__:
        assert name == "__version__" or (getattr(bp, name).__doc__ or "").strip(), name

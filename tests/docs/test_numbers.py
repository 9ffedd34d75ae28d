"""Numbers that commands print are in the documents as printed; see docs/hooks/printed.py."""

import re
import sys
from pathlib import Path

import pytest
from cogapp import Cog

from tests.support.markers import full
from tests.test_docs import PAGES, ROOT

HOOKS = Path(__file__).parents[2] / "docs/hooks"
MARKER = re.compile(r'\[\[\[cog put\("(\w+)"\) \]\]\]')
# They plan for graphs with a million edges.
LONG = ("costs.md", "partitions.md")
WITH_NUMBERS = [
    pytest.param(page, marks=full if page.name in LONG else (), id=str(page.relative_to(ROOT)))
    for page in PAGES
    if MARKER.search(page.read_text())
]


@pytest.fixture
def printed(monkeypatch):
    monkeypatch.syspath_prepend(str(HOOKS))
    import printed  # noqa: PLC0415

    yield printed
    del sys.modules["printed"]


def written(text):
    """Return the document as `make numbers` would leave it on a machine that measures nothing."""
    cog = Cog()
    cog.options.prologue = "from printed import put"
    return cog.process_string(text)


@pytest.mark.parametrize("page", WITH_NUMBERS)
def test_exact_numbers_are_those_that_commands_print(page, printed):
    text = page.read_text()
    assert written(text) == text, "make numbers writes them again"


def test_each_function_writes_to_one_document(printed):
    names = [name for page in PAGES for name in MARKER.findall(page.read_text())]
    assert sorted(names) == sorted(printed.NUMBERS)


def test_a_wrong_number_is_replaced_and_a_measured_one_kept(printed, monkeypatch):
    monkeypatch.setattr(printed, "NUMBERS", {"exact": lambda: "1,797", "measured": lambda: None})
    page = "".join(
        f'<!-- [[[cog put("{name}") ]]] -->\n\n{value}\n\n<!-- [[[end]]] -->\n'
        for name, value in (("exact", "1,798"), ("measured", "8 ms"))
    )
    assert written(page) == page.replace("1,798", "1,797")

# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The documents become a site in which no link is broken, and which needs no other server."""

import os
import re
import subprocess
import sys

import pytest

from tests.docs.test_navigation import PACKAGES, PAGES, ROOT
from tests.support.levels import site_missing
from tests.support.speed import seconds_here

NO_SITE = site_missing()
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(NO_SITE is not None, reason=NO_SITE or "MkDocs is installed"),
]
# What a browser fetches by itself.
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?([^\s\">]+)|<link ([^>]*)>")


def build(tree, site):
    """Build the site of a checkout; return the exit code and what is said."""
    environment = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT),
    }
    told = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_here(200),
    )
    return told.returncode, told.stdout + told.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    code, said = build(ROOT, folder)
    assert code == 0, said
    assert "WARNING" not in said
    return folder


def text_of(site, page):
    return (site / page).with_suffix(".html").read_text()


def test_every_page_is_there(site):
    for page in PAGES:
        assert "<h1" in text_of(site, page), page


def test_what_packages_offer_is_described(site):
    for package, names in PACKAGES.items():
        anchors = re.findall(r"<h\d id=\"switchgnn\.([\w.]+)\"", text_of(site, f"api/{package}.md"))
        described = {anchor.rpartition(".")[2] for anchor in anchors}
        # Constants have no docstrings.
        assert {name for name in names if not name.isupper()} <= described, package


def test_commands_have_their_options_and_examples(site):
    train = text_of(site, "commands/train.md")
    for words in ("--data NAME", "-h, --help", "switchgnn train [OPTIONS]"):
        assert words in train
    network = text_of(site, "commands/network.md")
    assert re.findall(r"<h2 id=\"([\w-]+)\"", network) == [
        "switchgnn-network-init", "switchgnn-network-worker", "switchgnn-network-check"
    ]  # fmt: skip


def test_links_to_files_of_the_repository_lead_to_their_pages(site):
    assert 'href="files/examples/own_loop/index.html"' in text_of(site, "machines.md")
    assert 'href="plans.html#checking-a-plan"' in text_of(site, "readme.md")
    assert "worker.wrap(" in re.sub(
        r"<[^>]+>", "", text_of(site, "files/examples/own_loop/together.py.md")
    )


def test_nothing_is_fetched_from_another_server(site):
    for page in site.rglob("*.html"):
        for source, link in FETCHED.findall(page.read_text()):
            assert not source.startswith(("http:", "https:", "//")), page
            # A link to a canonical address is not fetched; there is none here.
            assert "//" not in link, page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text()), sheet


MISTAKES = """
[a page](nowhere.md), [an anchor](protocol.md#nowhere), [a file](../host/nowhere.py),
[a folder](/host), ![an image](images/nowhere.png)
"""


def test_mistakes_are_refused(tmp_path):
    """All at once, and each is named; without the reference, which takes most of the time."""
    for path in ROOT.iterdir():
        if path.name not in ("docs", "mkdocs.yml") and not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    documents = tmp_path / "docs"
    documents.mkdir()
    for path in (ROOT / "docs").iterdir():
        if path.name not in ("hooks", "limitations.md", "__pycache__"):
            (documents / path.name).symlink_to(path)
    (documents / "hooks").mkdir()
    for path in (ROOT / "docs" / "hooks").glob("*.py"):
        (documents / "hooks" / path.name).write_text(path.read_text())
    (documents / "limitations.md").write_text((ROOT / "docs/limitations.md").read_text() + MISTAKES)
    (documents / "forgotten.md").write_text("# Not in the list\n")
    text = (ROOT / "mkdocs.yml").read_text()
    text, nav = text.partition("\nplugins:")[0], text.partition("\nnav:")[2]
    nav = re.sub(r"^ +- (?:In Python:|.*: api/.*)\n", "", nav, flags=re.M)
    (tmp_path / "mkdocs.yml").write_text(f"{text}\nplugins: [search]\nnav:{nav}")
    code, said = build(tmp_path, tmp_path / "made")
    assert code == 1
    for words in (
        "'nowhere.md'", "'protocol.md#nowhere'", "'../host/nowhere.py'", "'/host'",
        "'images/nowhere.png'", "forgotten.md",
    ):  # fmt: skip
        assert words in said
    assert "Aborted with 6 warnings in strict mode" in said

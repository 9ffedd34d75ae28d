"""The documents: all are in the list of pages, and become a site without a broken link."""

import ast
import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from switchgnn.commands.application import COMMANDS
from tests.support.levels import browser_missing, site_missing
from tests.support.markers import whole
from tests.support.processes import run_program

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))
MOST_LINES = 250
# The address of each page in the list of pages, which is the last part of the file.
PAGES = re.findall(
    r"^ +- (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2], re.M
)


def listed(folder):
    return {page.removeprefix(f"{folder}/") for page in PAGES if page.startswith(f"{folder}/")}


def public(module):
    """What a package or module says that it offers."""
    file = module / "__init__.py" if module.is_dir() else module
    for node in ast.parse(file.read_text()).body if file.exists() else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


PACKAGES = {
    ".".join(module.relative_to(ROOT).with_suffix("").parts): public(module)
    for folder in ("switchgnn", "switchgnn/lab")
    for module in (ROOT / folder).iterdir()
    if module.name not in ("__init__.py", "commands") and public(module)
}


def test_every_document_is_in_the_navigation():
    elsewhere = {"changes.md", "contributing.md", "examples.md", "readme.md"}
    own = {page for page in PAGES if not page.startswith(("api/", "commands/"))} - elsewhere
    assert own == {str(file.relative_to(ROOT / "docs")) for file in DOCUMENTS}


def test_every_public_package_is_in_the_navigation():
    assert {"switchgnn.torch", "switchgnn.planner", "switchgnn.host"} < set(PACKAGES)
    assert listed("api") == {f"{name}.md" for name in PACKAGES}


def test_no_page_is_too_long_to_read():
    lengths = {str(page): len(page.read_text().splitlines()) for page in DOCUMENTS}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_command_is_in_the_navigation():
    assert listed("commands") == {"index.md", *(f"{each.name}.md" for each in COMMANDS)}


@pytest.fixture(scope="module")
def external():
    path = ROOT / "docs" / "hooks" / "external.py"
    spec = importlib.util.spec_from_file_location("external", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(tmp_path):
    """The folder "served", over HTTP."""
    (tmp_path / "served").mkdir()
    answers = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "served")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def test_links_are_listed_with_their_documents(external, tmp_path, server, capsys):
    (tmp_path / "served/here").touch()
    text = f"[one]({server}/here) [two]({server}/away) [own](page.md)"
    for file in (tmp_path / "README.md", tmp_path / "docs" / "page.md"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert external.main([], tmp_path) == 0
    where = "(README.md, docs/page.md)"
    assert capsys.readouterr().out.splitlines() == [
        f"{server}/{name} {where}" for name in ("away", "here")
    ]
    assert external.main(["--check"], tmp_path) == 1
    there, away = sorted(capsys.readouterr().out.splitlines(), key=len)
    assert there == f"{server}/here {where}"
    assert away == f"{server}/away {where}: 404 File not found"
    assert any("p4lang" in link for link in external.links(ROOT))


NO_SITE = site_missing()
needs_site = pytest.mark.skipif(NO_SITE is not None, reason=NO_SITE or "MkDocs is installed")
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?([^\s\">]+)|<link ([^>]*)>")


def build(tree, site):
    """Build the site of a checkout; return the exit code and what is said."""
    environment = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT),
    }
    told = run_program(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        seconds=200,
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


@whole
@needs_site
def test_every_page_is_there(site):
    for page in PAGES:
        assert "<h1" in text_of(site, page), page


@whole
@needs_site
def test_what_packages_offer_is_described(site):
    for package, names in PACKAGES.items():
        anchors = re.findall(r"<h\d id=\"switchgnn\.([\w.]+)\"", text_of(site, f"api/{package}.md"))
        described = {anchor.rpartition(".")[2] for anchor in anchors}
        # Constants have no docstrings.
        assert {name for name in names if not name.isupper()} <= described, package


@whole
@needs_site
def test_commands_have_their_options_and_examples(site):
    train = text_of(site, "commands/train.md")
    for words in ("--data NAME", "-h, --help", "switchgnn train [OPTIONS]"):
        assert words in train
    assert re.findall(r"<h2 id=\"([\w-]+)\"", text_of(site, "commands/network.md")) == [
        "switchgnn-network-init", "switchgnn-network-worker", "switchgnn-network-check"
    ]  # fmt: skip


@whole
@needs_site
def test_links_to_files_of_the_repository_lead_to_their_pages(site):
    assert 'href="files/examples/own_loop/index.html"' in text_of(site, "machines.md")
    assert 'href="plans.html#checking-a-plan"' in text_of(site, "readme.md")
    assert "worker.wrap(" in re.sub(
        r"<[^>]+>", "", text_of(site, "files/examples/own_loop/together.py.md")
    )


@whole
@needs_site
def test_nothing_is_fetched_from_another_server(site):
    for page in site.rglob("*.html"):
        for source, link in FETCHED.findall(page.read_text()):
            assert not source.startswith(("http:", "https:", "//")), page
            # A link to a canonical address is not fetched; there is none here.
            assert "//" not in link, page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text()), sheet


OVERFLOWING = """
return [...document.querySelectorAll(".md-typeset__scrollwrap")]
  .filter((wrap) => wrap.scrollWidth > wrap.clientWidth + 1)
  .map((wrap) => wrap.textContent.trim().slice(0, 40));
"""


@whole
@needs_site
@pytest.mark.skipif(bool(browser_missing()), reason=browser_missing() or "")
def test_no_table_is_cut(site, tmp_path):
    """In a window of a laptop, 1280 pixels wide."""
    from tests.live.test_browser import browser  # noqa: PLC0415  it may be skipped as a whole

    with browser(tmp_path) as driver:
        for page in sorted(site.glob("*.html")):
            driver.get(page.as_uri())
            assert driver.execute_script(OVERFLOWING) == [], page.name

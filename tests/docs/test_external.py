# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Links to other sites are listed; only who asks for it learns whether they lead somewhere."""

import http.server
import importlib.util
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def external():
    place = ROOT / "docs" / "hooks" / "external.py"
    spec = importlib.util.spec_from_file_location("external", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/here" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


def documents(folder, text):
    (folder / "docs").mkdir()
    (folder / "README.md").write_text(text)
    (folder / "docs" / "page.md").write_text(text)
    return folder


def test_links_are_listed_with_their_documents(external, tmp_path, capsys):
    tree = documents(tmp_path, "[one](https://example.invalid/a) [own](page.md)")
    assert external.main([], tree) == 0
    said = capsys.readouterr().out
    assert said == "https://example.invalid/a (README.md, docs/page.md)\n"


def test_one_that_leads_nowhere_is_named(external, tmp_path, server, capsys):
    tree = documents(tmp_path, f"[one]({server}/here) [two]({server}/away)")
    assert external.main(["--check"], tree) == 1
    there, away = sorted(capsys.readouterr().out.splitlines(), key=len)
    assert there.startswith(f"{server}/here")
    assert there.endswith("page.md)")
    assert away.startswith(f"{server}/away")
    assert away.endswith(": 404 Not Found")


def test_all_of_ours_are_found(external):
    assert any("p4lang" in link for link in external.links(ROOT))

# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import importlib.util

import pytest

from switchgnn.commands.shared.live.onlooker import NOBODY
from switchgnn.commands.shared.live.options import LivePage, find_live, looked_at
from switchgnn.errors import SwitchGNNError


def test_nobody_wants_a_page():
    assert find_live(False, None) is None
    with looked_at(None, "run karate") as onlooker:
        assert onlooker is NOBODY
    assert NOBODY.tell_every == 0


@pytest.mark.parametrize("port", [None, 0, 8123])
def test_a_page_is_wanted(port, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert find_live(True, port) == LivePage(port or 0)


@pytest.mark.parametrize("missing", [{"uvicorn"}, {"starlette"}, {"starlette", "uvicorn"}])
def test_a_package_that_is_missing_is_named(missing, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else name)
    with pytest.raises(SwitchGNNError) as told:
        find_live(True, None)
    [line] = str(told.value).splitlines()
    assert "pip install 'switchgnn[live]'" in line
    for name in ("starlette", "uvicorn"):
        assert (name in line) == (name in missing)

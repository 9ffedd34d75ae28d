# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import importlib.util
from pathlib import Path

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import Installation
from switchgnn.commands.shared.live import LiveOptions
from switchgnn.commands.shared.onlooker import NOBODY


def test_nobody_wants_a_page():
    LiveOptions().check()
    with LiveOptions().looked_at("run karate") as onlooker:
        assert onlooker is NOBODY
    assert NOBODY.tell_every == 0


def test_a_port_without_a_page():
    with pytest.raises(SwitchGNNError, match="add --live"):
        LiveOptions(live_port=0).check()


@pytest.mark.parametrize("port", [None, 0, 8123])
def test_a_page_is_wanted(port, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    LiveOptions(live=True, live_port=port).check()


@pytest.mark.parametrize("missing", [{"uvicorn"}, {"starlette"}, {"starlette", "uvicorn"}])
def test_a_package_that_is_missing_is_named(missing, monkeypatch):
    here = Installation(Path.cwd())
    monkeypatch.setattr("switchgnn.base.machine.find_installation", lambda: here)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else name)
    with pytest.raises(SwitchGNNError) as told:
        LiveOptions(live=True).check()
    [line] = str(told.value).splitlines()
    assert "pip install -e '.[live]'" in line
    for name in ("starlette", "uvicorn"):
        assert (name in line) == (name in missing)

# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Commands whose plans leave destinations to the hosts: no option asks for that."""

from contextlib import contextmanager
from functools import partial

import pytest

from switchgnn.planner.chosen import build_chosen


@contextmanager
def leaving(module, left):
    """Every plan that the module makes leaves these destinations to the hosts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "build_chosen", partial(build_chosen, left=left))
        yield

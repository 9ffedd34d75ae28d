"""Which cases `make test` runs on which switch."""

import pytest

from tests.ptf.switchgnn_ptf.runner import find_cases
from tests.ptf.switchgnn_ptf.tofino import TOFINO

# Every case runs on these settings. On BMv2 and on Python the first one of each control runs. The
# interfaces of the embedded switch are tested in tests/softswitch.
EVERY_CASE, NO_CASE = ("embedded-udp", TOFINO), "embedded-veth"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = {case.partition(".")[0]: case for case in reversed(find_cases())}.values()
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        setting, case = parameters.get("runner"), parameters.get("case")
        if case and setting not in EVERY_CASE and (setting == NO_CASE or case not in first):
            item.add_marker(pytest.mark.full)

"""The report of the Tofino program's compilation is that of the sources, and is read correctly."""

import json
import re

import pytest
from google.protobuf import json_format

from bench import tofino as report
from switchgnn.controller.p4runtime.layout import parse_p4info
from switchgnn.p4src import load_tofino
from switchgnn.p4src.build import CompileError
from switchgnn.p4src.program import SOURCE_FOLDER
from switchgnn.profiles import find_profile

REPORT = json.loads(report.REPORT.read_text())


def test_the_report_is_of_these_sources():
    assert REPORT["sources"] == report.CHIP.digest(), "run `make tofino`, which writes it again"


@pytest.mark.parametrize("name", ["port", "pass"])
def test_a_pipeline_fits_the_chip(name):
    found = REPORT["pipelines"][name]
    assert found["stages"]["used"] <= found["stages"]["of"] == 20
    for each in ("sram", "tcam", "map_rams"):
        used = sum(own[each] for own in found["controls"].values())
        assert found[each]["used"] == used <= found[each]["of"]


def test_the_chip_has_the_tables_that_are_tested():
    info = parse_p4info(load_tofino().p4info)
    assert REPORT["tables"] == report.tables_of(json_format.MessageToDict(info))


def test_its_profile_is_what_the_report_says():
    profile = find_profile("tofino2-compiled")
    assert profile.table_bytes == REPORT["table_bytes"], "write it into tofino2-compiled.toml"
    counted = [table for each in REPORT["pipelines"].values() for table in each["plan_tables"]]
    assert sorted(counted) == sorted(report.PLAN_TABLES)
    sizes = (SOURCE_FOLDER / "tofino/sizes.p4").read_text()
    (slots,) = re.findall(r"SLOTS_PER_BANK = (\d+);", sizes)
    pairs = re.findall(r'alias: "lanes\d+"', load_tofino().p4info)
    assert profile.slot_bytes == int(slots) * len(pairs) * 8


def stage(number, tables, **blocks):
    widths = {"nRows": 8, "nColumns": 10, "nUnits": 6}
    found = {
        memory: widths | {units: [{"usages": [each]} for each in blocks.get(units, ())]}
        for memory, units in {"rams": "srams", "tcams": "tcams", "map_rams": "maprams"}.items()
    }
    ids = [{"table_name": name} for name in tables]
    return found | {"stage_number": number, "logical_tables": {"ids": ids}}


def test_a_compilation_is_read(tmp_path, monkeypatch):
    name = "Ingress.part.arrival.access.source.source"
    key = {"used_by": name, "used_for": "match_entry_ram"}
    action = {"used_by": f"{name}$action", "used_for": "action_ram"}
    state = {"used_by": "Egress.egress.out.result", "used_for": "stateful_ram"}
    stages = [
        stage(0, [name, "tbl_x"], srams=[key, key], tcams=[key]),
        stage(1, [name], srams=[action, state], maprams=[state]),
    ]
    containers = {"normal": [{"units": 3}], "dark": [{"units": 1}, {"units": 4}]}
    resources = {"mau": {"nStages": 20, "mau_stages": stages}, "phv_containers": containers}
    manifest = {"compiler_version": "9", "programs": [{"pipes": [{"pipe_name": "port"}]}]}
    logs = tmp_path / "port/logs"
    logs.mkdir(parents=True)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (logs / "resources.json").write_text(json.dumps({"resources": resources}))
    line = "Critical path length through the table dependency graph: {}\n"
    (logs / "table_summary.log").write_text(line.format(7) + line.format(9))
    with pytest.raises(CompileError, match=r"phv\.json"):
        report.read_compilation(tmp_path)
    (tmp_path / "p4info.json").write_text('{"tables": [], "actions": []}')
    (logs / "phv.json").write_text('{"containers": [{}, {}]}')
    monkeypatch.setattr(report, "REPORT", tmp_path / "report.json")
    report.main(tmp_path)
    found = json.loads((tmp_path / "report.json").read_text())
    port = found["pipelines"]["port"]
    assert (found["table_bytes"], port["critical_path"]) == (3 * 16384, 9)
    assert (port["phv"], port["sram"]) == ({"used": 2, "of": 8}, {"used": 4, "of": 1600})
    assert {name: [*own.values()] for name, own in port["controls"].items()} == {
        "arrival.access": [[0, 1], 2, 3, 1, 0],
        "out": [[1], 0, 1, 0, 1],
        "statements": [[0], 1, 0, 0, 0],
    }

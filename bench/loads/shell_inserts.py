"""Inserts fanout entries as p4runtime-shell does; runs in that program's venv.

``python shell_inserts.py ADDRESS FOLDER ENTRIES`` prints one line of JSON.
"""

import json
import sys
import time

BANKS = 8


def main() -> None:
    """Load the program, insert, and print entries per second."""
    # Only that program's venv has this package.
    import p4runtime_sh.shell as sh  # noqa: PLC0415

    address, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    config = sh.FwdPipeConfig(f"{folder}/p4info.txtpb", f"{folder}/program.json")
    sh.setup(device_id=0, grpc_addr=address, election_id=(0, 1), config=config, verbose=False)
    started = time.perf_counter()
    for source in range(count):
        insert(sh, source)
    seconds = time.perf_counter() - started
    sh.teardown()
    print(json.dumps({"entries_per_second": count / seconds}))


def insert(sh, source: int) -> None:  # noqa: ANN001
    """Insert one entry with all its parameters."""
    entry = sh.TableEntry("fanout")(action="set_slots")
    entry.match["block_id"] = "1"
    entry.match["src_id"] = str(source)
    entry.match["hop"] = "0"
    entry.action["last_hop"] = "1"
    entry.action["last_bank"] = "7"
    for bank in range(BANKS):
        entry.action[f"slot{bank}"] = str(source)
        entry.action[f"expected{bank}"] = "16"
    entry.insert()


if __name__ == "__main__":
    main()

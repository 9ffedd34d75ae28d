"""Make `Dedup` forget the sources that it has seen, in the compiled program.

The action `look_and_remember` then writes back the tag that it has read.
"""

import json

import typer

from switchgnn.p4src.program import SWITCHGNN

compiled = json.loads(SWITCHGNN.json.read_text())
names = {action["name"]: action["primitives"] for action in compiled["actions"]}
steps = names["SwitchIngress.dedup.look_and_remember"]
read, write = (
    next(step["parameters"] for step in steps if step["op"] == name)
    for name in ("register_read", "register_write")
)
write[2] = read[0]
SWITCHGNN.json.write_text(json.dumps(compiled, indent=1) + "\n")
typer.echo(f"{SWITCHGNN.json}: Dedup remembers no source. `git checkout p4src` undoes it.")

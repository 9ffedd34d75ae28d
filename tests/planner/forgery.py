"""Plans on disk that look right from outside: every digest agrees, whatever is in the files."""

import hashlib
import json
from dataclasses import asdict, fields

from switchgnn.base.arrays import pack_arrays


def content_of(plan):
    """A plan as plain dictionaries, free to be changed."""
    return {
        "manifest": json.loads(json.dumps(asdict(plan.manifest))),
        "assignment": plan.assignment.copy(),
        "switch": _arrays(plan.switch),
        "workers": [_arrays(part) for part in plan.workers],
    }


def write_content(content, folder):
    """Write the files, and a manifest whose digests agree with them."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"switch.safetensors": pack_arrays(content["switch"])}
    for worker, arrays in enumerate(content["workers"]):
        files[f"worker-{worker:03d}.safetensors"] = pack_arrays(arrays)
    files["assignment.safetensors"] = pack_arrays(
        {"assignment": content["assignment"].astype("<i4")}
    )
    for name, data in files.items():
        (folder / name).write_bytes(data)
    manifest = {key: value for key, value in content["manifest"].items() if key != "digest"}
    manifest["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    (folder / "plan.json").write_text(json.dumps(manifest))
    return folder


def _arrays(part):
    return {
        field.name: getattr(part, field.name).copy()
        for field in fields(part)
        if field.name != "worker" and getattr(part, field.name) is not None
    }

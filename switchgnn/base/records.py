"""Dataclasses from JSON and TOML, with strict types and no unknown fields."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from switchgnn.base.files import read_bounded

_Record = TypeVar("_Record")
_AT = " - at "


class RecordError(ValueError):
    """JSON does not match its dataclass; the message is a clause for the caller's sentence."""


def parse_json(data: bytes) -> Any:  # noqa: ANN401 - JSON may hold anything
    """Decode JSON, without NaN and infinity; raise RecordError if it is malformed."""
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError as error:
        raise RecordError(f"it is not JSON ({_in_sentence(error)})") from error
    except UnicodeDecodeError as error:
        raise RecordError("it is not JSON (a text in it is not UTF-8)") from error
    except RecursionError as error:
        raise RecordError("it is not JSON that can be read: it is nested too deeply") from error


def make_record(kind: type[_Record], told: object) -> _Record:
    """Make a dataclass from parsed JSON; RecordError names the wrong field.

    An int may stand for a float, but a bool not for an int; text may stand for a path.
    """
    try:
        made = msgspec.convert(told, kind, strict=True, dec_hook=_make_path)
    except msgspec.ValidationError as error:
        raise RecordError(_in_sentence(error)) from error
    _refuse_unknown(told, made, "")
    return made


def record_digest(record: Any) -> str:  # noqa: ANN401 - any dataclass
    """Return SHA-256 in hex over the fields but `digest`: keys sorted, no spaces, ASCII."""
    content = asdict(record)
    del content["digest"]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _make_path(kind: type, value: object) -> Path:
    if kind is not Path or not isinstance(value, str):
        raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return Path(value)


def _in_sentence(error: msgspec.MsgspecError) -> str:
    said, _, path = str(error).replace("`", "").partition(_AT)
    field = path.removeprefix("$").removeprefix(".")
    said = said if said.startswith("JSON") else said[:1].lower() + said[1:]
    return f"{field}: {said}" if field else said


def _refuse_unknown(told: object, made: object, path: str) -> None:
    if is_dataclass(made) and isinstance(told, Mapping):
        known = sorted(field.name for field in fields(made))
        for name, value in told.items():
            if name not in known:
                parent = f"{path}: " if path else ""
                raise RecordError(f"{parent}unknown field {name}; known: {', '.join(known)}")
            _refuse_unknown(value, getattr(made, name), f"{path}.{name}" if path else name)
    elif isinstance(made, Mapping) and isinstance(told, Mapping):
        for name, value in told.items():
            _refuse_unknown(value, made[name], f"{path}.{name}")
    elif isinstance(made, tuple) and isinstance(told, list):
        for number, (value, item) in enumerate(zip(told, made, strict=True)):
            _refuse_unknown(value, item, f"{path}[{number}]")


def read_toml(
    path: Path, most_bytes: int, kind: str, refuse: Callable[[str], Exception]
) -> dict[str, Any]:
    """Return the content of a TOML file of at most `most_bytes`; `refuse` makes the errors."""
    try:
        content = read_bounded(path, most_bytes)
    except OSError as error:
        raise refuse(f"Cannot read the {kind} {path}: {error.strerror}.") from error
    try:
        found: dict[str, Any] = msgspec.toml.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise refuse(f"{path} is not TOML: {error}.") from error
    return found

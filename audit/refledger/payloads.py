"""Payloads: what a tool checks in, as bytes, and back again in the same shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refledger_schema.canonical import parse_json, payload_json
from refledger_schema.digests import digest_of
from refledger_schema.errors import InvalidArtifact, NotCanonical, TooLarge
from refledger_schema.events import Shape

MEDIA_TYPES: dict[Shape, str] = {
    "text": "text/plain",
    "bytes": "application/octet-stream",
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A payload ready to be stored."""

    shape: Shape
    media_type: str
    data: bytes
    digest: str


def encode(value: object, media_type: str | None = None) -> Encoded:
    """A payload's bytes: text as UTF-8, bytes as they are, a pyarrow Table as an Arrow IPC stream, all else as JSON that is exact.

    Raises `InvalidArtifact` with the path of what JSON cannot carry, and `TooLarge` for what is nested too deeply.
    """
    shape, data = _shaped(value)
    return Encoded(shape, media_type or MEDIA_TYPES[shape], data, digest_of(data))


def decode(shape: Shape, data: bytes) -> Any:
    """The payload of stored bytes. Raises `NotCanonical`, ValueError or OSError for bytes that no payload has."""
    if shape == "bytes":
        return data
    if shape == "arrow":
        import pyarrow as pa

        return pa.ipc.open_stream(data).read_all()
    text = data.decode()
    return text if shape == "text" else parse_json(text)


def text_of(value: object) -> str | None:
    """A value as the text that content records; None for what has no exact text."""
    if isinstance(value, str):
        text = value
    else:
        try:
            text = payload_json(value)
        except (NotCanonical, TooLarge):
            return None
    return text if _is_storable(text) else None


def _shaped(value: object) -> tuple[Shape, bytes]:
    if isinstance(value, str):
        try:
            return "text", value.encode()
        except UnicodeEncodeError:
            raise InvalidArtifact("data", "expected text that UTF-8 can hold; found a lone surrogate. Repair or escape the text.") from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", bytes(value)
    if _is_table(value):
        return "arrow", _ipc_stream(value)
    try:
        return "json", payload_json(value).encode()
    except NotCanonical as error:
        raise InvalidArtifact(
            "data", f"expected data that JSON carries exactly; at {error.path}: {error.reason} Convert it, or pass text or bytes."
        ) from None


def _is_table(value: object) -> bool:
    """Whether a value is a pyarrow Table, told without loading pyarrow: whoever has a Table has loaded it."""
    kind = type(value)
    return kind.__name__ == "Table" and kind.__module__.split(".")[0] == "pyarrow"


def _ipc_stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

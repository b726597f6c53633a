"""Digests of bytes, in the one spelling that the log knows: `sha-256:` and 64 lower-case hexadecimal digits."""

from __future__ import annotations

import hashlib


def digest_of(data: bytes) -> str:
    return "sha-256:" + hashlib.sha256(data).hexdigest()


def digest_of_text(text: str) -> str:
    """The digest of the text's UTF-8 bytes."""
    return digest_of(text.encode())

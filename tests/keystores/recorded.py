"""Stores that `keytool` of Java 17 wrote once, for tests without Java.

All have the key or the certificate of CN=recorded, which is its own authority, for 20,000 days. The
second key of two.jks is of CN=b.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

__all__ = ["CERTIFICATE", "KEY_PASSWORD", "STORE_PASSWORD", "written"]

_RECORDED: dict[str, str] = json.loads(Path(__file__).with_name("keytool.json").read_text())
CERTIFICATE = _RECORDED["certificate"]
STORE_PASSWORD = "secret-of-the-store"
KEY_PASSWORD = "secret-of-the-key"
"""The password of the keys of JKS stores."""


def written(directory: Path, name: str) -> Path:
    """Write a store and return its file."""
    file = directory / name
    file.write_bytes(b64decode(_RECORDED[name]))
    return file

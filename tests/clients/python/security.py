"""Protocol, login and certificates of the Python harness, as the file that SECURITY names says.

The file is JSON with the fields of `Security`, for the harness of every language; here they become
the settings of each Python client.
"""

from __future__ import annotations

import json
import logging
import os
import re
import ssl
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.clients.python.adapter import OPERATION_SECONDS

__all__ = ["Security", "aiokafka", "confluent", "heard", "kafka_python", "kcat", "told_by"]


class Security(NamedTuple):
    """How a client connects; files are absolute paths in PEM form, an empty text is nothing."""

    protocol: str
    mechanism: str = ""
    username: str = ""
    password: str = ""
    token: str = ""
    token_file: str = ""
    by_delegation_token: bool = False
    """Whether username and password are id and HMAC of a delegation token."""
    authority: str = ""
    certificate: str = ""
    key: str = ""
    store: str = ""
    """Key and certificate in one file."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection has TLS."""
        return self.protocol.endswith("SSL")


def _given() -> Security | None:
    path = os.environ.get("SECURITY")
    return None if path is None else Security(**json.loads(Path(path).read_text()))


_GIVEN = _given()
_NUMBER = re.compile(r"\d+(\.\d+)?")
_QUIET = logging.getLogger("tests.clients.quiet")
_QUIET.propagate = False
heard: list[str] = []
"""What clients have said of errors beside their exceptions, each once."""


def hear(error: object) -> None:
    """Keep the text of an error that a client reports, each text once."""
    text = _NUMBER.sub("N", str(error))
    if text not in heard:
        heard.append(text)


def told_by(text: str) -> str:
    """Return the last error of a program; with a login, keep the other lines in `heard`."""
    if _GIVEN is None:
        return text[-300:]
    lines = text.splitlines()
    said = [line for line in lines if line.startswith("% ERROR")]
    for line in lines:
        if line not in said:
            hear(line)
    return " ".join(said[-1:])


class _Ear(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        hear(record.getMessage())


if _GIVEN is not None:
    logging.getLogger().addHandler(_Ear(logging.WARNING))


def librdkafka() -> dict[str, Any]:
    """Return librdkafka's settings, but for what shows a token."""
    if _GIVEN is None:
        return {}
    settings = {"security.protocol": _GIVEN.protocol}
    if _GIVEN.is_encrypted:
        settings["ssl.ca.location"] = _GIVEN.authority
    if _GIVEN.certificate:
        settings |= {"ssl.certificate.location": _GIVEN.certificate}
        settings |= {"ssl.key.location": _GIVEN.key}
    if _GIVEN.mechanism:
        settings["sasl.mechanism"] = _GIVEN.mechanism
    if _GIVEN.username:
        settings |= {"sasl.username": _GIVEN.username, "sasl.password": _GIVEN.password}
    return settings


def confluent() -> dict[str, Any]:
    """Return the settings of confluent-kafka."""
    settings = librdkafka()
    if _GIVEN is not None:
        settings |= {"error_cb": hear, "logger": _QUIET}
    if _GIVEN is not None and _GIVEN.mechanism == "OAUTHBEARER":
        token = _GIVEN.token
        settings["oauth_cb"] = lambda _: (token, time.time() + 600)
    return settings


def kcat() -> list[str]:
    """Return the options of kcat."""
    return [word for key, value in librdkafka().items() for word in ("-X", f"{key}={value}")]


def kafka_python() -> dict[str, Any]:
    """Return the settings of kafka-python."""
    if _GIVEN is None:
        return {}
    settings: dict[str, Any] = {"security_protocol": _GIVEN.protocol, **_login(_GIVEN)}
    settings["bootstrap_timeout_ms"] = OPERATION_SECONDS * 1_000
    if _GIVEN.is_encrypted:
        settings["ssl_cafile"] = _GIVEN.authority
    if _GIVEN.certificate:
        settings |= {"ssl_certfile": _GIVEN.certificate, "ssl_keyfile": _GIVEN.key}
    if _GIVEN.mechanism == "OAUTHBEARER":
        from kafka.net.sasl.oauth import AbstractTokenProvider

        settings["sasl_oauth_token_provider"] = _provider(AbstractTokenProvider, _GIVEN.token)
    return settings


def aiokafka() -> dict[str, Any]:
    """Return the settings of aiokafka."""
    if _GIVEN is None:
        return {}
    settings: dict[str, Any] = {"security_protocol": _GIVEN.protocol, **_login(_GIVEN)}
    if _GIVEN.is_encrypted:
        context = ssl.create_default_context(cafile=_GIVEN.authority)
        if _GIVEN.certificate:
            context.load_cert_chain(_GIVEN.certificate, _GIVEN.key)
        settings["ssl_context"] = context
    if _GIVEN.mechanism == "OAUTHBEARER":
        from aiokafka.abc import AbstractTokenProvider

        settings["sasl_oauth_token_provider"] = _provider(AbstractTokenProvider, _GIVEN.token, True)
    return settings


def _login(given: Security) -> dict[str, Any]:
    if not given.mechanism:
        return {}
    named = {"sasl_plain_username": given.username, "sasl_plain_password": given.password}
    return {"sasl_mechanism": given.mechanism, **(named if given.username else {})}


def _provider(base: type, token: str, is_awaited: bool = False) -> Any:
    """Return an object of the client's own kind that gives one token."""

    async def awaited(_: Any) -> str:
        return token

    give = awaited if is_awaited else lambda _: token
    return type("Provider", (base,), {"token": give, "extensions": lambda _: {}})()

"""Where a node's own tokens come from: client keys of a listener's mechanism (KIP-255, KIP-768).

`sasl.login.callback.handler.class` counts with the prefix of listener and mechanism only, as in
Kafka; the other keys also for all listeners.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.login.bearer import HANDLERS, TOKEN_KEYS, InvalidTokenSource, check_token_source
from kraft_wire.login.token_refresh import RefreshWindow
from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.oauth_reading import ALLOWED_URLS
from kraft_wire.node.config.token_settings import LinkTokenSettings
from kraft_wire.settings.broker import BROKER_KEYS

__all__ = ["read_link_tokens"]

_HANDLER: Final = "sasl.login.callback.handler.class"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_ENTRY: Final = "sasl.jaas.config"
_PREFIX: Final = "sasl.login.refresh."
_FACTORS: Final = (0.5, 1.0)
_JITTERS: Final = (0.0, 0.25)
_PERIODS: Final = (0, 900)
_BUFFERS: Final = (0, 3_600)


def read_link_tokens(values: ListenerValues, options: Mapping[str, str]) -> LinkTokenSettings:
    """Return where tokens come from; `options` are the login entry's. Errors: ConfigError."""
    window = RefreshWindow(
        _number(values, "window.factor", _FACTORS),
        _number(values, "window.jitter", _JITTERS),
        int(_number(values, "min.period.seconds", _PERIODS)),
        int(_number(values, "buffer.seconds", _BUFFERS)),
    )
    keys = {key: text for key in TOKEN_KEYS if (text := _text(values, key)) is not None}
    if keys.get(_HANDLER, HANDLERS[0]) not in HANDLERS:
        raise values.own_error(_HANDLER, "Java classes cannot be loaded")
    url = keys.get(_URL)
    if url is not None and url not in values.strings(ALLOWED_URLS):
        raise values.error(_URL, f"list it in {ALLOWED_URLS}, which has the permitted URLs")
    try:
        check_token_source(keys, options)
    except InvalidTokenSource as problem:
        raise values.own_error(_ENTRY, f"with it there are no tokens: {problem}") from problem
    return LinkTokenSettings(keys, options, window)


def _text(values: ListenerValues, key: str) -> str | None:
    if key == _HANDLER:
        return values.own_text(key)
    value = values.value(key) if key in BROKER_KEYS else None
    return None if value is None else str(value)


def _number(values: ListenerValues, name: str, bounds: tuple[float, float]) -> float:
    key = _PREFIX + name
    number = values.value(key)
    assert isinstance(number, int | float), (key, number)
    least, most = bounds
    if not least <= number <= most:
        raise values.error(key, f"it must be from {least} to {most}")
    return number

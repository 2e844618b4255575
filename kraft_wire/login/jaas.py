"""The grammar of `sasl.jaas.config`: one login module, a flag, options, a semicolon.

The rules are those of Kafka's JaasConfig over Java's StreamTokenizer: a word begins with a letter,
`_` or `$`, and never looks like a number; everything else is quoted. Errors never show a value: it
may be a password.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

__all__ = ["LOGIN_MODULES", "InvalidJaas", "LoginEntry", "parse_jaas"]

_SECURITY: Final = "org.apache.kafka.common.security"
LOGIN_MODULES: Final[Mapping[str, str]] = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}
"""Kafka's login modules of the supported mechanisms."""
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_IGNORED: Final = re.compile(r"(?:[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/)+", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9._$\u00a0-\U0010ffff-]*")
_STRING: Final = re.compile(r"\"((?:[^\"\\\r\n]|\\.)*)\"|'((?:[^'\\\r\n]|\\.)*)'")
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_END: Final = ";"


class InvalidJaas(Exception):
    """A text that is not a login configuration; the reason is one line without any value."""


class LoginEntry(NamedTuple):
    """A login module with its options, which may be secrets."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginEntry({self.module}, {len(self.options)} options)"


class _Token(NamedTuple):
    text: str
    is_text: bool
    """A word or a quoted string, not a sign."""


def parse_jaas(text: str) -> LoginEntry:
    """Return the one entry of a login configuration. Errors: InvalidJaas."""
    tokens = list(_tokens(text))
    if not tokens:
        raise InvalidJaas("Login module not specified in JAAS config")
    module = _text_of(tokens, 0, "Login module not specified in JAAS config")
    flag = _text_of(tokens, 1, "Login module control flag not specified in JAAS config")
    if flag.lower() not in _FLAGS:
        raise InvalidJaas(f"the control flag must be one of {', '.join(_FLAGS)}")
    options, position = {}, 2
    while position < len(tokens) and tokens[position] != _Token(_END, False):
        key = _text_of(tokens, position, "JAAS config entry not terminated by semi-colon")
        missing = f"Value not specified for key '{key}' in JAAS config"
        if tokens[position + 1 : position + 2] != [_Token("=", False)]:
            raise InvalidJaas(missing)
        options[key] = _text_of(tokens, position + 2, missing)
        position += 3
    if position == len(tokens):
        raise InvalidJaas("JAAS config entry not terminated by semi-colon")
    if position + 1 < len(tokens):
        raise InvalidJaas("there is more than one login module")
    return LoginEntry(module, options)


def _text_of(tokens: list[_Token], position: int, problem: str) -> str:
    if position >= len(tokens) or not tokens[position].is_text:
        raise InvalidJaas(problem)
    return tokens[position].text


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        if ignored := _IGNORED.match(text, position):
            position = ignored.end()
        elif word := _WORD.match(text, position):
            position = word.end()
            yield _Token(word[0], True)
        elif quoted := _STRING.match(text, position):
            position = quoted.end()
            yield _Token(_ESCAPE.sub(_unescaped, quoted[1] or quoted[2] or ""), True)
        elif text[position] in "\"'":
            raise InvalidJaas("a quoted text does not end on its line")
        elif text[position] == "/":
            position = _line_end(text, position)
        else:
            yield _Token(text[position], False)
            position += 1


def _line_end(text: str, position: int) -> int:
    """Return the end of a comment, which Java's tokenizer begins at a single slash."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _unescaped(escape: re.Match[str]) -> str:
    character: str = escape[1]
    if character[0] in "01234567":
        return chr(int(character, 8))
    return _LETTERS.get(character, character)

"""The subject of a certificate as Java writes it (RFC 2253), for the principals of TLS clients.

The last part comes first. Nine types have keywords; any other is its dotted number with the value's
encoding in hex. The certificate was verified before, but its owner chose its names.
"""

from typing import Final

from kraft_wire.keystores.der import Element, elements

__all__ = ["MalformedCertificate", "alternative_names", "subject_name"]

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8, printable, T.61, IA5, general, universal and BMP strings."""
_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_SUBJECT_AT: Final = 4
"""Index of the subject: after serial number, algorithm, issuer and validity."""
_ESCAPED: Final = frozenset(',+"\\<>;=')


class MalformedCertificate(ValueError):
    """Bytes that are not a certificate."""


def subject_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER form. Errors: MalformedCertificate."""
    try:
        signed = list(elements(next(elements(next(elements(certificate)).content)).content))
        if signed[0].tag == _VERSION_TAG:
            del signed[0]
        parts = list(elements(signed[_SUBJECT_AT].content))
        return ",".join("+".join(map(_attribute, elements(each.content))) for each in parts[::-1])
    except (IndexError, StopIteration, ValueError) as error:
        raise MalformedCertificate("the subject cannot be read") from error


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """Return the encodings of a certificate's alternative names. Errors: MalformedCertificate."""
    try:
        signed = elements(next(elements(next(elements(certificate)).content)).content)
        lists = [next(elements(each.content)) for each in signed if each.tag == _EXTENSIONS_TAG]
        for extension in (part for each in lists for part in elements(each.content)):
            kind, *_, value = elements(extension.content)
            if _dotted(kind.content) == _ALTERNATIVE_NAMES:
                names = next(elements(value.content))
                return frozenset(each.encoded for each in elements(names.content))
        return frozenset()
    except (IndexError, StopIteration, ValueError) as error:
        raise MalformedCertificate("the alternative names cannot be read") from error


def _attribute(element: Element) -> str:
    kind, value = elements(element.content)
    number = _dotted(kind.content)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _dotted(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _escaped(text: str) -> str:
    """Escape the characters of RFC 2253, and `=` and NUL, as Java does."""
    shown = ["\\" + each if each in _ESCAPED else each for each in text]
    shown = ["\\00" if each == "\0" else each for each in shown]
    if shown and shown[0] == "#":
        shown[0] = "\\#"
    begin = len(text) - len(text.lstrip(" "))
    end = len(text.rstrip(" "))
    for at, each in enumerate(text):
        if each == " " and (at < begin or at >= end):
            shown[at] = "\\ "
    return "".join(shown)

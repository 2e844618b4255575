"""Names are read from certificates that OpenSSL made; damaged ones are refused with one error."""

import ssl
from collections.abc import Callable

import pytest

from kraft_wire.node.security.subject_name import (
    MalformedCertificate,
    alternative_names,
    subject_name,
)
from tests.certificates import Authority


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A certificate with a subject of two parts and three alternative names, in DER form."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    hosts = "DNS:a.example,IP:127.0.0.1,DNS:b.example"
    signed = authority.signed("node", subject="/O=ours/CN=node", hosts=hosts)
    return ssl.PEM_cert_to_DER_cert(signed.chain.read_text())


def test_names_are_those_that_openssl_was_given(certificate: bytes) -> None:
    assert subject_name(certificate) == "CN=node,O=ours"
    # RFC 5280: dNSName is the context tag 2, iPAddress 7.
    hosts = {b"\x82\x09a.example", b"\x82\x09b.example", b"\x87\x04\x7f\x00\x00\x01"}
    assert alternative_names(certificate) == hosts


@pytest.mark.parametrize("read", [subject_name, alternative_names])
def test_certificate_that_is_cut_off_anywhere_is_refused(
    certificate: bytes, read: Callable[[bytes], object]
) -> None:
    for size in range(len(certificate)):
        with pytest.raises(MalformedCertificate, match="cannot be read"):
            read(certificate[:size])


@pytest.mark.parametrize("read", [subject_name, alternative_names])
def test_any_changed_byte_gives_other_names_or_is_refused(
    certificate: bytes, read: Callable[[bytes], object]
) -> None:
    kind = type(read(certificate))
    refused = 0
    for place in range(len(certificate)):
        for flipped in (0x01, 0x80, 0xFF):
            damaged = bytearray(certificate)
            damaged[place] ^= flipped
            try:
                assert isinstance(read(bytes(damaged)), kind)
            except MalformedCertificate:
                refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("#1", "\\#1"),
        ("a#1", "a#1"),
        (" a b ", "\\ a b\\ "),
        ("  ", "\\ \\ "),
        ('a,b+c"d', 'a\\,b\\+c\\"d'),
        ("a\\b<c>d;e=f", "a\\\\b\\<c\\>d\\;e\\=f"),
        ("a\0b", "a\\00b"),
    ],
)
def test_characters_with_a_meaning_are_escaped(written: str, shown: str) -> None:
    """RFC 2253, section 2.4: `#` at the beginning, blanks at both ends, and the special ones.

    `=` and NUL are escaped as by X500Principal of Java, whose text is the name of a principal.
    """
    assert subject_name(certificate_of(written)) == f"CN={shown}"


def certificate_of(common_name: str) -> bytes:
    """Return the beginning of a certificate with one name; all of it is shorter than 128 bytes."""

    def element(tag: int, *parts: bytes) -> bytes:
        content = b"".join(parts)
        return bytes([tag, len(content)]) + content

    attribute = element(0x30, b"\x06\x03\x55\x04\x03", element(0x0C, common_name.encode()))
    subject = element(0x30, element(0x31, attribute))
    before = b"".join(element(0x30) for _ in range(3))
    return element(0x30, element(0x30, element(2, b"\x01"), before, subject))

"""The grammar of login entries: what 4.3.1 reads and what it refuses, tried one by one."""

import pytest

from kraft_wire.login.jaas import InvalidJaas, parse_jaas

HEAD = "a.b.Module required "


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ('user_ann="x" user_bob="y"', {"user_ann": "x", "user_bob": "y"}),
        ("a=b c=d-e.f$_9", {"a": "b", "c": "d-e.f$_9"}),
        ('a = "1"  b\t=\n\'two "2"\'', {"a": "1", "b": 'two "2"'}),
        (r'a="\n\t\\\"\'\101\0"', {"a": "\n\t\\\"'A\0"}),
        ('a=""', {"a": ""}),
        ('a="x" a="y"', {"a": "y"}),
        ('"user_g@h.com"="w"', {"user_g@h.com": "w"}),
        ("/* user_x=y; */ a=b // c=d;\n", {"a": "b"}),
        ('a="/* // */"', {"a": "/* // */"}),
        ("ä=ö", {"ä": "ö"}),
        ("a=b / c=d;\n", {"a": "b"}),
        ("a=b /c /* \n e=f", {"a": "b", "e": "f"}),
    ],
)
def test_an_entry_is_read_as_kafka_reads_it(text: str, options: dict[str, str]) -> None:
    """SEC-PLAIN-07: words, quoted texts with escapes, comments, the last of two."""
    entry = parse_jaas(f"{HEAD}{text};")
    assert (entry.module, entry.options) == ("a.b.Module", options)


@pytest.mark.parametrize("flag", ["required", "Requisite", "SUFFICIENT", "optional"])
def test_every_flag_is_taken_in_any_case(flag: str) -> None:
    """SEC-PLAIN-07: flags mean the same."""
    assert parse_jaas(f"m {flag};").module == "m"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Login module not specified"),
        (" // m required;", "Login module not specified"),
        ("m", "flag not specified"),
        ("m;", "flag not specified"),
        ("m needed;", "control flag must be"),
        ("m required", "not terminated by semi-colon"),
        ("m required a=b", "not terminated by semi-colon"),
        ("m required a=b c;", "Value not specified for key 'c'"),
        ("m required a=;", "Value not specified for key 'a'"),
        ("m required user_a=123;", "Value not specified for key 'user_a'"),
        ("m required x=-5;", "Value not specified for key 'x'"),
        ("m required x=.5;", "Value not specified for key 'x'"),
        ("m required a@b=c;", "Value not specified for key 'a'"),
        ("m required 1a=c;", "not terminated by semi-colon"),
        ('m required a="b\nc";', "does not end on its line"),
        ('m required a="b;', "does not end on its line"),
        ("m required a=b / c=d;", "not terminated by semi-colon"),
        ("m required; n required;", "more than one login module"),
    ],
)
def test_what_kafka_refuses_is_refused(text: str, problem: str) -> None:
    """SEC-PLAIN-07: bare words are never numbers, one entry, a semicolon at its end."""
    with pytest.raises(InvalidJaas, match=problem):
        parse_jaas(text)


def test_no_refusal_and_no_entry_shows_a_password() -> None:
    """SEC-TLS-13: values of options may be secrets."""
    with pytest.raises(InvalidJaas) as refusal:
        parse_jaas("m required user_ann=hunter2 b;")
    assert "hunter2" not in str(refusal.value)
    assert "hunter2" not in repr(parse_jaas("m required user_ann=hunter2;"))

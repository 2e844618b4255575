"""The format of java.util.Properties, by its own documentation and by itself."""

import random
import subprocess
from pathlib import Path

import pytest

from kraft_wire.properties import Property, parse_properties

SIGNS = ["a", "b", "=", ":", " ", "\t", "\f", "\\", "\n", "\r", "\r\n", "#", "!"]
SIGNS += ["\\u0041", "\\ud83d\\ude00", "\u2028", "\x85", "\x1c", "\\\\", "\\\n", "\\n", "\u00e9"]
TEXTS = 5_000
BETWEEN = "\x01"

READER = """
import java.io.*; import java.nio.file.*; import java.util.*;
class Reader {
    public static void main(String[] arguments) throws Exception {
        for (String text : Files.readString(Path.of(arguments[0])).split("\\u0001", -1)) {
            Properties read = new Properties();
            read.load(new StringReader(text));
            StringJoiner shown = new StringJoiner(" ");
            for (String key : read.stringPropertyNames())
                shown.add(hex(key) + "=" + hex(read.getProperty(key)));
            System.out.println(shown);
        }
    }
    static String hex(String text) throws Exception {
        return HexFormat.of().formatHex(text.getBytes("UTF-16BE"));
    }
}
"""


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("Truth = Beauty", "Truth", "Beauty"),
        ("  Truth:Beauty", "Truth", "Beauty"),
        ("Truth                    :Beauty", "Truth", "Beauty"),
        ("cheeses", "cheeses", ""),
        ("a b c", "a", "b c"),
        (r"a\=b\:c\ d = x", "a=b:c d", "x"),
        (r"path=C:\\data\ttab", "path", "C:\\data\ttab"),
        (r"umlaut=\u00e4\u00zz", "umlaut", "äu00zz"),
        (r"short=\u00e", "short", "u00e"),
        (r"none=\u", "none", "u"),
        (r"words=C:\users", "words", "C:users"),
        ("a=1\\\n    ,2", "a", "1,2"),
        ("a=b\\", "a", "b"),
        ("a=b\\\n", "a", "b"),
        ("a=b\\\n  c\\", "a", "bc"),
        ("a=b=c", "a", "b=c"),
        ("a=1 ", "a", "1 "),
    ],
)
def test_one_entry(text: str, key: str, value: str) -> None:
    assert parse_properties(text) == [Property(key, value, 1)]


def test_entries_know_their_lines_among_comments_and_continuations() -> None:
    text = "# c\n! c\n\n a=1\nfruits=apple, \\\n   # banana\nb\na=2"
    assert parse_properties(text) == [
        Property("a", "1", 4),
        Property("fruits", "apple, # banana", 5),
        Property("b", "", 7),
        Property("a", "2", 8),
    ]


@pytest.mark.java
def test_random_texts_say_to_us_what_they_say_to_java(tmp_path: Path) -> None:
    random_source = random.Random(5)
    drawn = [
        "".join(random_source.choices(SIGNS, k=random_source.randint(1, 14))) for _ in range(TEXTS)
    ]
    texts = [f"{text}\nlast" for text in drawn]
    (tmp_path / "Reader.java").write_text(READER)
    (tmp_path / "texts").write_bytes(BETWEEN.join(texts).encode())
    command = ["java", str(tmp_path / "Reader.java"), str(tmp_path / "texts")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    theirs = [sorted(line.split(" ")) for line in done.stdout.split("\n")[:-1]]
    ours = [shown({each.key: each.value for each in parse_properties(text)}) for text in texts]
    differing = [each for each in zip(texts, ours, theirs, strict=True) if each[1] != each[2]]
    assert not differing, differing[:3]


def shown(entries: dict[str, str]) -> list[str]:
    return sorted(
        f"{key.encode('utf-16-be').hex()}={value.encode('utf-16-be').hex()}"
        for key, value in entries.items()
    )

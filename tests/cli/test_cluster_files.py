"""What `cluster up` writes for its nodes says what was asked for, to our reader and to Java's."""

import subprocess
from pathlib import Path

import pytest

from kraft_wire.cli.cluster import up
from kraft_wire.cli.cluster.files import ClusterFiles
from kraft_wire.cli.cluster.setup import ClusterPlan, make_cluster
from kraft_wire.cli.properties_file import property_line, read_properties
from kraft_wire.node.config.node_config import load_config

ODD_TEXTS = (
    "",
    " in front and behind ",
    "RULE:^CN=(\\w+),.*$/$1/",
    "ends with \\",
    "\\u0041",
    "two\nlines\r\n\tand\fmore",
    "# ! = :",
    "\u00e9\u20ac \x85 \u2028 \x1c",
    "{\x00}",
    "\U0001f600",
)

READER = """
import java.io.*; import java.nio.charset.StandardCharsets; import java.util.*;
class Reader {
    public static void main(String[] arguments) throws Exception {
        Properties read = new Properties();
        try (InputStream file = new FileInputStream(arguments[0])) { read.load(file); }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (int number = 0; read.containsKey("key " + number); number++) {
            byte[] value = read.getProperty("key " + number).getBytes(StandardCharsets.UTF_8);
            out.println(HexFormat.of().formatHex(value));
        }
    }
}
"""


def odd_file(directory: Path) -> Path:
    path = directory / "odd.properties"
    lines = [property_line(f"key {number}", text) for number, text in enumerate(ODD_TEXTS)]
    path.write_text("".join(lines), encoding="ascii")
    return path


def test_printed_characters_of_ascii_are_written_as_they_are() -> None:
    assert property_line("~", "} ~ \x7f") == "~=} ~ \\u007f\n"


def test_a_value_is_read_as_it_was_given(tmp_path: Path) -> None:
    read = read_properties(str(odd_file(tmp_path)))
    assert [each.value for each in read.values()] == list(ODD_TEXTS)


@pytest.mark.java
def test_java_reads_a_value_as_it_was_given(tmp_path: Path) -> None:
    """`Properties.load` takes a file's bytes for ISO 8859-1."""
    (tmp_path / "Reader.java").write_text(READER)
    command = ["java", str(tmp_path / "Reader.java"), str(odd_file(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    values = [bytes.fromhex(line).decode("utf-8") for line in done.stdout.splitlines()]
    assert values == list(ODD_TEXTS)


@pytest.mark.parametrize("name", ["a b", "a\\b", "a\\u0041b", "\u00e9", "a#b", "a=b:c", "a\nb"])
def test_a_cluster_lies_where_it_is_said_to_lie(tmp_path: Path, name: str) -> None:
    files = ClusterFiles(tmp_path / name)
    make_cluster(files, ClusterPlan(controllers=1, overrides={"broker.rack": "r\\1"}))
    read = read_properties(str(files.properties(1)))
    assert load_config(read, {}, file_name="properties").log_dirs == (str(files.data(1)),)
    assert read["broker.rack"].value == "r\\1"


@pytest.mark.parametrize(
    ("plan", "counts", "brokers"),
    [
        (ClusterPlan(controllers=1), "1 controller", []),
        (ClusterPlan(controllers=3, brokers=2), "3 controllers and 2 brokers", [4, 5]),
        (ClusterPlan(controllers=0, combined=1), "1 combined node", [1]),
        (ClusterPlan(controllers=1, brokers=1, is_secured=True), "1 controller and 1 broker", [2]),
    ],
)
def test_commands_to_go_on_with_are_those_that_the_cluster_can_serve(
    tmp_path: Path, plan: ClusterPlan, counts: str, brokers: list[int]
) -> None:
    files = ClusterFiles(tmp_path)
    state = make_cluster(files, plan)
    first, *lines = up._welcome(files, state).splitlines()
    assert first == f"kraft-wire cluster: {counts} in {tmp_path}; Ctrl-C stops all"
    client, admin = (
        f" --command-config {path}" if plan.is_secured else ""
        for path in (files.secrets.client_config, files.secrets.admin_config)
    )
    addresses = ",".join(state.nodes[each].address for each in brokers)
    of_brokers = [
        f"export KRAFT_WIRE_BOOTSTRAP_SERVER={addresses}",
        f"kraft-wire topics create orders --partitions 3{client}",
        f"kraft-wire topics describe orders{client}",
        *([f"kraft-wire acls list{admin}"] if plan.is_secured else []),
    ]
    controllers = ",".join(each.controller_address for each in state.controllers)
    assert lines == [
        *(of_brokers if brokers else []),
        f"kraft-wire quorum watch -c {controllers}{admin}",
        f"kraft-wire cluster status --dir {tmp_path}",
    ]

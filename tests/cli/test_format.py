"""`kraft-wire format` against Apache's own StorageTool: same arguments, same files."""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import pbkdf2_hmac
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.format.command import app
from kraft_wire.cli.format.plan import FormatRefused
from kraft_wire.cli.format.scram import parse_scram
from kraft_wire.metadata.features import RELEASE_LEVELS, bootstrap_records
from kraft_wire.node.disks.checkpoint_files import bootstrap_checkpoint_bytes
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.java_process import run_java
from tests.apache.node import ApacheNode

CLUSTER_ID = "kWjudgeAAAAAAAAAAAAAAA"
APACHE_DEFAULTS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 0,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
QUORUM_CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
STATIC = "controller.quorum.voters=1@127.0.0.1:9093"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:9093"
BROKER = """\
process.roles=broker
node.id=101
listeners=PLAINTEXT://127.0.0.1:9092
"""
"""Of a node that is only a broker; what is given last counts."""
CONTROLLER = f"process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:9093\n{STATIC}"
SALT = 'salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="'


def properties(directory: Path, quorum: str) -> Path:
    """Write a node's properties with two log directories; HERE is where they are."""
    directory.mkdir(parents=True)
    path = directory / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"log.dirs={directory}/a,{directory}/b\n{quorum.replace('HERE', str(directory))}\n"
    )
    return path


def ours(path: Path, *arguments: str) -> tuple[int, str]:
    """Run our command; return exit code and all that it said."""
    command = ["-t", CLUSTER_ID, "-c", str(path), *arguments]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    return done.exit_code, done.output


def theirs(path: Path, *arguments: str) -> str:
    """Run Apache's command, which must succeed; return what it says."""
    done = run_java(
        "kafka.tools.StorageTool", ["format", "-t", CLUSTER_ID, "-c", str(path), *arguments]
    )
    assert done.exit_code == 0, done.text
    return done.stdout


def without_times(data: bytes) -> bytes:
    """Return a checkpoint with its timestamps, and the checksums over them, set to 0."""
    zeroed = bytearray(data)
    position = 0
    for batch in parse_batches(memoryview(data)):
        stamp = batch.max_timestamp.to_bytes(8, "big")
        for start, end in ((17, 21), (27, 35), (35, 43)):
            zeroed[position + start : position + end] = bytes(end - start)
        body = bytes(zeroed[position : position + batch.size_bytes])
        header_time = body.rfind(stamp[:6])  # in the header of a quorum's checkpoint
        if batch.is_control and header_time > 0:
            zeroed[position + header_time : position + header_time + 8] = bytes(8)
        position += batch.size_bytes
    return bytes(zeroed)


def identity(directory: Path) -> dict[str, str]:
    """Return meta.properties without comments."""
    lines = (directory / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


FORMATTED: dict[str, tuple[str, list[str]]] = {
    "static": (STATIC, []),
    "4.0": (STATIC, ["--release-version", "4.0"]),
    "3.3-IV3": (STATIC, ["--release-version", "3.3-IV3"]),
    "SHA-256": (
        STATIC,
        ["--add-scram", f"SCRAM-SHA-256=[name=al,password=x,iterations=8192,{SALT}]"],
    ),
    "SHA-512": (STATIC, ["--add-scram", f'SCRAM-SHA-512=[name=al,password="x y",{SALT}]']),
    "kraft.version": (DYNAMIC, ["--no-initial-controllers", "--feature", "kraft.version=1"]),
    "two voters": (
        DYNAMIC,
        [
            "--initial-controllers",
            "1@localhost:9093:ulKdNaW-TEGJrNOp2H6_aQ,2@h:9094:Jyno6mkdTyCZ1tsbAZSXBg",
        ],
    ),
    "second of two voters": (
        f"{DYNAMIC}\nnode.id=2",
        ["-I", "1@h:9094:Jyno6mkdTyCZ1tsbAZSXBg,2@h:9094:ulKdNaW-TEGJrNOp2H6_aQ"],
    ),
    "no voter": (DYNAMIC, ["-I", "2@h:9094:Jyno6mkdTyCZ1tsbAZSXBg"]),
    "metadata in the second": (f"{STATIC}\nmetadata.log.dir=HERE/b", []),
    "metadata apart": (
        f"{DYNAMIC}\nmetadata.log.dir=HERE/m",
        ["-I", "1@h:9094:Jyno6mkdTyCZ1tsbAZSXBg"],
    ),
    "broker of a static quorum": (f"{STATIC}\n{BROKER}", []),
    "broker": (f"{DYNAMIC}\n{BROKER}", []),
    "broker without voters": (f"{DYNAMIC}\n{BROKER}", ["--no-initial-controllers"]),
}
RECORDED = Path(__file__).parent / "observed" / "formatted.json"
"""What Apache's tool leaves in these directories and says: python -m tests.cli.record_formatted."""


def left_in(directory: Path, said: str, arguments: Sequence[str]) -> dict[str, object]:
    """All files, without times and ids that are drawn, and the lines about the directories."""
    found: dict[str, object] = {}
    for name in ("a", "b", "m"):
        for path in sorted(walk(directory / name)):
            relative = str(path.relative_to(directory))
            if path.suffix == ".checkpoint":
                found[relative] = without_times(path.read_bytes()).hex()
            elif path.name == "meta.properties":
                lines = identity(path.parent)
                if lines["directory.id"] not in " ".join(arguments):
                    del lines["directory.id"]
                found[relative] = lines
            else:
                found[relative] = path.read_text()
    told = [line.replace(f"{directory}/", "") for line in said.splitlines()]
    return {**found, "said": sorted(line for line in told if line.startswith("Formatting"))}


def formatted_by_apache(directory: Path, case: str) -> dict[str, object]:
    quorum, arguments = FORMATTED[case]
    file = properties(directory, quorum)
    return left_in(directory, theirs(file, *arguments), arguments)


@pytest.mark.parametrize("case", FORMATTED)
def test_directory_holds_what_apaches_tool_writes(tmp_path: Path, case: str) -> None:
    """SEC-SCRAM-14: a credential is a record of version 0 behind those of the features."""
    quorum, arguments = FORMATTED[case]
    file = properties(tmp_path / "ours", quorum)
    exit_code, said = ours(file, *arguments)
    assert exit_code == 0, said
    assert left_in(file.parent, said, arguments) == json.loads(RECORDED.read_text())[case]


@pytest.mark.java
@pytest.mark.parametrize("case", FORMATTED)
def test_apaches_tool_writes_what_is_recorded(tmp_path: Path, case: str) -> None:
    found = formatted_by_apache(tmp_path / "theirs", case)
    assert found == json.loads(RECORDED.read_text())[case]


def walk(directory: Path) -> list[Path]:
    """Every file below a directory."""
    return [path for path in directory.rglob("*") if path.is_file()]


@pytest.mark.java
def test_bootstrap_checkpoint_of_apaches_default_features_is_its_411_bytes(tmp_path: Path) -> None:
    theirs(properties(tmp_path / "theirs", STATIC))
    data = (tmp_path / "theirs" / "a" / "bootstrap.checkpoint").read_bytes()
    made = bootstrap_checkpoint_bytes(bootstrap_records(APACHE_DEFAULTS), 1_795_227_197_047)
    assert len(made) == 411
    assert without_times(made) == without_times(data)


@pytest.mark.java
def test_standalone_quorum_has_one_voter_with_the_directory_of_the_log(tmp_path: Path) -> None:
    file = properties(tmp_path / "ours", DYNAMIC)
    exit_code, said = ours(file, "--standalone")
    assert exit_code == 0, said
    assert "dynamic metadata voter directory" in said
    checkpoint = file.parent / "a" / QUORUM_CHECKPOINT
    assert checkpoint.stat().st_size == 241
    assert checkpoint.stat().st_mode & 0o777 == 0o400
    dumped = run_java(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--cluster-metadata-decoder", "--files", str(checkpoint)],
    )
    assert dumped.exit_code == 0, dumped.text
    directory_id = identity(file.parent / "a")["directory.id"]
    assert f'"voterDirectoryId":"{directory_id}"' in dumped.stdout
    assert '"port":9093' in dumped.stdout
    assert "isvalid: false" not in dumped.stdout


class NodeFormattedByUs(ApacheNode):
    """Apache's server over a directory that our command formatted."""

    def format(self) -> None:
        self.configure()
        exit_code, said = ours(self.properties_file)
        assert exit_code == 0, said


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_starts_on_a_directory_that_we_formatted(tmp_path: Path) -> None:
    with NodeFormattedByUs(tmp_path / "node") as node:
        assert identity(node.data)["cluster.id"] == CLUSTER_ID


@pytest.mark.java
@pytest.mark.slow
def test_controller_alone_is_formatted_as_by_apaches_tool(tmp_path: Path) -> None:
    apaches = properties(tmp_path / "theirs", CONTROLLER)
    made = properties(tmp_path / "ours", CONTROLLER)
    theirs(apaches)
    assert ours(made)[0] == 0
    checkpoints = [each.parent / "a" / "bootstrap.checkpoint" for each in (apaches, made)]
    wanted, found = (without_times(each.read_bytes()) for each in checkpoints)
    assert found == wanted


@pytest.mark.parametrize(
    ("quorum", "arguments", "exit_code", "reason"),
    [
        (STATIC, ["--standalone"], 2, "makes the quorum static"),
        (STATIC, ["-s", "-N"], 2, "only one of"),
        (STATIC, ["-f", "kraft.version=1"], 2, "a static quorum, not 1: for a dynamic one remove"),
        (DYNAMIC, [], 2, "use one of --standalone"),
        (f"{DYNAMIC}\n{BROKER}", ["-s"], 2, "You can only use --standalone on a controller."),
        (DYNAMIC, ["-s", "-f", "kraft.version=0"], 2, "for a dynamic quorum, not 0: omit"),
        (
            STATIC,
            ["-r", "3.9", "-f", "eligible.leader.replicas.version=1"],
            2,
            "could not be set to 1 because it depends on metadata.version level 23",
        ),
        (CONTROLLER, ["-f", "group.version=9"], 2, "No feature:group.version with feature level 9"),
        (CONTROLLER, ["-f", "group.version=-1"], 2, "with feature level -1"),
        (DYNAMIC, ["-I", "1@localhost"], 2, "id@host:port:directoryId"),
        (DYNAMIC, ["-I", "1@h:1:x"], 2, "22-character id"),
        (DYNAMIC, ["-I", "2147483648@h:1:ulKdNaW-TEGJrNOp2H6_aQ"], 2, "id@host:port:directoryId"),
        (DYNAMIC, ["-I", ",".join(["1@h:1:ulKdNaW-TEGJrNOp2H6_aQ"] * 2)], 2, "twice"),
        (STATIC, ["-r", "3.4", "-S", "SCRAM-SHA-256=[name=a,password=b]"], 2, "3.5-IV2 or later"),
        ("num.partitions=none", [], 2, "num.partitions=none"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, quorum: str, arguments: list[str], exit_code: int, reason: str
) -> None:
    """SEC-SCRAM-15: also a credential where the metadata.version has none."""
    file = properties(tmp_path / "node", quorum)
    code, said = ours(file, *arguments)
    assert (code, reason in said) == (exit_code, True), said
    assert not (file.parent / "a").exists()


LEVELS_REFUSED = [
    *(["-r", release] for release in ("3.3-IV2", "4.3.", "4.4-IV0", "")),
    *(["-f", f"metadata.version={level}"] for level in ("-1", "31", "99999", "4.0")),
    *(["-f", text] for text in ("metadata.version", "nothing=0")),
    ["-r", "4.0", "-f", "metadata.version=25"],
]
"""What Apache's tool refuses with a sentence that is ours as well, but for what 4.4 may bring."""


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("arguments", LEVELS_REFUSED, ids=" ".join)
def test_level_is_refused_as_apaches_tool_refuses_it(tmp_path: Path, arguments: list[str]) -> None:
    file = properties(tmp_path / "node", STATIC)
    code, said = ours(file, *arguments)
    done = run_java(
        "kafka.tools.StorageTool", ["format", "-t", CLUSTER_ID, "-c", str(file), *arguments]
    )
    theirs = next(line for line in done.text.splitlines() if "SLF4J" not in line)
    sentence = theirs.rpartition("Exception: ")[2].replace("from 7 to 31.", "from 7 to 30.")
    assert (code, done.exit_code) == (2, 1), (said, done.text)
    assert not (file.parent / "a").exists()
    known = "kraft.version, metadata.version, share.version"
    assert said == f"kraft-wire format: {sentence}\n".replace("kraft.version, share.version", known)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("release", ["3.7.2", "4.0-IV1.9", "4.3..1"])
def test_release_is_what_it_is_for_apaches_tool(tmp_path: Path, release: str) -> None:
    file = properties(tmp_path / "node", STATIC)
    theirs(file, "-r", release)
    found = file.parent / "a" / "bootstrap.checkpoint"
    wanted = without_times(found.read_bytes())
    other = properties(tmp_path / "ours", STATIC)
    assert ours(other, "-r", release)[0] == 0
    made = other.parent / "a" / "bootstrap.checkpoint"
    assert without_times(made.read_bytes()) == wanted


def test_formatted_directory_is_refused_or_left_alone(tmp_path: Path) -> None:
    file = properties(tmp_path / "node", STATIC)
    assert ours(file)[0] == 0
    before = {path: path.read_bytes() for path in walk(file.parent / "a")}
    code, said = ours(file)
    assert code == 1
    assert "already formatted" in said
    assert ours(file, "--ignore-formatted") == (
        0,
        "All of the log directories are already formatted.\n",
    )
    for path in walk(file.parent / "b"):
        path.unlink()
    code, said = ours(file, "-g")
    assert code == 0
    assert "data directory" in said
    assert {path: path.read_bytes() for path in walk(file.parent / "a")} == before


@pytest.mark.parametrize("cluster_id", ["", " ", "ü", "two\nlines", "\t"])
def test_cluster_id_that_no_file_could_hold_is_refused(tmp_path: Path, cluster_id: str) -> None:
    file = properties(tmp_path / "node", STATIC)
    done = CliRunner().invoke(app, ["-t", cluster_id, "-c", str(file)])
    assert (done.exit_code, done.output.count("\n")) == (2, 1), done.output
    assert not (file.parent / "a").exists()


@pytest.mark.parametrize("options", [[], ["-g"]], ids=["", "ignore formatted"])
@pytest.mark.parametrize(
    ("cluster_id", "node_id", "give"),
    [
        ("other", 1, f"use --cluster-id {CLUSTER_ID}, or"),
        (CLUSTER_ID, 2, "use node.id=1, or"),
        ("other", 2, f"use --cluster-id {CLUSTER_ID} and node.id=1, or"),
    ],
)
def test_directory_of_another_node_is_refused_and_left_alone(
    tmp_path: Path, options: list[str], cluster_id: str, node_id: int, give: str
) -> None:
    file = properties(tmp_path / "node", STATIC)
    assert ours(file)[0] == 0
    before = {path: path.read_bytes() for path in walk(tmp_path)}
    text = (
        file.read_text().replace("node.id=1", f"node.id={node_id}").replace("=1@", f"={node_id}@")
    )
    other = tmp_path / "other.properties"
    other.write_text(text)
    done = CliRunner().invoke(app, ["-t", cluster_id, "-c", str(other), *options])
    assert done.exit_code == 2, done.output
    assert done.output.count("\n") == 1
    assert f"belongs to node 1 of cluster {CLUSTER_ID}: set another directory" in done.output
    assert give in done.output
    other.unlink()
    assert {path: path.read_bytes() for path in walk(tmp_path)} == before


def test_missing_configuration_is_one_clear_line(tmp_path: Path) -> None:
    code, said = ours(tmp_path / "none.properties")
    assert code == 2
    assert said.count("\n") == 1
    assert "No such file" in said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SCRAM-SHA-1=[name=a,password=b]", "as mechanism"),
        ("SCRAM-SHA-256=name=a", "as mechanism"),
        ("SCRAM-SHA-256=[password=b]", "name of a user"),
        ("SCRAM-SHA-256=[name=a]", "one of password"),
        ("SCRAM-SHA-256=[name=a,password=b,saltedpassword=c]", "one of password"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=1]", "4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=b,salt=!]", "not base64"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YWI=]", "needs the salt"),
        ("SCRAM-SHA-256=[name=a,,]", "cannot be parsed"),
        ("SCRAM-SHA-256=[name=a,password=b,user=c]", "knows no user, only name, password"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=16385]", "4096 to 16384"),
    ],
)
def test_wrong_credential_is_refused_with_its_reason(text: str, reason: str) -> None:
    """SEC-SCRAM-14: as 4.3.1 does, which names what it does not know."""
    with pytest.raises(FormatRefused, match=reason):
        parse_scram(text)


def test_salted_password_makes_the_keys_of_the_password() -> None:
    """SEC-SCRAM-14: the other form of what Apache's tool was given for the recorded directory."""
    salt = SALT.removeprefix('salt="').removesuffix('"')
    salted = b64encode(pbkdf2_hmac("sha256", b"x", b64decode(salt), 8192)).decode()
    form = f'SCRAM-SHA-256=[salt={salt},iterations=8192,saltedpassword="{salted}",name="al"]'
    recorded = bytes.fromhex(json.loads(RECORDED.read_text())["SHA-256"]["a/bootstrap.checkpoint"])
    made = parse_scram(form)
    assert made.stored_key in recorded
    assert made.server_key in recorded
    assert (made.name, made.mechanism, made.salt) == ("al", 1, b64decode(salt))


def test_releases_are_numbered_without_gaps() -> None:
    assert list(RELEASE_LEVELS.values()) == list(range(7, 31))

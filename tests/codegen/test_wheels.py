"""The compiled wheel: which modules, what mypyc compiles wrongly, and that it does the same.

A few modules are compiled here, without optimisation, so that it takes less than two minutes.
"""

import ast
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from codegen.wheels import ROOT, compile_wheel, compiled_modules, make_pure_wheel, platform_tag

_FEW = [
    "kraft_wire/wire/varint.py",
    "kraft_wire/wire/records/record_batch.py",
    "kraft_wire/wire/records/record_skim.py",
    "kraft_wire/storage/segment.py",
]
_WHERE = "import kraft_wire.storage.segment as it; print(it.__file__)"
_ROUND_TRIP = """
from confluent_kafka import Consumer, Producer
from kraft_wire.testing import Cluster

with Cluster(topics={"compiled": 1}) as cluster:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(300):
        producer.produce("compiled", key=b"key", value=b"%d" % number)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["compiled"])
    values = []
    while len(values) < 300:
        message = consumer.poll(30)
        assert message is not None and message.error() is None, message
        values.append(int(message.value()))
    consumer.close()
    print(values == list(range(300)))
"""
_SIMULATION = ("--brokers", "0", "--seeds", "0:3", "--events", "1000", "--jobs", "1", "--json")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    pure = make_pure_wheel(folder)
    assert pure.name.endswith("-py3-none-any.whl")
    wheel = compile_wheel(pure, _FEW, optimization=0)
    assert wheel.name.endswith(f"-{platform_tag()}.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def _run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_that_are_compiled_exist_once() -> None:
    listed = compiled_modules()
    assert len(listed) == len(set(listed)) > 0
    assert [path for path in listed if not (ROOT / path).is_file()] == []


def test_no_compiled_function_imports_a_module() -> None:
    """It would find None: mypyc 2.4 binds only names that a module has."""
    wrong = [
        f"{path}:{node.lineno}"
        for path in compiled_modules()
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.ImportFrom) and node.col_offset > 0 and node.module
        for each in node.names
        if Path(ROOT, *node.module.split("."), f"{each.name}.py").exists()
    ]
    assert wrong == []


@pytest.mark.compiler
@pytest.mark.slow
@pytest.mark.client
def test_a_compiled_node_serves_a_client_and_leaves_equal_traces(compiled: Path) -> None:
    assert _run(compiled, "-c", _WHERE).strip().endswith(sysconfig.get_config_var("EXT_SUFFIX"))
    assert _run(compiled, "-c", _ROUND_TRIP).strip() == "True"
    seeds = ("-m", "kraft_wire", "sim", *_SIMULATION)
    traces = [json.loads(_run(folder, *seeds))["trace_hash"] for folder in (compiled, ROOT)]
    assert traces[0] == traces[1]

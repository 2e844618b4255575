"""`kraft-wire spark doctor`: what is missing comes with the line that repairs it, and code 2."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kraft_wire.cli.spark import doctor as spark_doctor
from kraft_wire.cli.spark.command import app
from kraft_wire.cli.spark.options import refusing, settings_of

RUNNER = CliRunner()


def fake_java(directory: Path, version: str) -> str:
    """A JAVA_HOME whose Java says that it is of a version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize(
    ("version", "is_well"),
    [("1.8.0_392", False), ("11.0.2", False), ("17.0.15", True), ("21", True)],
)
def test_java_before_seventeen_is_not_enough(tmp_path: Path, version: str, is_well: bool) -> None:
    home = fake_java(tmp_path / "java", version)
    (java, *_) = spark_doctor.needed(environment={"JAVA_HOME": home})
    assert (java.name, java.is_well) == ("java", is_well)
    assert java.found.split()[0] == version.removeprefix("1.").split(".")[0]


def test_machine_without_java_is_told_what_installs_it(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    done = RUNNER.invoke(app, ["doctor", "--quiet"], env={"JAVA_HOME": "", **environment})
    assert done.exit_code == 2
    assert done.output.splitlines()[0].startswith("java: not on the PATH")
    assert "openjdk-17" in done.output


@pytest.mark.parametrize(
    ("found", "is_well"), [("2.1.4", False), ("2.2.0", True), ("2.3.3", True), ("3.0.0", False)]
)
def test_wrong_pandas_is_named_with_the_right_bounds(found: str, is_well: bool) -> None:
    check = spark_doctor._package("pandas", lambda _: found)
    assert check.is_well is is_well
    assert check.remedy == "pip install 'pandas>=2.2,<3'"


def test_package_that_is_not_installed_comes_with_the_extra() -> None:
    def nowhere(name: str) -> str:
        raise PackageNotFoundError(name)

    check = spark_doctor._package("pyspark", nowhere)
    (line,) = spark_doctor.missing([check])
    remedy = f"pyspark: not installed; {sys.executable} -m pip install "
    assert line.startswith(remedy)
    assert all(f"'{name}" in line for name in ("pyspark", "pandas", "numpy", "pyarrow"))


def test_other_interpreter_for_workers_and_missing_jars_are_named(tmp_path: Path) -> None:
    jar = str(tmp_path / "kafka-clients-3.9.2.jar")
    checks = spark_doctor.examine([jar], {"PYSPARK_PYTHON": "/bin/sh"})
    wrong = [line for line in spark_doctor.missing(checks) if not line.startswith("java")]
    assert f"jars: {jar} does not exist; give --jars the paths of jar files" in wrong
    assert any(line.startswith("workers' interpreter: /bin/sh, not the driver's") for line in wrong)
    assert spark_doctor.examine([], {"PYSPARK_PYTHON": sys.executable})[-1].is_well


def test_setting_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert settings_of(["a=b", " c = d=e "]) == {"a": "b", "c": "d=e"}
    with pytest.raises(typer.Exit) as stopped:
        settings_of(["novalue"])
    assert stopped.value.exit_code == 2
    assert capsys.readouterr().err == "kraft-wire spark: --conf 'novalue' is not KEY=VALUE\n"


def test_verb_on_a_machine_without_java_is_one_line_and_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(typer.Exit) as stopped, refusing():
        raise AssertionError("the verb must not begin")
    assert stopped.value.exit_code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kraft-wire spark: java: ")

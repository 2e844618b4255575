"""Every format is found by its name: a module of its own beside the package, and in the wheel."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pkgutil import iter_modules

import pytest
from pyspark.sql.datasource import DataSource

from tests.tidiness import CHECKOUT

SHIMS = sorted(path.stem for path in CHECKOUT.glob("pyspark_*.py"))


def test_kraftlog_is_among_the_modules_that_spark_looks_at() -> None:
    assert "pyspark_kraftlog" in SHIMS
    assert set(SHIMS) <= {found.name for found in iter_modules()}


@pytest.mark.parametrize("shim", SHIMS)
def test_module_has_the_source_of_its_name(shim: str) -> None:
    source = import_module(shim).DefaultSource
    assert issubclass(source, DataSource)
    assert f"pyspark_{source.name()}" == shim


@pytest.mark.parametrize("shim", SHIMS)
def test_module_is_packaged(shim: str) -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = settings["tool"]["hatch"]["build"]["targets"]
    assert f"{shim}.py" in targets["wheel"]["only-include"]
    assert f"{shim}.py" in targets["sdist"]["include"]

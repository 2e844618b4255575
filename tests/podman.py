"""Podman: a base image of Debian's packages, the Dockerfile's image on it, and containers.

No image is fetched: debootstrap makes the base, once a machine, and the build takes the wheels that
pip brings outside of it. Containers run with few descriptors and processes, which is what a machine
without systemd allows them.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.tidiness import CHECKOUT

__all__ = ["built_image", "is_healthy", "network", "podman", "why_not", "with_limits"]

BASE = "localhost/kraft-wire-base-of-tests:bookworm"
PACKAGES = ("python3", "python3-venv", "python-is-python3")
PROGRAMS = ("podman", "runc", "debootstrap")
_TIMEOUT_S = 600
_RUN = ("podman", "--runtime", "runc")
_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


def why_not() -> str:
    """Return why containers cannot be run here, or nothing."""
    missing = [each for each in PROGRAMS if shutil.which(each) is None]
    if missing:
        return f"not run: {', '.join(missing)} missing (apt-get install {' '.join(PROGRAMS)})"
    return "" if os.geteuid() == 0 else "not run: debootstrap and podman's bridge need root"


def podman(*arguments: str, stdin: str = "") -> str:
    """Run a command of podman's, which must succeed, and return what it prints."""
    return _run([*_RUN, *arguments], stdin).stdout


def is_healthy(container: str) -> bool:
    """Run the health check of a container's image once."""
    command = [*_RUN, "healthcheck", "run", container]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    return done.returncode == 0


def with_limits(verb: str, *arguments: str) -> tuple[str, ...]:
    """Return a verb that starts a process in a container, with limits that it may set here."""
    return (verb, *_LIMITS, *arguments)


def _run(command: Sequence[str], stdin: str = "") -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done


def _base_image(scratch: Path) -> str:
    """Return the base, which is made of Debian's packages where it is not there yet."""
    known = subprocess.run([*_RUN, "image", "exists", BASE], timeout=_TIMEOUT_S, check=False)
    if known.returncode != 0:
        root = scratch / "root"
        sites = _run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"])
        site = sites.stdout.splitlines()[0]
        packages = f"--include={','.join(PACKAGES)}"
        _run(["debootstrap", "--variant=minbase", packages, "bookworm", str(root), site])
        archive = scratch / "root.tar"
        _run(["tar", "-C", str(root), "-cf", str(archive), "."])
        shutil.rmtree(root)
        podman("import", str(archive), BASE)
        archive.unlink()
    return BASE


def _wheels(scratch: Path) -> Path:
    """Return a directory with all that pip needs in the build, for the base's Python."""
    folder = scratch / "wheels"
    version = podman(*with_limits("run", "--rm", BASE, "python", "--version")).split()[1]
    of_base = ["--python-version", version, "--only-binary", ":all:"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    _run([*pip, *of_base, *_requirements()])
    return folder


def _requirements() -> list[str]:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    needs = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    return [*needs, *extras["fast"]]


@contextmanager
def built_image(name: str, scratch: Path) -> Iterator[str]:
    """Build the Dockerfile, without a network, and remove the image in the end."""
    base = _base_image(scratch)
    wheels = _wheels(scratch)
    configuration = scratch / "pip.conf"
    configuration.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    mounts = [f"--volume={wheels}:/wheels:ro", f"--volume={configuration}:/etc/pip.conf:ro"]
    build = with_limits("build", "--format=docker", "--layers=false", "--network=none", *mounts)
    podman(*build, f"--build-arg=BASE={base}", f"--tag={name}", str(CHECKOUT))
    try:
        yield name
    finally:
        podman("rmi", "--force", name)


@contextmanager
def network(name: str) -> Iterator[str]:
    """A bridge with names, and the address of this machine on it."""
    podman("network", "create", name)
    try:
        yield podman(
            "network", "inspect", name, "--format", "{{(index .Subnets 0).Gateway}}"
        ).strip()
    finally:
        podman("network", "rm", "--force", name)

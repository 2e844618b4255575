"""`make wheels` (`python -m codegen.wheels`): the pure wheel, and one with compiled modules.

The pure wheel (`py3-none-any`) is what `pip install` makes of the source, without a compiler. The
other one is the same files, with the modules of `compiled_modules.toml` also as C extensions made
by mypyc, for this interpreter and this kind of machine alone. Python prefers an extension to the
file beside it, which stays for tracebacks. Needs a C compiler and Python's headers.

Exit codes: 0; 1 if a compiler or a step fails.
"""

import argparse
import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["compile_wheel", "compiled_modules", "main", "make_pure_wheel", "platform_tag"]

ROOT: Final = Path(__file__).resolve().parent.parent
_MODULES: Final = Path(__file__).with_name("compiled_modules.toml")
_PURE_TAG: Final = "py3-none-any"
_COMPILING: Final = """
import sys
from mypyc.build import mypycify
from setuptools import setup

extensions = mypycify(
    ["--config-file", *sys.argv[2:]],
    opt_level=sys.argv[1],
    debug_level="0",
    multi_file=True,  # one file of everything takes a compiler 800 MB
    group_name="kraft_wire",
)
setup(
    name="kraft_wire",
    packages=[],
    ext_modules=extensions,
    script_args=["build_ext", "--inplace"],
)
"""


def compiled_modules() -> list[str]:
    """Return the paths of the modules to compile, from the root."""
    found: list[str] = tomllib.loads(_MODULES.read_text())["compiled"]
    return found


def platform_tag() -> str:
    """Return the tag of a wheel for this interpreter and this kind of machine."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{version}-{version}-{platform}"


def make_pure_wheel(folder: Path) -> Path:
    """Have pip make the wheel of the source in a folder; CalledProcessError if it fails."""
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, *command], check=True)
    (wheel,) = folder.glob(f"kraft_wire-*-{_PURE_TAG}.whl")
    return wheel


def compile_wheel(pure: Path, modules: Sequence[str], *, optimization: int = 2) -> Path:
    """Return a wheel beside the pure one, with these modules compiled; CalledProcessError.

    `optimization` is the compiler's level.
    """
    with tempfile.TemporaryDirectory(prefix="kraft-wire-wheel-") as name:
        folder = Path(name)
        with zipfile.ZipFile(pure) as archive:
            archive.extractall(folder)
        config = str(ROOT / "pyproject.toml")
        subprocess.run(
            [sys.executable, "-c", _COMPILING, str(optimization), config, *modules],
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            check=True,
        )
        (about,) = folder.glob("*.dist-info")
        tags = about / "WHEEL"
        tags.write_text(
            tags.read_text()
            .replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
            .replace(f"Tag: {_PURE_TAG}", f"Tag: {platform_tag()}")
        )
        kept = [path for path in sorted(folder.rglob("*")) if _belongs(path.relative_to(folder))]
        wheel = pure.with_name(pure.name.replace(_PURE_TAG, platform_tag()))
        _pack(folder, kept, about / "RECORD", wheel)
    return wheel


def _belongs(path: Path) -> bool:
    """Whether a file belongs in the wheel, and not to the build."""
    return path.parts[0] not in ("build", ".mypy_cache") and "__pycache__" not in path.parts


def _pack(folder: Path, paths: Sequence[Path], record: Path, wheel: Path) -> None:
    """Write a wheel of these files, and its list of them with their hashes."""
    rows = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            if path.is_dir() or path == record:
                continue
            data, name = path.read_bytes(), path.relative_to(folder).as_posix()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            archive.write(path, name)
        name = record.relative_to(folder).as_posix()
        archive.writestr(name, "".join([*rows, f"{name},,\n"]))


def main(arguments: list[str] | None = None) -> int:
    """Make both wheels; print their paths."""
    parser = argparse.ArgumentParser(prog="make wheels")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the wheels")
    options = parser.parse_args(arguments)
    try:
        pure = make_pure_wheel(options.out)
        print(pure)
        print(compile_wheel(pure, compiled_modules()))
    except subprocess.CalledProcessError as failure:
        print(f"failed: exit code {failure.returncode} of {failure.cmd[:3]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compiles the C program that creates files, and packs the files for it to create."""

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.bench.runner import Command, Runner

_SOURCE: Final = Path(__file__).with_name("create_files.c")


def compiled(runner: Runner) -> Path | None:
    """The program; None, reported as not measured, without a compiler."""
    compiler = runner.program("cc", "the C program is not compiled; `make test-deps` installs gcc")
    if compiler is None:
        return None
    program = runner.root / "create_files"
    subprocess.run([compiler, "-O2", "-o", program, _SOURCE], check=True)
    return program


def pack(tree: Path, folder: Path) -> tuple[Path, Path]:
    """Concatenate every file below `tree` into `folder`, with an index beside it; returns index and pack."""
    index, packed = folder / "index", folder / "pack"
    with index.open("w", encoding="utf-8") as lines, packed.open("wb") as bodies:
        for parent, folders, files in os.walk(tree):
            folders.sort()
            lines.write(f"D {Path(parent).relative_to(tree)}\n")
            for name in sorted(files):
                body = Path(parent, name).read_bytes()
                lines.write(f"F {len(body)} {name}\n")
                bodies.write(body)
    return index, packed


def creating(program: Path, index: Path, packed: Path, output: Path) -> Command:
    """Create the files of the pack in `output`."""
    output.mkdir()
    return Command([program, index, packed, "1"], cwd=output)

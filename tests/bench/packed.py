"""Has the C program beside this file create files: compiles it, and packs the files that it is to create."""

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.bench.workshop import Command, Workshop

_SOURCE: Final = Path(__file__).with_name("create_files.c")


def compiled(workshop: Workshop) -> Path | None:
    """The program; None, said loudly, where there is no compiler."""
    compiler = workshop.program("cc", "the C program is not compiled; `make test-deps` installs gcc")
    if compiler is None:
        return None
    program = workshop.root / "create_files"
    subprocess.run([compiler, "-O2", "-o", program, _SOURCE], check=True)
    return program


def pack(tree: Path, folder: Path) -> tuple[Path, Path]:
    """Put every file below `tree` into one, and an index of them into another, in `folder`; returns index and pack."""
    index, packed = folder / "index", folder / "pack"
    with index.open("w", encoding="utf-8") as lines, packed.open("wb") as bodies:
        for parent, folders, files in os.walk(tree):
            folders.sort()
            lines.write(f"D {Path(parent).relative_to(tree)}\n" if parent != str(tree) else "")
            if parent == str(tree) and files:
                raise SystemExit(f"{tree}: has files of its own; create_files knows those in folders only")
            for name in sorted(files):
                body = Path(parent, name).read_bytes()
                lines.write(f"F {len(body)} {name}\n")
                bodies.write(body)
    return index, packed


def creating(program: Path, index: Path, packed: Path, processes: int, output: Path) -> Command:
    """Create the files of the pack in `output`."""
    output.mkdir()
    return Command([program, index, packed, str(processes)], cwd=output)

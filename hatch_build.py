"""Puts the commit into wheel and sdist, so that an installed program can say of which one it is."""

import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[Any]):
    """Adds the file with the commit; an sdist has it already, and a checkout is asked when it is needed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Ask git, unless the program stays where it is."""
        module = runpy.run_path(str(Path(self.root) / "generator" / "commit.py"))
        commit = module["of_checkout"](Path(self.root))
        if version == "editable" or commit is None:
            return
        self._folder = TemporaryDirectory()
        file = Path(self._folder.name) / module["FILE"]
        file.write_text(f"{commit}\n", "utf-8")
        build_data["force_include"][str(file)] = f"generator/{module['FILE']}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the hook's signature
        """Remove what was made."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

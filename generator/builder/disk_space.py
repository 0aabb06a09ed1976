"""Whether a disk has room for what a build would write."""

from pathlib import Path
from typing import Final

from generator import filesystem
from generator.config.settings import Config
from generator.tree import layouts
from generator.wording import counted

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_THOUSAND: Final = 1000


def lacking(folder: Path, files: int, size: int) -> str | None:
    """What the folder's file system has too little of for these files, of `size` bytes in total, as a sentence.

    None when there is room, as far as can be told: folders, and objects that exist twice for a moment, come on top.
    """
    free = filesystem.room(folder)
    # On average, half of a file's last block is unused; more of a short page's.
    size += files * free.block // 2
    lacks_files = free.files is not None and files > free.files
    if not lacks_files and size <= free.bytes:
        return None
    available = f"{counted(free.files or 0, 'file', ',')} (df -i)" if lacks_files else f"{_shown(free.bytes)} (df -h)"
    return (
        f"{folder}: no space left on device for this build: it needs {counted(files, 'file', ',')} and "
        f"{_shown(size)}, and there is room for {available}"
    )


def remedy(config: Config) -> str:
    """What to do when space is short."""
    ways = ["free some space", "choose another folder with --set output=…"]
    ways += ["restrict `categories`"] if config.variant == "extended" else []
    ways += [f"set `layout: {layouts.COMPACT}`"] if config.layout != layouts.COMPACT else []
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def _shown(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _THOUSAND:
            return f"{size:.3g} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} {_UNITS[-1]}"

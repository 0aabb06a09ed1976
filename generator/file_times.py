"""Times of files from which web servers make ETags: nginx's are the time of modification in seconds, and the size.

A file that replaces another is later by a second at least. Otherwise a reader or a cache that holds the old bytes would
be told that nothing changed. After many replacements within a second, times run ahead of the clock by as many seconds.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Seconds by which times may run ahead. A clock that was wrong once must not date all later files.
_MOST: Final = 3_600


class FileTimes:
    """Gives files of one folder their times. Whoever calls this excludes all other writers.

    `mark` is a file whose own time is that of the latest deletion, as far as a file of the same name could collide with
    what was deleted; nobody else may set it back.
    """

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def follow(self, new: str, path: str) -> None:
        """Make the file `new` later than the one at `path`, which it is about to replace, or that was deleted there."""
        found = os.stat(new).st_mtime  # noqa: PTH116 - of very many files, as below
        least = self._least(path)
        if int(found) < least <= found + _MOST:
            os.utime(new, (least, least))

    def _least(self, path: str) -> int:
        try:
            before = os.stat(path, follow_symlinks=False).st_mtime  # noqa: PTH116
        except FileNotFoundError:
            return int(self._mark.stat().st_mtime)
        return int(before) + 1

    def note_deletion(self, path: str) -> None:
        """Remember the time of a file that is about to be deleted, for one that may come in its place."""
        with suppress(FileNotFoundError, PermissionError):  # another user's mark; a file may come within the second
            least = int(os.stat(path, follow_symlinks=False).st_mtime) + 1  # noqa: PTH116
            if self._mark.stat().st_mtime < least:
                os.utime(self._mark, (least, least))

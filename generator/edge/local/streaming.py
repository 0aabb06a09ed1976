"""Files of downloads, as the local server sends them: whole or in part, and never held in memory."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.exceptions import RequestedRangeNotSatisfiable
from werkzeug.http import is_resource_modified
from werkzeug.wrappers import Response
from werkzeug.wsgi import FileWrapper

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

#: One range. Others are ignored, as the standard allows.
_RANGE: Final = re.compile("bytes=(?:[0-9]+-[0-9]*|-(?P<last>[0-9]+))")
#: Bytes read at once.
_PIECE: Final = 1 << 16


class UnsatisfiableError(Exception):
    """The range lies outside the file; `headers` tell its size."""

    def __init__(self, size: int) -> None:
        super().__init__(f"no such range in a file of size {size}")
        self.headers = {"content-range": f"bytes */{size}"}


def response(path: Path, headers: Mapping[str, str], environ: "WSGIEnvironment") -> Response:
    """The file, its range, or 304. Its name, a digest, is its ETag.

    Raise UnsatisfiableError if it has no such range, and OSError if it cannot be read.
    """
    file = path.open("rb")
    found = Response(FileWrapper(file, _PIECE), headers=dict(headers), direct_passthrough=True)
    found.call_on_close(file.close)
    size = path.stat().st_size
    found.content_length = size
    found.set_etag(path.name.partition(".")[0])
    try:
        found.make_conditional(_conditions(environ, found), accept_ranges=True, complete_length=size)
    except RequestedRangeNotSatisfiable as error:
        found.close()
        raise UnsatisfiableError(size) from error
    found.headers["accept-ranges"] = "bytes"
    # The server sends one, too.
    found.headers.pop("Date", None)
    return found


def _conditions(environ: "WSGIEnvironment", found: Response) -> "WSGIEnvironment":
    """The request without what does not apply: If-Match, as the API has no 412, and a Range that is to be ignored."""
    kept = {name: value for name, value in environ.items() if name != "HTTP_IF_MATCH"}
    is_known = not is_resource_modified(kept, found.get_etag()[0], last_modified=found.last_modified)
    asked = _RANGE.fullmatch(kept.pop("HTTP_RANGE", ""))
    if asked and not is_known and environ["REQUEST_METHOD"] == "GET":
        # More bytes from the end than there are: the library would refuse them.
        is_all = asked["last"] is not None and int(asked["last"]) >= (found.content_length or 0) > 0
        kept["HTTP_RANGE"] = "bytes=0-" if is_all else asked[0]
    return kept

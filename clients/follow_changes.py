#!/usr/bin/env python3
"""Keep a file of all markets equal to a site's, by its change feed.

    python follow_changes.py https://api.example.org/v1/changes/head.json markets.ndjson

The file has one market per line. Run this as often as you like: each run reads the head of the feed, fetches the steps
since the last run, and replaces the file atomically. The first run fetches the whole dump. So does a run that cannot
continue from the last one; it says why. The digest of the result must equal the one in the head, so after a run that
succeeds the file has exactly the markets of the site.

The position in the feed is kept beside the file, in `markets.ndjson.position`. Delete both to start again.

Exit codes: 0 the file equals the site's; 1 the file could not be updated, and trying again will hardly help; 2 wrong
usage; 3 the site did not answer, try again later. Unless the code is 0, the file is unchanged.

Needs Python 3.11 and nothing else. To write a client in another language, read `Merge`, `properties` and `follow`.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

MOST_BYTES_OF_A_HEAD = 16 << 20
LONGEST_LINE = 16 << 20
PIECE = 1 << 18
UNCHANGED = 304
ABSENT = {404, 410}
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
#: What goes wrong when a line is not what it should be.
MALFORMED = (ValueError, LookupError, TypeError, RecursionError)
#: What is kept of the head that led to the file.
POSITION = ("session", "serial", "state", "url", "etag")
GZIP = 16 + zlib.MAX_WBITS
DECODER = json.JSONDecoder()
DIGEST = re.compile(r"[0-9a-f]{64}")
#: A step is named by the first half of its digest.
NAME = re.compile(r"[0-9a-f]{32}\.ndjson\.gz")


class FollowError(Exception):
    """The file cannot be updated."""

    code = 1


class UnavailableError(FollowError):
    """The site did not answer."""

    code = 3


class StartAgainError(FollowError):
    """This head cannot update the local file: use the dump, or a newer head."""


class UnchangedError(FollowError):
    """The head is still the one whose ETag was sent."""


# ── the site ──────────────────────────────────────────────────────────────────────────────────────────────────────


def checked(url: str) -> str:
    """The URL, if it is an HTTP one."""
    if not url.startswith(("http://", "https://")):
        raise FollowError(f"{url} is not an http or https URL")
    return url


def opener() -> urllib.request.OpenerDirector:
    """An opener of HTTP URLs only, also after a redirect."""
    found = urllib.request.OpenerDirector()
    for kind in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPRedirectHandler, urllib.request.UnknownHandler,
    ):  # fmt: skip
        found.add_handler(kind())
    return found


@contextmanager
def opened(url: str, timeout: float, headers: Mapping[str, str] = MappingProxyType({})) -> Iterator[HTTPResponse]:
    """The answer to a GET."""
    try:
        with begun(checked(url), timeout, headers) as answer:
            yield answer
            require_end(answer)
    except urllib.error.HTTPError as error:
        error.close()
        raise refusal(url, error) from None
    except TimeoutError:
        raise UnavailableError(f"{url} took more than {timeout:g} s: try again later") from None
    except (OSError, HTTPException) as error:
        raise UnavailableError(f"{url} cannot be read ({getattr(error, 'reason', error)!s}): try again later") from None


def begun(url: str, timeout: float, headers: Mapping[str, str]) -> HTTPResponse:
    """The answer to a GET, to be read."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "follow_changes", **headers})
        return opener().open(request, timeout=timeout)  # type: ignore[no-any-return]
    except ValueError as error:
        raise FollowError(f"{url} is not an address: {error}") from None


def require_end(answer: HTTPResponse) -> None:
    """Raise HTTPException if a connection ended before the answer did; reading in pieces does not notice."""
    if answer.length:
        raise HTTPException(f"its last {answer.length} bytes are missing")


def refusal(url: str, error: urllib.error.HTTPError) -> FollowError:
    """What an answer means that has no file."""
    if error.code == UNCHANGED:
        return UnchangedError(f"{url} answers {error.code}")
    if error.code in TEMPORARY:
        pause = error.headers.get("Retry-After")
        when = f"in {pause} s" if pause else "later"
        return UnavailableError(f"{url} answers {error.code}: try again {when}")
    kind = StartAgainError if error.code in ABSENT else FollowError
    return kind(f"{url} answers {error.code}")


def read_head(url: str, timeout: float, known: dict[str, Any]) -> dict[str, Any]:
    """The head of the feed; the `known` one, if there is one and the site says that it is unchanged."""
    condition = {"If-None-Match": known["etag"]} if known else {}
    try:
        with opened(url, timeout, {"Accept-Encoding": "gzip", **condition}) as answer:
            body = body_of(answer)
            etag = answer.headers.get("ETag")
        head = json.loads(body)
        require_head(head)
        # Addresses may be relative to the head's.
        steps_url, dump_url = (urllib.parse.urljoin(url, name) for name in (head["stepsUrl"], head["dump"]["url"]))
    except UnchangedError:
        if known:
            return known
        raise
    except MALFORMED:
        raise FollowError(f"{url} is not the head of a change feed") from None
    head["dump"] |= {"url": dump_url, "digest": head["dump"]["sha256"]}
    for step in head["steps"]:
        step |= {"url": steps_url + step["name"], "digest": step["name"].partition(".")[0]}
    return head | {"url": url, "etag": etag}  # type: ignore[no-any-return]


def body_of(answer: HTTPResponse) -> bytes:
    """The body of an answer, which may be compressed; raise ValueError if it is damaged or too large."""
    body = answer.read(MOST_BYTES_OF_A_HEAD + 1)
    if answer.headers.get("Content-Encoding", "").lower() == "gzip":
        decompressing = zlib.decompressobj(GZIP)
        try:
            body = decompressing.decompress(body, MOST_BYTES_OF_A_HEAD + 1)
        except zlib.error as error:
            raise ValueError from error
    if len(body) > MOST_BYTES_OF_A_HEAD:
        raise ValueError
    return body


def require_head(head: Any) -> None:
    """Raise one of `MALFORMED` unless this is the head of a change feed."""
    for name, kind in [("session", str), ("serial", int), ("state", str), ("stepsUrl", str), ("steps", list)]:
        expect(head[name], kind)
    dump, steps = head["dump"], head["steps"]
    expect(dump["url"], str)
    for file in [dump, *steps]:
        expect(file["size"], int)
    if not (DIGEST.fullmatch(dump["sha256"]) and all(NAME.fullmatch(step["name"]) for step in steps)):
        raise ValueError


def expect(value: Any, kind: type) -> Any:
    """The value, if it is of that type."""
    if not isinstance(value, kind):
        raise TypeError
    return value


def lines_of(file: dict[str, Any], timeout: float) -> Iterator[bytes]:
    """The lines of a dump or a step, with line feeds.

    Raises `StartAgainError`, perhaps only at the end, if the file is missing or not what the head says.
    """
    return split(text_of(file, timeout), file["url"])


def text_of(file: dict[str, Any], timeout: float) -> Iterator[bytes]:
    """The same in pieces of any size."""
    digest, size = hashlib.sha256(), 0
    decompressing = zlib.decompressobj(GZIP)
    with opened(file["url"], timeout) as answer:
        while piece := answer.read(PIECE):
            digest.update(piece)
            size += len(piece)
            if size > file["size"]:
                raise StartAgainError(f"{file['url']} is longer than the head says")
            while text := decompressed(decompressing, piece, file):
                yield text
                piece = decompressing.unconsumed_tail
    if not digest.hexdigest().startswith(file["digest"]):
        raise StartAgainError(f"{file['url']} is not the file that the head names: its digest differs")


def split(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The lines of a text in pieces, with line feeds."""
    line, size = list[bytes](), 0
    for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join([*line, end, b"\n"])
            line, size = [], 0
        line.append(rest)
        size += len(rest)
        if size > LONGEST_LINE:
            raise StartAgainError(f"{name} has a line of more than {LONGEST_LINE >> 20} MB")
    if last := b"".join(line):
        yield last


def decompressed(decompressing: Any, piece: bytes, file: dict[str, Any]) -> bytes:
    """Part of the text in a piece of a gzip file."""
    try:
        return decompressing.decompress(piece, PIECE)  # type: ignore[no-any-return]
    except zlib.error as error:
        raise StartAgainError(f"{file['url']} is damaged: {error}") from None


# ── the rules of the feed ─────────────────────────────────────────────────────────────────────────────────────────


def properties(line: bytes) -> dict[str, str]:
    """The names and values of a market as they are written: '"prob"' and '0.50'. Never encode them again."""
    text, found, end = line.decode(), dict[str, str](), 0
    while text[end] != "}":
        start = end + 1
        _, colon = DECODER.raw_decode(text, start)
        _, end = DECODER.raw_decode(text, colon + 1)
        found[text[start:colon]] = text[colon + 1 : end]
    return found


def line_of(properties: dict[str, str]) -> bytes:
    """The line of a market."""
    return ("{" + ",".join(f"{name}:{value}" for name, value in properties.items()) + "}\n").encode()


def first_value(line: bytes) -> tuple[str, str]:
    """The first property of a line: the id of a market, or the digest of one that is gone."""
    text = line.decode()
    name, colon = DECODER.raw_decode(text, 1)
    value, _ = DECODER.raw_decode(text, colon + 1)
    return expect(name, str), expect(value, str)


def digest_of(market_id: str) -> str:
    """How a step names a market that is gone."""
    return hashlib.sha256(market_id.encode()).hexdigest()


class Merge:
    """The combined changes of some steps, so that one pass over the file applies them."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.changed: dict[str, dict[str, str]] = {}
        self._ids: dict[str, str] = {}

    def add(self, step: Iterable[bytes]) -> None:
        """Add the next step: first what is gone, then markets that changed or are new."""
        for line in step:
            kind, value = first_value(line)
            if kind == "gone":
                self.gone.add(value)
                # This also discards what an earlier step said of it.
                self.changed.pop(self._ids.get(value, ""), None)
            else:
                self._ids[digest_of(value)] = value
                # A property that is known keeps its place.
                self.changed[value] = self.changed.get(value, {}) | properties(line)

    def apply(self, old: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of the file after the steps: ascending by id, as before."""
        waiting = sorted(self.changed, reverse=True)
        for line in old:
            _, market_id = first_value(line)
            while waiting and waiting[-1] < market_id:
                yield line_of(self.changed[waiting.pop()])
            if self.gone and digest_of(market_id) in self.gone:
                continue
            if waiting and waiting[-1] == market_id:
                yield line_of(properties(line) | self.changed[waiting.pop()])
            else:
                yield line
        while waiting:
            yield line_of(self.changed[waiting.pop()])


def steps_since(position: dict[str, Any], head: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps that lead from a position to the newest state: each leads from one serial to the next."""
    if position["session"] != head["session"]:
        raise StartAgainError("the site has begun a new session")
    serial, steps = position["serial"], head["steps"]
    behind = head["serial"] - serial
    if not 0 <= behind <= len(steps):
        raise StartAgainError(f"no steps lead from serial {serial} to {head['serial']}")
    return steps[len(steps) - behind :]


# ── the local file ────────────────────────────────────────────────────────────────────────────────────────────────


class Copy:
    """The local file, and its position in the feed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.beside = path.with_name(path.name + ".position")

    def position(self) -> dict[str, Any]:
        """The session, serial and state of the file, and the `url` and `etag` of the head that led there."""
        try:
            found: dict[str, Any] = json.loads(self.beside.read_bytes())
            for name, kind in [("session", str), ("serial", int)]:
                expect(found[name], kind)
        except FileNotFoundError:
            raise StartAgainError("there is no copy yet") from None
        except MALFORMED:
            raise StartAgainError(f"{self.beside} is damaged") from None
        return found

    def known_head(self, url: str) -> dict[str, Any]:
        """What is known of the head at this URL; empty if it cannot be asked for conditionally."""
        with suppress(StartAgainError):
            found = self.position()
            texts = [found.get(name) for name in ("url", "etag", "state")]
            if texts[0] == url and all(
                isinstance(text, str) and text.isascii() and text.isprintable() for text in texts
            ):
                return found
        return {}

    def lines(self) -> Iterator[bytes]:
        """Its lines."""
        try:
            with self.path.open("rb") as file:
                yield from split(iter(lambda: file.read(PIECE), b""), str(self.path))
        except FileNotFoundError:
            raise StartAgainError(f"{self.path} is gone") from None

    def replace(self, lines: Iterable[bytes], head: dict[str, Any]) -> None:
        """Replace the file by these lines; raise `StartAgainError` unless they are the state that the head names."""
        digest = hashlib.sha256()
        with replacing(self.path) as file:
            for line in lines:
                digest.update(line)
                file.write(line)
            if digest.hexdigest() != head["state"]:
                raise StartAgainError("the digest of the result differs from the site's")
        # If the computer fails before this, the digest of the next run's result differs, and that run fetches the dump.
        self.note(head)

    def note(self, head: dict[str, Any]) -> None:
        """Save that the file is what this head says."""
        with replacing(self.beside) as file:
            file.write(json.dumps({name: head[name] for name in POSITION}).encode())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that replaces another once it is complete and on the disk."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


# ── one run ───────────────────────────────────────────────────────────────────────────────────────────────────────


def follow(url: str, copy: Copy, timeout: float) -> str:
    """Update the file; return a sentence that says what was done."""
    known = copy.known_head(url)
    for take, otherwise in [
        (take_steps, "starting from the dump"),
        (take_dump, "trying once more, as the site may have changed meanwhile"),
    ]:
        head = read_head(url, timeout, known)
        known = {}
        try:
            return take(copy, head, timeout)
        except StartAgainError as reason:
            say(f"{reason}; {otherwise}")
    return take_dump(copy, read_head(url, timeout, known), timeout)


def take_steps(copy: Copy, head: dict[str, Any], timeout: float) -> str:
    """Apply the steps since the last run."""
    position = copy.position()
    if all(position[name] == head[name] for name in ("session", "serial")):
        return unchanged(copy, position, head)
    merge = Merge()
    try:
        for step in steps_since(position, head):
            merge.add(lines_of(step, timeout))
        copy.replace(merge.apply(copy.lines()), head)
    except MALFORMED:
        raise StartAgainError(f"{copy.path} or a step is damaged") from None
    return f"serial {head['serial']}: {len(merge.changed)} markets new or changed, {len(merge.gone)} gone"


def unchanged(copy: Copy, position: dict[str, Any], head: dict[str, Any]) -> str:
    """Check that the file is still what it was."""
    digest = hashlib.sha256()
    for line in copy.lines():
        digest.update(line)
    if digest.hexdigest() != head["state"]:
        raise StartAgainError(f"{copy.path} has changed or is damaged")
    if any(position.get(name) != head[name] for name in POSITION):
        copy.note(head)
    return f"serial {head['serial']}: nothing new"


def take_dump(copy: Copy, head: dict[str, Any], timeout: float) -> str:
    """Start from all markets."""
    copy.replace(lines_of(head["dump"], timeout), head)
    return f"serial {head['serial']}: all markets"


def say(sentence: str) -> None:
    """Report progress on stderr."""
    # A site may have put escape sequences into an address.
    shown = "".join(letter if letter.isprintable() else "?" for letter in sentence)
    print(f"follow_changes: {shown}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("head", metavar="URL", help="address of the head of the change feed")
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to keep up to date, one market per line")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for the site (default: 60)")
    options = parser.parse_args(arguments)
    try:
        say(follow(options.head, Copy(options.file), options.timeout))
    except FollowError as error:
        say(str(error))
        return error.code
    except OSError as error:
        say(f"cannot write: {error}")
        return FollowError.code
    return 0


if __name__ == "__main__":
    sys.exit(main())

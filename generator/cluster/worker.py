"""What a worker of the cluster runs, in a process that the operator started, and the form of its answers.

An answer is the bytes that the call returned, or a Failure as JSON. The coordinator, which may hold keys that workers
do not have, unpickles neither. Dask would log a raised error with its arguments, and send it through the scheduler with
its whole chain of causes, which may quote the address of the database.
"""

import gc
import pickle
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from generator import garbage
from generator.errors import ClusterError, PublicMarketsError, SourceError
from generator.program import Program, this_program

#: What Dask may name: with each result it sends the type.
_HARMLESS: Final = frozenset({"builtins.bytes"})
#: The names that were refused, for each block of `refused` in progress.
_watching: Final[list[list[str]]] = []


@contextmanager
def refused() -> Iterator[list[str]]:
    """Let no thread of this process load a pickle that names more than `bytes` during the block; yield the names.

    Whoever makes a pickle chooses the code that runs when it is loaded, and Dask loads those that its scheduler sends,
    whatever a client asks for. Python tells an audit hook of each class or function that a pickle names, wherever it is
    loaded; a pickle that names none can only hold plain data.
    """
    names = list[str]()
    _install()
    _watching.append(names)
    try:
        yield names
    finally:
        _watching.pop()


@cache
def _install() -> None:
    """Add the hook, once: Python cannot remove it."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and _watching and (name := ".".join(map(str, arguments))) not in _HARMLESS:
        _watching[-1].append(name)
        raise AttributeError(f"{name} is not loaded from a pickle")  # as if there were no such name


#: Begins an answer that is a result; JSON never begins with it.
RESULT: Final = b"\0"
_INSTALL: Final = "install the same version of this program, with the same Python, on every worker"


class Failure(BaseModel):
    """Why a call has no result. `may_pass`: another attempt may succeed; `is_source`: it is about the database."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    told: Annotated[str, Field(max_length=10_000)]
    is_source: bool = False
    may_pass: bool = False

    @property
    def error(self) -> PublicMarketsError:
        """What to raise."""
        told = printable(self.told)
        return SourceError(told) if self.is_source else ClusterError(told)


def printable(text: object) -> str:
    """A text from another machine, with nothing in it that could control a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def run(program: tuple[str, str], payload: bytes, worker: str) -> bytes:
    """Run the pickled call for a coordinator that runs `program`; return the answer. `worker` is the worker's address.

    Raises nothing.
    """
    if program != this_program():
        runs = f"worker {worker} runs {this_program()}, but the coordinator runs {Program(*program)}"
        return Failure(told=f"{runs}; {_INSTALL}").model_dump_json().encode()
    try:
        call = pickle.loads(payload)  # noqa: S301 - a worker runs what its scheduler sends: see docs/cluster.md
        _settle()
        return RESULT + bytes(call())
    except SourceError as error:
        failure = Failure(told=f"worker {worker}: {error}"[:10_000], is_source=True, may_pass=error.may_pass)
    except PublicMarketsError as error:
        failure = Failure(told=f"worker {worker}: {error}"[:10_000])
    except BaseException as error:  # noqa: BLE001 - SystemExit would end this worker, then the next one
        traceback.print_exc()  # into the worker's own log: the text may be private
        bug = "this is a bug: please report it with the worker's log"
        failure = Failure(told=f"worker {worker}: {type(error).__name__}; {bug}")
    return failure.model_dump_json().encode()


@cache
def _settle() -> None:
    """Exempt the objects of loaded modules from garbage collection: searching them takes a tenth of the time."""
    gc.collect()
    garbage.collect_own()

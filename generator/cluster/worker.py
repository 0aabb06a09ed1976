"""What a worker of the cluster runs, in a process that the operator started.

Results and errors are both returned as bytes that we pickled. Dask would log a raised error with its arguments, and
send it through the scheduler with its whole chain of causes, which may quote the address of the database.
"""

import gc
import pickle
import traceback
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from generator import garbage
from generator.errors import ClusterError, PublicMarketsError, SourceError
from generator.program import Program, this_program

_INSTALL: Final = "install the same version of this program, with the same Python, on every worker"


@dataclass(frozen=True)
class Failure:
    """Why a call has no result. `may_pass`: another attempt may succeed."""

    error: PublicMarketsError
    may_pass: bool = False


def run(program: tuple[str, str], payload: bytes, worker: str) -> bytes:
    """Run the pickled call for a coordinator that runs `program`; return its pickled result, or a Failure.

    `worker` is the address of this worker. Raises nothing.
    """
    try:
        return pickle.dumps(_result(program, payload, worker), pickle.HIGHEST_PROTOCOL)
    except SourceError as error:
        return pickle.dumps(Failure(SourceError(f"worker {worker}: {error}"), error.may_pass))
    except PublicMarketsError as error:
        return pickle.dumps(Failure(ClusterError(f"worker {worker}: {error}")))
    except BaseException as error:  # noqa: BLE001 - SystemExit would end this worker, then the next one
        traceback.print_exc()  # into the worker's own log: the text may be private
        told = f"worker {worker}: {type(error).__name__}; this is a bug: please report it with the worker's log"
        return pickle.dumps(Failure(ClusterError(told)))


def _result(program: tuple[str, str], payload: bytes, worker: str) -> Any:
    if program != this_program():
        programs = f"worker {worker} runs {this_program()}, but the coordinator runs {Program(*program)}"
        return Failure(ClusterError(f"{programs}; {_INSTALL}"))
    call = pickle.loads(payload)  # noqa: S301 - a worker runs what its scheduler sends: see docs/cluster.md
    _settle()
    return call()


@cache
def _settle() -> None:
    """Exempt the objects of loaded modules from garbage collection: searching them takes a tenth of the time."""
    gc.collect()
    garbage.collect_own()

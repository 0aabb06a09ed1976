"""Runs many rounds with publishers in this process, several in parallel."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from generator.errors import PublicMarketsError
from tests.publish.faults.scene import Scene
from tests.support.faults import fast_folder
from tests.support.stores.s3.server import S3Server

#: Rounds in parallel, each with its own server; they sleep much of the time.
AT_ONCE = 6


def code_of(run: Callable[[], object]) -> int:
    """The exit code that the command would have."""
    try:
        run()
    except PublicMarketsError as error:
        return error.exit_code
    return 0


@contextmanager
def scenes(folder: Path, at_once: int) -> Iterator[list[Scene]]:
    with ExitStack() as stack:
        found = []
        for number in range(at_once):
            (folder / f"scene-{number}").mkdir()
            found.append(Scene(folder / f"scene-{number}", stack.enter_context(S3Server(seed=number))))
        yield found


def run_all(folder: Path, rounds: Sequence[Any], play: Callable[[Scene, Any], None], at_once: int = AT_ONCE) -> int:
    """Play every round, several in parallel; returns how many finished."""
    with fast_folder(folder) as place, scenes(place, at_once) as found, ThreadPoolExecutor(at_once) as pool:
        shares = [rounds[number::at_once] for number in range(at_once)]

        def play_share(scene: Scene, share: Sequence[Any]) -> int:
            for round_ in share:
                play(scene, round_)
            return len(share)

        return sum(pool.map(play_share, found, shares))

"""What readers found, remembered by all that they read: the same objects lead to the same answer."""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from tests.support.faults import Seen
from tests.support.readers.searching_reader import SearchingReader

#: Reads an object by its key.
Get: TypeAlias = Callable[[str], bytes | None]


class Remembered:
    """Answers of readers of which each reads one object after the other, and depends on nothing else."""

    def __init__(self) -> None:
        #: By the question and the objects read so far: the key that is read next, or the answer.
        self._known: Final = dict[tuple[Hashable, ...], str | tuple[Any]]()

    def answer(self, question: Hashable, get: Get, ask: Callable[[Get], Any]) -> Any:
        """What `ask` answers when it reads with `get`; every object that it would read is read now, too."""
        read: tuple[Hashable, ...] = (question,)
        while isinstance(step := self._known.get(read), str):
            read = (*read, get(step))
        if step is not None:
            return step[0]
        read = (question,)

        def noting(key: str) -> bytes | None:
            nonlocal read
            self._known[read] = key
            body = get(key)
            read = (*read, body)
            return body

        answer = ask(noting)
        self._known[read] = (answer,)
        return answer

    def forget(self) -> None:
        """Free it all."""
        self._known.clear()


class RememberingReader(SearchingReader):
    """Reads everything that a walk needs, and looks at it only if some of it changed."""

    def __init__(self, read: Get) -> None:
        super().__init__(read)
        self._walks = Remembered()

    def walk(self, list_name: str, limit: int, at: str | None = None) -> list[Seen]:
        def ask(get: Get) -> tuple[Seen, ...]:
            return tuple(SearchingReader(get).walk(list_name, limit, at))

        return [*self._walks.answer((list_name, limit, at), self._read, ask)]

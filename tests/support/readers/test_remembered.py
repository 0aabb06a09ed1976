from tests.support.readers.remembered import Get, Remembered


def test_what_is_remembered_is_asked_for_again_when_an_object_that_was_read_changed() -> None:
    objects, asked, remembered = {"a": b"b", "b": b"1", "c": b"3"}, list[str](), Remembered()

    def ask(get: Get) -> bytes | None:
        asked.append("")
        return get((get("a") or b"").decode())

    for number, (changed, answer) in enumerate(
        [({}, b"1"), ({"b": b"2"}, b"2"), ({"a": b"c"}, b"3"), ({"a": b""}, None)]
    ):
        objects |= changed
        for _ in range(2):
            assert remembered.answer("what", objects.get, ask) == answer
        assert len(asked) == number + 1
    assert remembered.answer("what", {"a": b"b", "b": b"1"}.get, ask) == b"1"
    assert len(asked) == 4

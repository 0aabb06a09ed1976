"""What the fault tests learn about processes, which may end while they look."""

import subprocess

from tests.support.faults import ENDED, children_of, processes_of, state_of


def test_a_process_that_has_ended_still_has_a_state() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        assert state_of(process.pid) not in ENDED
        assert processes_of(process.pid) == [process.pid]
    assert state_of(process.pid) in ENDED
    assert processes_of(process.pid) == children_of(process.pid) == []

"""docs/cluster.md and its details: its commands work as written; tests/cluster/test_tls.py has what they make."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import dask.config
from distributed.cli import dask_scheduler, dask_worker

from tests.support.programs import require
from tests.support.readers.pages import PAGES, scripts

PAGE: Final = PAGES["docs/cluster.md"] + PAGES["docs/details/cluster.md"]
ROLES: Final = ("scheduler", "worker", "client")
(CERTIFICATES,) = re.findall(r"^```sh\n(umask.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def environment(role: str, folder: Path) -> dict[str, str]:
    """The variables that the page sets for one role, whose files are in the folder."""
    (block,) = [
        block
        for block in re.findall(r"^```sh\n(export DASK.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
        if f"__{role.upper()}__" in block
    ]
    return dict(re.findall(r"^export (\w+)=(\S+)$", block.replace("/etc/dask", str(folder)), re.MULTILINE))


def make_certificates(folder: Path) -> None:
    """Run the page's commands in the folder."""
    require("openssl", reason="the certificates of docs/cluster.md are not made")
    subprocess.run(["sh", "-ec", CERTIFICATES], cwd=folder, check=True, capture_output=True)


@contextmanager
def configured(environ: Mapping[str, str]) -> Iterator[None]:
    """Have Dask, which reads its variables when it is imported, read these during the block."""
    given = dask.config.collect_env({**environ})
    with dask.config.set(dask.config.update(deepcopy(dask.config.global_config), given)):
        yield


def test_nobody_but_its_owner_can_read_a_key(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        f"{name}.{suffix}": 0o600 for name in ("ca", *ROLES) for suffix in ("key", "pem")
    }


def test_every_command_of_dask_shown_is_understood() -> None:
    commands: dict[str, Any] = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    shown = [shlex.split(line) for line in scripts(PAGE) if line.strip().startswith("dask ")]
    assert len(shown) == 4
    for _, name, *words in shown:
        assert commands[name].make_context(name, words).params["dashboard"] is False

"""Images and containers by Buildah, which needs no daemon, in a storage of their own. A pytest plugin."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from generator import __version__
from tests.support.edges.serving import mind_interrupts
from tests.support.programs import require, unavailable
from tests.support.project import ROOT

#: A bare Debian, which `make test-deps` makes.
DEBIAN: Final = Path("/var/cache/public-markets-tests/debian.tar")
BASE: Final = "localhost/debian"
SOURCE: Final = "https://git.example.com/public-markets"
IMAGE: Final = f"localhost/public-markets:{__version__}"
Volumes = Mapping[Path, str]


@dataclass(frozen=True)
class Container:
    """A container that is not yet running; `files` is its root."""

    storage: "Storage"
    name: str
    files: Path

    def command(self, *words: str, volumes: Volumes = {}, environ: Mapping[str, str] = {}) -> list[str]:  # noqa: B006 - never changed
        """The words that run a program in it, as the image's user."""
        mounts = [word for path, place in volumes.items() for word in ("--volume", f"{path}:{place}")]
        variables = [word for name, value in environ.items() for word in ("--env", f"{name}={value}")]
        return ["buildah", "run", *mounts, *variables, self.name, "--", *words]

    def done(self, *words: str, **options: Any) -> str:
        """Run a program that must succeed; returns its stdout."""
        code, told = self.ran(*words, **options)
        assert code == 0, told
        return told

    def ran(self, *words: str, **options: Any) -> tuple[int, str]:
        """Run a program; returns its exit code and its output, stderr included if it failed."""
        command, environ = self.command(*words, **options), self.storage.environ
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=600)
        return ran.returncode, ran.stdout + (ran.stderr if ran.returncode else "")

    def processes(self) -> list[int]:
        """The processes that run in it now, without Buildah's own."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has just ended, or is none of ours
                is_own = (process / "cmdline").read_text().startswith("buildah")
                if not is_own and (process / "root").samefile(self.files):
                    found.append(int(process.name))
        return found

    @contextmanager
    def serving(self, *words: str, **options: Any) -> Iterator[str]:
        """Run a program that says where it serves, for the time of a `with`; it must end well on the image's signal."""
        command, environ = self.command(*words, **options), self.storage.environ
        with subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, text=True,
            preexec_fn=mind_interrupts,  # noqa: PLW1509 - it only resets a signal
        ) as process:  # fmt: skip
            try:
                assert process.stdout
                yield next(line for line in process.stdout if line.startswith("serving ")).split()[-1]
            finally:
                for number in self.processes():
                    os.kill(number, signal.SIGINT)
            assert process.stdout.read().splitlines()[-1] == "stopped"
        assert process.returncode == 0


@dataclass(frozen=True)
class Storage:
    """Where images and containers are kept."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """The environment in which Buildah uses this storage, and no namespaces; it must be root and able to mount."""
        require("buildah", reason="the image is not built")
        settings = self.folder / "storage.conf"
        environ = {**os.environ, "CONTAINERS_STORAGE_CONF": str(settings), "BUILDAH_ISOLATION": "chroot"}
        # A container of `vfs` is a copy of all files; not every file system can be below an overlay.
        for driver in () if settings.exists() else ("overlay", "vfs"):
            root = self.folder / driver
            settings.write_text(f'[storage]\ndriver="{driver}"\ngraphroot="{root}"\nrunroot="{self.folder}/run"\n')
            if subprocess.run(["buildah", "info"], env=environ, capture_output=True, check=False).returncode == 0:
                break
        return environ

    def done(self, *words: str | Path) -> str:
        """Run Buildah, which must succeed; returns its stdout."""
        command = ["buildah", *map(str, words)]
        ran = subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def configuration(self, image: str) -> dict[str, Any]:
        """How an image says that it wants to be run."""
        found: dict[str, Any] = json.loads(self.done("inspect", "--type", "image", image))["Docker"]["config"]
        return found

    @contextmanager
    def container(self, image: str) -> Iterator[Container]:
        """A container of the image, which is removed at the end."""
        name = self.done("from", image)
        try:
            yield Container(self, name, Path(self.done("mount", name)))
        finally:
            self.done("rm", name)


@pytest.fixture(scope="session")
def storage(shared: Callable[[str, Callable[[Path], object]], Path]) -> Storage:
    """A storage with a bare Debian, and the image that `make image` builds on it, from a folder of wheels."""

    def fill(folder: Path) -> None:
        storage, wheels = Storage(folder), folder / "wheels"
        if not DEBIAN.exists():
            unavailable("there is no Debian to build the image on: `make test-deps` makes it")
        container = storage.done("from", "scratch")
        storage.done("add", container, DEBIAN, "/")
        storage.done("commit", "--rm", container, BASE)
        for name in ("run", "sbom"):
            pinned = ("--require-hashes", "--requirement", ROOT / "requirements" / f"{name}.txt")
            chosen = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11", "--dest", wheels)
            subprocess.run([sys.executable, "-m", "pip", "download", *chosen, *pinned], check=True)
        offline = ["--build-arg", "PIP_OPTIONS=--no-index --find-links /wheels", "--volume", f"{wheels}:/wheels:ro"]
        options = shlex.join(["--build-arg", f"BASE={BASE}", *offline])
        values = [f"BIN={Path(sys.executable).parent}", f"OPTIONS={options}", f"SOURCE={SOURCE}"]
        subprocess.run(["make", "--assume-old=.venv/run", "image", *values], cwd=ROOT, env=storage.environ, check=True)
        shutil.rmtree(wheels)

    return Storage(shared("image", fill))

"""Reads what `status` tells of the output folder, without its lock; it writes nothing. Start with `in_folder`."""

from collections.abc import Iterator

from generator.config.settings import Config
from generator.errors import OutputError
from generator.site.sessions import LastPublish
from generator.tree import blocklist, files, folder, manifest_file, run_lock
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.status import PlaceStatus, Standing
from generator.wording import counted


def in_folder(config: Config, *, is_brief: bool) -> tuple[Standing, str]:
    """The output folder, and the as-of of the last publish from there. A brief answer reads no state of a large one."""
    root, name = config.output, f"{config.output}/"
    faults: list[str] = []
    built, blocked, published = None, BlockedList(), ""
    try:
        with folder.read_only(root) as output:
            try:
                blocked = blocklist.load(output)
            except OutputError as error:
                faults.append(str(error))
            last = LastPublish.found(output.read)
            published = last.as_of if last and last.target == config.publish.target else ""
            built = _built(output, config, is_brief=is_brief)
    except OutputError as error:
        faults.append(str(error))
    if built:
        faults += _faults_here(config, built, blocked)
    hold = None if config.publish.target else blocked.hold
    return Standing(place(name, built, faults), hold), published


def _built(output: Output, config: Config, *, is_brief: bool) -> Manifest | None:
    if not is_brief:
        return output.manifest(is_light=True)
    content = output.read(files.MANIFEST)
    return None if content is None else manifest_file.decoded(config.output, content)


def _faults_here(config: Config, built: Manifest, blocked: BlockedList) -> Iterator[str]:
    command = "rebuild" if config.publish.target else "build"
    if not built.complete and not run_lock.is_held(config.output):
        yield f"{config.output}: a run was cut short there; `public-markets {command}` finishes its work"
    yield from still_shown(f"{config.output}", built, blocked)


def still_shown(name: str, built: Manifest, blocked: BlockedList) -> Iterator[str]:
    """Say whether what was taken down is still there, as a takedown leaves it that was cut short."""
    if left := blocked.ids() & built.markets.keys():
        yield f"{name}: shows what is blocked ({counted(len(left), 'market')}); run `public-markets takedown` again"


def place(name: str, built: Manifest | None, faults: list[str], publisher: str = "") -> PlaceStatus:
    """What a place holds, by its manifest."""
    if built is None or built.is_first:
        return PlaceStatus(name, publisher=publisher, faults=tuple(faults))
    return PlaceStatus(name, built.as_of, len(built.ids()) or built.market_count, publisher, tuple(faults))

"""From `publish.target` to a directory: what is created, what is refused because something else may be meant."""

from pathlib import Path

import pytest

from generator.errors import ConfigError
from generator.stores.directory import Directory
from generator.stores.factory import open_store
from generator.stores.store import If
from tests.support.sites.builds import make_config

KEY = "v1/build.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("target", ["markets/api", "site", "site/", ".site", "markets"])
@pytest.mark.parametrize("endpoint", ["", "https://s3.example.org"])
def test_a_plain_name_that_is_no_directory_may_be_a_bucket_and_is_refused(
    target: str, endpoint: str, folder: Path
) -> None:
    config = make_config(folder, publish__target=target, **({"publish__endpoint_url": endpoint} if endpoint else {}))
    with pytest.raises(ConfigError) as caught:
        open_store(config)
    assert str(caught.value) == (
        f"publish.target: there is no directory {target} in {folder}; write s3://bucket/prefix for a bucket, or "
        f"./{target} for a directory to create"
    )
    assert not Path(target).exists()


@pytest.mark.parametrize("target", ["./markets/api", "../site-of-{name}", "{root}/new/site", "./site/"])
def test_a_directory_that_is_written_as_one_is_created(target: str, folder: Path) -> None:
    path = target.format(root=folder, name=folder.name)
    open_store(make_config(folder, publish__target=path)).put(KEY, b"{}", If.ALWAYS)
    assert (folder / path / KEY).read_bytes() == b"{}"


def test_a_plain_name_of_a_directory_that_exists_works(folder: Path) -> None:
    (folder / "markets" / "api").mkdir(parents=True)
    assert isinstance(open_store(make_config(folder, publish__target="markets/api")), Directory)


@pytest.mark.parametrize(
    ("output", "place"),
    [
        *(("site/v1", "v1"), ("site/v1/output", "v1"), ("link/v1/output", "v1")),
        *(("site/shards", "shards"), ("site/shards/output", "shards")),
    ],
)
def test_an_output_folder_among_published_objects_or_shards_is_refused(output: str, place: str, folder: Path) -> None:
    """`publish --verify` would delete it as unknown."""
    (folder / "link").symlink_to("site")
    said = rf"^output: {output} is in .*site/{place}, which is for published objects and shards only; "
    with pytest.raises(ConfigError, match=said):
        open_store(make_config(folder, publish__target=str(folder / "site"), output=output))


def test_an_output_folder_beside_published_objects_is_accepted(folder: Path) -> None:
    open_store(make_config(folder, publish__target="./site", output="site/output"))


# Buckets


@pytest.mark.parametrize(
    ("endpoint", "alone"),
    [
        ("https://account.r2.cloudflarestorage.com/markets", "https://account.r2.cloudflarestorage.com"),
        ("https://markets.s3.eu-west-1.amazonaws.com", "https://s3.eu-west-1.amazonaws.com"),
        ("https://project.example.co/storage/v1/s3/markets", "https://project.example.co/storage/v1/s3"),
        ("http://127.0.0.1:9000/markets/", "http://127.0.0.1:9000"),
    ],
)
def test_an_endpoint_that_names_the_bucket_is_refused(endpoint: str, alone: str, folder: Path) -> None:
    """Every object would be put where no reader looks: below a folder with the bucket's name."""
    config = make_config(folder, publish__target="s3://markets/api", publish__endpoint_url=endpoint)
    with pytest.raises(ConfigError) as caught:
        open_store(config)
    assert str(caught.value) == (
        f"publish.endpoint_url: names the bucket markets, which publish.target names already; write {alone}"
    )


@pytest.mark.parametrize("endpoint", ["https://markets.example.org", "https://example.org/markets/s3"])
def test_an_endpoint_may_contain_the_name_by_chance(endpoint: str, folder: Path) -> None:
    open_store(make_config(folder, publish__target="s3://markets/api", publish__endpoint_url=endpoint))


@pytest.mark.parametrize("target", ["s3://markets/api", "s3://markets/api/", "s3://markets//api//"])
def test_slashes_around_the_prefix_do_not_matter(target: str, folder: Path) -> None:
    assert make_config(folder, publish__target=target).publish.bucket() == ("markets", "api/")

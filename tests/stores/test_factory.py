"""From `publish.target` to a store: what is created, what is refused because something else may be meant."""

from pathlib import Path

import pytest

from generator.errors import ConfigError
from generator.stores.directory import Directory
from generator.stores.factory import open_store
from generator.stores.s3 import Bucket
from generator.stores.store import If, SingleWriter
from tests.support.sites.builds import make_config
from tests.support.stores.s3.server import S3Server

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


def test_a_single_writer_must_be_declared(folder: Path) -> None:
    config = make_config(folder, publish__target="./site", publish__single_writer="true")
    assert isinstance(open_store(config), SingleWriter)


def test_a_missing_target_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^publish\.target: is not set; set it to s3:"):
        open_store(make_config(folder))


@pytest.mark.parametrize(
    ("output", "place"),
    [
        *(("site/v1", "v1"), ("site/v1/output", "v1"), ("link/v1/output", "v1")),
        *(("site/state", "state"), ("site/state/output", "state")),
    ],
)
def test_an_output_folder_among_published_objects_or_states_is_refused(output: str, place: str, folder: Path) -> None:
    """`publish --verify` would delete it as unknown."""
    (folder / "link").symlink_to("site")
    said = rf"^output: {output} is in .*site/{place}, which is for published objects and states only; "
    with pytest.raises(ConfigError, match=said):
        open_store(make_config(folder, publish__target=str(folder / "site"), output=output))


def test_an_output_folder_beside_published_objects_is_accepted(folder: Path) -> None:
    open_store(make_config(folder, publish__target="./site", output="site/output"))


# Buckets


@pytest.mark.parametrize(("client", "threads"), [("obstore", 128), ("boto3", 16)])
def test_an_address_means_a_bucket_and_the_configuration_names_the_client(
    client: str, threads: int, folder: Path, s3: S3Server
) -> None:
    target = {"publish__target": f"s3://{s3.name}/some/prefix", "publish__endpoint_url": s3.url}
    bucket = open_store(make_config(folder, **target, publish__client=client))
    assert isinstance(bucket, Bucket)
    bucket.put(KEY, b"1", If.ABSENT)
    assert (bucket.name, [*s3.objects()]) == (f"s3://{s3.name}/some/prefix", [f"some/prefix/{KEY}"])
    assert bucket.parallel == threads


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

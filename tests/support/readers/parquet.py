"""What Parquet files hold, for tests."""

import io
from typing import Any

from arro3.io import read_parquet


def rows(file: bytes) -> list[dict[str, Any]]:
    """The rows of a file, by column."""
    return [row for batch in read_parquet(io.BytesIO(file)) for row in batch.to_struct_array().to_pylist()]


def owners(file: bytes) -> set[str]:
    """The ids of the markets that a file has rows of."""
    return {row["marketId"] if "marketId" in row else row["id"] for row in rows(file)}

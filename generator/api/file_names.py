"""The names that files of downloads have, for those who ask for them and those who are asked. Pure."""

import re
from typing import Final

from generator.api import keys
from generator.api.downloads import MARKETS_FOLDER, NAME_LENGTH, NDJSON, PARQUET, QUESTIONS_FOLDER, TABLES

#: The shapes of a table's files, after its name: `0` stands for any digit, `*` for the digest of a file.
SHAPES_OF_TABLE: Final = (f"/period=0000/*.{PARQUET}", f"/period=0000-00/*.{PARQUET}")


def is_file(key: str) -> bool:
    """Whether a file of some site's downloads can have this key."""
    return _FILES.fullmatch(key) is not None


def expression(shape: str) -> str:
    """A regular expression, nginx's and Python's, for paths of a shape: `0` is any digit, `*` the digest of a file."""
    digits = {"0": "[0-9]", "*": f"[0-9a-f]{{{NAME_LENGTH}}}", ".": r"\."}
    return "".join(digits.get(letter, letter) for letter in shape)


_FILES: Final = re.compile(
    "|".join(
        expression(keys.chunk(download, name))
        for download, name in (
            (keys.CHANGES, f"*.{NDJSON}"),
            *(
                (keys.DUMPS, f"{folder}*.{extension}")
                for folder in (MARKETS_FOLDER, QUESTIONS_FOLDER)
                for extension in (NDJSON, PARQUET)
            ),
            *((keys.DUMPS, f"{table}{rest}") for table in TABLES for rest in SHAPES_OF_TABLE),
        )
    )
)

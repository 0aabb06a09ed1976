"""Files that readers download: the dump of all listed markets, and the steps of the change feed. Pure.

Imports `tree` and `api` only. Start with `segments` and `dump`, then `steps`. The client in clients/python reads what
these write. `parquet` writes the dump in another form, and histories and fills, which `partitions` divides into files.
`histories` says what full ones hold of each market; `records` are their rows, `derivation` makes candles of them, and
`record_files` turns them into Parquet and back. Only these three and their users load NumPy, which most sites lack.
`side_file` is what a build keeps for the next one. The heads that name the files are in `api.downloads`, and how files
become a generation in `tree.download`.
"""

"""Files that readers download: the dump of all listed markets, and the steps of the change feed. Pure.

Imports `tree` and `api` only. Start with `segments` and `dump`, then `steps`. The client in clients/python reads what
these write. `parquet` writes the dump in another form, and reads tables, which `periods` divides into files.
`histories` says what these hold of each market; `records` are their rows, as Parquet and back, and `derivation` makes
candles of them. Only these two and their users load NumPy, which most sites lack.
`definitions` makes rows of those of questions. `side_file` is what a build keeps for the next one. The heads that name
the files are in `api.downloads`, and how files become a generation in `site.download_files`.
"""

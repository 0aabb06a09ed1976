"""Files that readers take away: the dump of all listed markets, and the steps of the change feed. Pure.

Imports `api` only. Start with `segments` and `dump`, then `steps`. clients/follow_changes.py reads what these write.
`parquet` writes the dump in another form, and histories and fills, which `partitions` divides into files.
"""

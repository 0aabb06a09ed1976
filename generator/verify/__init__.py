"""Checks a live site through its edge, as a reader sees it: without database, configuration, bucket or key.

    build.json ─► dump ─► expected (the maker's lists, in memory) ─► checks ─► reader ─► mismatches

A site is a function of its dump. So whoever has the dump can tell what each answer must be, and need not believe any
cache between the bucket and themselves. Start with `run`, which asks again before it accuses, as the site may have
changed meanwhile. `contract` needs no dump: it holds any server of the read API to the contract.
"""

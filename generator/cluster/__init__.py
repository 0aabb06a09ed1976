"""Runs calls on a Dask cluster. It knows nothing about markets, and imports only the leaves at the root.

A call is any picklable object that is called without arguments; it must be idempotent, as it may run more than once.
Start with `engine`.
"""

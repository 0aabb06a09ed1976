"""Runs calls on a Dask cluster. It knows nothing of markets, and imports no package.

A call is any object without arguments that can be pickled; it may run more than once. Start with `engine`.
"""

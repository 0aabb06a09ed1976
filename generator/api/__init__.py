"""The wire contract: fields and limits, paths and keys, cursors, slugs, and the OpenAPI document. Pure.

Imports `config` only. Start with `contract`, then `keys`.
"""

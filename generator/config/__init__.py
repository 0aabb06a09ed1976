"""The settings, with their defaults and descriptions, and the loader that reads them.

Imports no other package. Start with `settings`, then `loader`.
"""

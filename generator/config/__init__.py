"""Everything that can be set: the settings with their defaults and descriptions, and where they come from.

Imports nothing of the other packages but `errors`. Start with `settings`, then `loader`.
"""

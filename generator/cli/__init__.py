"""The commands: options, messages, exit codes. The only package that reads the clock.

Imports everything; nobody imports it. Start with `main`, then `command`.
"""

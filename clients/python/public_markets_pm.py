"""Starts the command `pm`. Not in the package, so that Ctrl-C prints no traceback while that is imported, either."""


def main() -> int:
    """Run the command; return its exit code, 130 if it was interrupted."""
    try:
        from public_markets_client.command import main as run  # noqa: PLC0415 - it takes a moment

        return run()
    except KeyboardInterrupt:
        return 130

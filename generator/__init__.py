"""Public Markets: a prediction market's public read API, rendered as static files."""

__version__ = "0.1.0"

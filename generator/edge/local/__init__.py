"""`serve`: the rendered router in an embedded JavaScript engine, behind a local HTTP server. Start with `server`."""

"""The OpenAPI 3.1 document, written by hand around the schemas of the wire models. Start with `document`."""

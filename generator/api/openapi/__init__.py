"""The OpenAPI 3.1 document: hand-written around the schemas of the wire models. Start with `document`."""

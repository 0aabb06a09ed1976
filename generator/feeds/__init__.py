"""Feeds of new and of resolved markets, as JSON Feed and as Atom. Pure.

A feed is made from the items of a list (`json_feed`), or from the published one without some of its markets. The Atom
feed (`atom`) is a function of the JSON feed, so a withdrawal can make both without the database.
Imports `api` and `config` only. Start with `json_feed`.
"""

"""A site is a function of its listed markets: whatever is published of them is made here.

Start with `families`, the table of contents of everything under `v1/`; `make` makes it.

    build       the catalog of the database's rows                  into the output folder
    takedown    the catalog of the published dump, without some     into the output folder, or a store seen as one

Questions, made of the catalog by `questions`, are of the database, or of their published definitions.

Both give the same bytes for the same markets, so taking a market down leaves what a build without it would leave. What
is made, in publication order:

    1  generations      of each list, pages or chunks; of the search index; files of dump and change feed
    2  details          one per public market: a build's parts stage them, a takedown keeps them (`catalog.Details`)
    3  documents        snapshot, prices, feeds are made here; error bodies, OpenAPI and so on depend on settings alone
    4  heads            of the dump, and then first pages of lists, and the heads of search index and change feed
    5  build.json       announces it

Everything is staged before anything moves; `tree.staging` moves it into place, `publish` puts it into a store.
"""

-- A third invented site, on SQLite, mapped by club_views.sql from docs/your-database.md alone: a betting club with three
-- answers to a question, a row for each outcome, cents, whole-number states, local times, negative amounts, nothing that
-- says when a market was opened, no history, no moderation.

CREATE TABLE fixtures (
    fixture_id INTEGER PRIMARY KEY,
    home       TEXT NOT NULL,
    away       TEXT NOT NULL,
    kickoff    TEXT NOT NULL,     -- local time in Paris, such as 2026-07-15 21:00:00
    state      INTEGER NOT NULL,  -- 0 draft, 1 live, 2 settled, 3 abandoned
    settled_ms INTEGER,
    removed_on TEXT
);
CREATE TABLE selections (
    sel_id     INTEGER PRIMARY KEY,
    fixture_id INTEGER NOT NULL REFERENCES fixtures,
    label      TEXT NOT NULL,
    paused     TEXT NOT NULL DEFAULT ''
);
CREATE TABLE prices (
    sel_id INTEGER NOT NULL REFERENCES selections,
    yn     TEXT NOT NULL,      -- Y or N: a row for each
    cents  INTEGER NOT NULL,   -- of a unit that pays 100
    won    INTEGER,
    PRIMARY KEY (sel_id, yn)
);
CREATE TABLE wagers (
    wager_id  INTEGER PRIMARY KEY,
    sel_id    INTEGER NOT NULL REFERENCES selections ON DELETE CASCADE,
    yn        TEXT NOT NULL,
    punter    TEXT NOT NULL,
    cents     INTEGER NOT NULL,  -- negative: cashed out
    units     INTEGER NOT NULL,  -- negative with it
    struck_ms INTEGER NOT NULL,
    void_on   TEXT
);
CREATE INDEX wagers_by_selection ON wagers (sel_id);
CREATE TABLE book (
    book_id    INTEGER PRIMARY KEY,
    sel_id     INTEGER NOT NULL REFERENCES selections ON DELETE CASCADE,
    yn         TEXT NOT NULL,
    act        TEXT NOT NULL,    -- buy or sell
    cents      INTEGER NOT NULL,
    open_cents INTEGER NOT NULL,
    punter     TEXT NOT NULL,
    is_hidden  INTEGER NOT NULL DEFAULT 0,
    expires_at TEXT NOT NULL     -- UTC
);
CREATE INDEX book_by_selection ON book (sel_id);

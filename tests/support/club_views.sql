-- The views of the betting club in club_schema.sql.

CREATE TABLE public_ids (kind TEXT, key INTEGER, id TEXT NOT NULL UNIQUE DEFAULT (lower(
    hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
    || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    since TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (kind, key));
INSERT INTO public_ids (kind, key) SELECT 'wager', wager_id FROM wagers;
INSERT INTO public_ids (kind, key) SELECT 'selection', sel_id FROM selections;
CREATE TRIGGER wagers_public_id AFTER INSERT ON wagers BEGIN
    INSERT INTO public_ids (kind, key) SELECT 'wager', NEW.wager_id
    WHERE NOT EXISTS (SELECT 1 FROM public_ids WHERE kind = 'wager' AND key = NEW.wager_id);
END;
CREATE TRIGGER selections_public_id AFTER INSERT ON selections BEGIN
    INSERT INTO public_ids (kind, key) SELECT 'selection', NEW.sel_id
    WHERE NOT EXISTS (SELECT 1 FROM public_ids WHERE kind = 'selection' AND key = NEW.sel_id);
END;

CREATE VIEW markets AS
SELECT
    i.id                                                                     AS id,
    NULL                                                                     AS slug,
    c.home || ' v. ' || c.away || coalesce(' ' || nullif(trim(s.label), ''), '') AS question,
    NULL                                                                     AS description,
    CASE
        WHEN c.state = 1 AND c.closes_at <= CURRENT_TIMESTAMP THEN 'closed'
        WHEN c.state = 1 THEN 'open'
        WHEN c.state = 2 THEN 'resolved'
        WHEN c.state = 3 THEN 'cancelled'
    END                                                                      AS status,
    'approved'                                                               AS approval,
    1                                                                        AS is_listed,
    yes.cents / 100.0                                                        AS prob,
    coalesce(t.cents, 0) / 100.0                                             AS volume,
    0                                                                        AS pool_yes,
    0                                                                        AS pool_no,
    c.closes_at                                                              AS close_time,
    CASE
        WHEN c.state = 3 THEN 'CANCEL'
        WHEN c.state = 2 AND yes.won THEN 'YES'
        WHEN c.state = 2 AND no.won THEN 'NO'
    END                                                                      AS resolution,
    min(coalesce(t.first_at, i.since), i.since)                              AS created_at,
    CASE WHEN c.state IN (2, 3) THEN datetime(c.settled_ms / 1000, 'unixepoch') END AS resolved_at,
    coalesce(t.last_at, i.since)                                             AS last_activity_at,
    coalesce(t.punters, 0)                                                   AS trader_count,
    s.paused                                                                 AS trading_pause_reason,
    NULL                                                                     AS creation_source,
    NULL                                                                     AS sponsor,
    coalesce((SELECT d.version FROM detail_versions AS d WHERE d.sel_id = s.sel_id), 'untraded') || ' '
        || (SELECT count(*) FROM book AS o WHERE o.sel_id = s.sel_id AND o.expires_at <= CURRENT_TIMESTAMP)
                                                                             AS detail_version,
    s.sel_id                                                                 AS key
FROM (
    SELECT *, datetime(kickoff, CASE
        WHEN kickoff >= date(strftime('%Y-03-25', kickoff), 'weekday 0') || ' 02:00'
            AND kickoff < date(strftime('%Y-10-25', kickoff), 'weekday 0') || ' 03:00' THEN '-2 hours'
        ELSE '-1 hours' END) AS closes_at
    FROM fixtures
    WHERE removed_on IS NULL AND state <> 0
) AS c
JOIN selections AS s USING (fixture_id)
JOIN public_ids AS i ON i.kind = 'selection' AND i.key = s.sel_id
JOIN prices AS yes ON yes.sel_id = s.sel_id AND yes.yn = 'Y'
JOIN prices AS no ON no.sel_id = s.sel_id AND no.yn = 'N'
LEFT JOIN (
    SELECT sel_id, sum(abs(cents)) AS cents, count(DISTINCT punter) AS punters,
        datetime(min(struck_ms) / 1000, 'unixepoch') AS first_at, datetime(max(struck_ms) / 1000, 'unixepoch') AS last_at
    FROM wagers
    WHERE void_on IS NULL
    GROUP BY sel_id
) AS t ON t.sel_id = s.sel_id;

CREATE VIEW fills AS
SELECT
    i.id AS id,
    m.id AS market_id,
    abs(t.cents) / 100.0 AS amount,
    abs(t.units) AS shares,
    abs(t.cents) / 100.0 / nullif(abs(t.units), 0) AS price,
    datetime(t.struck_ms / 1000, 'unixepoch') AS created_at
FROM wagers AS t
JOIN public_ids AS i ON i.kind = 'wager' AND i.key = t.wager_id
JOIN public_ids AS m ON m.kind = 'selection' AND m.key = t.sel_id
WHERE t.void_on IS NULL;

CREATE VIEW probabilities AS
SELECT
    m.id AS market_id,
    datetime(t.struck_ms / 1000, 'unixepoch') AS recorded_at,
    CASE WHEN t.yn = 'Y' THEN abs(t.cents) / 100.0 / abs(t.units) ELSE 1 - abs(t.cents) / 100.0 / abs(t.units) END AS prob
FROM wagers AS t
JOIN public_ids AS m ON m.kind = 'selection' AND m.key = t.sel_id
WHERE t.void_on IS NULL AND t.units <> 0;

CREATE VIEW orders AS
SELECT
    m.id AS market_id,
    CASE WHEN (o.act = 'buy') = (o.yn = 'Y') THEN 'bid' ELSE 'ask' END AS side,
    CASE WHEN o.yn = 'Y' THEN o.cents / 100.0 ELSE 1 - o.cents / 100.0 END AS price,
    o.open_cents / 100.0 AS amount,
    1 AS is_public
FROM book AS o
JOIN public_ids AS m ON m.kind = 'selection' AND m.key = o.sel_id
WHERE NOT o.is_hidden AND o.expires_at > CURRENT_TIMESTAMP;

CREATE VIEW market_categories AS SELECT NULL AS market_id, NULL AS category, NULL AS position WHERE false;
CREATE VIEW fx_members AS
SELECT NULL AS market_id, NULL AS title, NULL AS instrument, NULL AS source, NULL AS week_start, NULL AS week_end,
    NULL AS threshold_value, NULL AS direction, NULL AS is_public
WHERE false;

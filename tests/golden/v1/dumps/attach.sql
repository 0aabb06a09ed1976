-- The tables of http://127.0.0.1:8000 for DuckDB: views over the files of one state of its dump,
-- as of 2026-01-31T12:00:00.000Z.
-- The SHA-256 digest of its markets as NDJSON is b2791fb39afcb90ba79b9486e14c19558d6b7d95da262b953161ade5d6c4dcde.
-- A session that runs this stays in that state, whatever the site does, until some hours after newer files
-- replaced these, or until a market in them is withdrawn.
-- Then fetch this file again, and run it. From here on, the session's times are shown in UTC.

SET TimeZone = 'UTC';
SET VARIABLE "asOf" = TIMESTAMPTZ '2026-01-31T12:00:00.000Z';

CREATE OR REPLACE VIEW "markets" AS FROM read_json(['http://127.0.0.1:8000/v1/dumps/markets/b2791fb39afcb90ba79b9486e14c1955.ndjson.gz'], format = 'newline_delimited', columns = {"id": 'VARCHAR', "question": 'VARCHAR', "status": 'VARCHAR', "prob": 'DOUBLE', "volume": 'DOUBLE', "closeTime": 'TIMESTAMPTZ', "resolution": 'VARCHAR', "createdAt": 'TIMESTAMPTZ', "resolvedAt": 'TIMESTAMPTZ', "lastActivityAt": 'TIMESTAMPTZ', "traderCount": 'BIGINT', "fills24h": 'BIGINT', "acceptingBets": 'BOOLEAN', "description": 'VARCHAR', "poolYes": 'DOUBLE', "poolNo": 'DOUBLE', "tradingPauseReason": 'VARCHAR'});
COMMENT ON VIEW "markets" IS 'Every listed market, ascending by id.';
COMMENT ON COLUMN "markets"."id" IS 'The market''s UUID, in lower case.';
COMMENT ON COLUMN "markets"."question" IS 'What the market asks. Plain text, not HTML.';
COMMENT ON COLUMN "markets"."status" IS 'The state the market is in.';
COMMENT ON COLUMN "markets"."prob" IS 'Probability of YES. Unit: probability from 0 to 1.';
COMMENT ON COLUMN "markets"."volume" IS 'Money traded so far. Unit: the site''s money.';
COMMENT ON COLUMN "markets"."closeTime" IS 'When betting ends or ended.';
COMMENT ON COLUMN "markets"."resolution" IS 'How the market was resolved; always null while it is open or closed.';
COMMENT ON COLUMN "markets"."createdAt" IS 'When the market was created.';
COMMENT ON COLUMN "markets"."resolvedAt" IS 'When the market was resolved or cancelled; always null while it is open or closed.';
COMMENT ON COLUMN "markets"."lastActivityAt" IS 'When something last happened on the market.';
COMMENT ON COLUMN "markets"."traderCount" IS 'How many people traded. Unit: people.';
COMMENT ON COLUMN "markets"."fills24h" IS 'Trades within the 24 hours before this data was read. Unit: trades.';
COMMENT ON COLUMN "markets"."acceptingBets" IS 'Whether the market is open, closes later than this data was read, and is not paused.';
COMMENT ON COLUMN "markets"."description" IS 'The public text of the resolution rules; null if there is none. Plain text, not HTML.';
COMMENT ON COLUMN "markets"."poolYes" IS 'YES shares in the market maker''s pool. Unit: shares.';
COMMENT ON COLUMN "markets"."poolNo" IS 'NO shares in the market maker''s pool. Unit: shares.';
COMMENT ON COLUMN "markets"."tradingPauseReason" IS 'Why trading is paused; null when it is not. Plain text, not HTML.';

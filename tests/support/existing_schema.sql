-- An invented prediction market that was there before us, for templates/postgresql-views.sql to fit: other names, other
-- units (cents, basis points), enums, ranges, soft deletion, and much that is nobody's business.

CREATE SCHEMA app;

CREATE TYPE app.contract_state AS ENUM ('draft', 'trading', 'halted', 'expired', 'settled', 'voided');
CREATE TYPE app.outcome AS ENUM ('yes', 'no', 'refund');
CREATE TYPE app.verdict AS ENUM ('queued', 'passed', 'refused');
CREATE TYPE app.direction AS ENUM ('buy', 'sell');
CREATE DOMAIN app.basis_points AS integer CHECK (VALUE BETWEEN 0 AND 10000);

CREATE TABLE app.users (
    user_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text NOT NULL UNIQUE,
    password_hash text NOT NULL,
    is_forecaster boolean NOT NULL DEFAULT false
);

CREATE TABLE app.contracts (
    contract_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_ref        uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    url_name          varchar(200),
    title             text NOT NULL,
    rules             text,
    state             app.contract_state NOT NULL DEFAULT 'draft',
    outcome           app.outcome,
    chance_bp         app.basis_points NOT NULL,
    turnover_cents    bigint NOT NULL DEFAULT 0,
    reserve_yes_cents bigint NOT NULL,
    reserve_no_cents  bigint NOT NULL,
    opened_at         timestamptz NOT NULL DEFAULT now(),
    trading_ends_at   timestamptz NOT NULL DEFAULT 'infinity',
    settled_at        timestamptz,
    last_trade_at     timestamptz,
    halt_notice       text,
    origin            varchar(40),
    sponsored_by      text,
    owner_id          bigint NOT NULL REFERENCES app.users,
    is_searchable     boolean NOT NULL DEFAULT true,
    deleted_at        timestamptz
);

CREATE TABLE app.moderation (
    contract_id  bigint PRIMARY KEY REFERENCES app.contracts,
    verdict      app.verdict NOT NULL DEFAULT 'queued',
    moderator_id bigint REFERENCES app.users,
    note         text
);

CREATE TABLE app.topics (
    topic_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    label    text NOT NULL UNIQUE
);

CREATE TABLE app.contract_topics (
    contract_id bigint NOT NULL REFERENCES app.contracts,
    topic_id    bigint NOT NULL REFERENCES app.topics,
    rank        smallint NOT NULL,
    PRIMARY KEY (contract_id, topic_id)
);

CREATE TABLE app.currency_series (
    series_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL,
    pair         char(6) NOT NULL,
    rate_source  text NOT NULL,
    is_published boolean NOT NULL DEFAULT false
);

CREATE TABLE app.currency_legs (
    contract_id bigint PRIMARY KEY REFERENCES app.contracts,
    series_id   bigint NOT NULL REFERENCES app.currency_series,
    week        daterange NOT NULL,
    strike      numeric(12, 6) NOT NULL,
    at_or_above boolean NOT NULL
);

CREATE TABLE app.order_book_entries (
    entry_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    contract_id     bigint NOT NULL REFERENCES app.contracts,
    user_id         bigint NOT NULL REFERENCES app.users,
    direction       app.direction NOT NULL,
    price_cents     smallint NOT NULL CHECK (price_cents BETWEEN 1 AND 99),
    remaining_cents bigint NOT NULL,
    is_hidden       boolean NOT NULL DEFAULT false,
    cancelled_at    timestamptz
);

CREATE TABLE app.bets (
    bet_id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    contract_id    bigint NOT NULL REFERENCES app.contracts,
    user_id        bigint NOT NULL REFERENCES app.users,
    matched_bet_id uuid REFERENCES app.bets,
    stake_cents    bigint NOT NULL,
    shares         numeric(20, 6) NOT NULL,
    price_cents    smallint,
    placed_at      timestamptz NOT NULL DEFAULT now(),
    undone_at      timestamptz
);
CREATE INDEX bets_by_contract ON app.bets (contract_id);

CREATE TABLE app.price_history (
    contract_id bigint NOT NULL REFERENCES app.contracts,
    seen_at     timestamptz NOT NULL,
    chance_bp   app.basis_points NOT NULL,
    PRIMARY KEY (contract_id, seen_at)
);

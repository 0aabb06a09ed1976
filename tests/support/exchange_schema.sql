-- Another invented site, for templates/sql/bigint-views.sql to fit: numbers for keys, several contracts in a question,
-- local times, trades instead of an order book.

CREATE SCHEMA exchange;

CREATE TABLE exchange.questions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    title       text NOT NULL,
    rules       text,
    state       text NOT NULL DEFAULT 'open',
    winner_id   integer,
    is_approved boolean NOT NULL DEFAULT false,
    opened_at   timestamp NOT NULL,
    closes_at   timestamp NOT NULL,
    resolved_at timestamp
);

CREATE TABLE exchange.contracts (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question_id  bigint NOT NULL REFERENCES exchange.questions,
    label        text,
    chance       double precision NOT NULL,
    volume       numeric(12, 2) NOT NULL DEFAULT 0,
    is_withdrawn boolean NOT NULL DEFAULT false
);

CREATE TABLE exchange.trades (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    contract_id    integer NOT NULL REFERENCES exchange.contracts,
    user_id        bigint NOT NULL,
    other_trade_id bigint REFERENCES exchange.trades,
    stake          numeric(12, 2) NOT NULL,
    shares         numeric(20, 6) NOT NULL,
    traded_at      timestamp NOT NULL
);
CREATE INDEX trades_by_contract ON exchange.trades (contract_id);

-- SocialPredict's tables, for templates/sql/socialpredict-views.sql: those columns that the views read, and what they must
-- not read. GORM's habits: plural names, and in every table an id, created_at, updated_at and deleted_at.

CREATE TABLE users (
    id            bigserial PRIMARY KEY,
    created_at    timestamptz,
    updated_at    timestamptz,
    deleted_at    timestamptz,
    username      text UNIQUE,
    display_name  text,
    email         text,
    password      text,
    api_key       text,
    balance       bigint
);

CREATE TABLE markets (
    id                         bigserial PRIMARY KEY,
    created_at                 timestamptz,
    updated_at                 timestamptz,
    deleted_at                 timestamptz,
    question_title             text,
    description                text,
    outcome_type               text,
    resolution_date_time       timestamptz,
    final_resolution_date_time timestamptz,
    utc_offset                 bigint,
    is_resolved                boolean,
    resolution_result          text,
    initial_probability        numeric,
    yes_label                  text DEFAULT 'YES',
    no_label                   text DEFAULT 'NO',
    lifecycle_status           text,
    approved_by                text,
    approved_at                timestamptz,
    rejected_by                text,
    rejected_at                timestamptz,
    rejection_reason           text,
    proposal_cost              bigint,
    creator_username           text,
    steward_username           text
);

CREATE TABLE bets (
    id         bigserial PRIMARY KEY,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz,
    action     text,
    username   text,
    market_id  bigint,
    amount     bigint,
    placed_at  timestamptz,
    outcome    text
);

CREATE TABLE market_groups (
    id                   bigserial PRIMARY KEY,
    created_at           timestamptz,
    updated_at           timestamptz,
    deleted_at           timestamptz,
    question_title       varchar(160),
    description          text,
    group_type           text,
    lifecycle_status     text,
    resolution_date_time timestamptz
);

CREATE TABLE market_group_members (
    id            bigserial PRIMARY KEY,
    created_at    timestamptz,
    updated_at    timestamptz,
    deleted_at    timestamptz,
    group_id      bigint,
    market_id     bigint UNIQUE,
    answer_label  varchar(160),
    display_order bigint
);

CREATE TABLE market_tags (
    id           bigserial PRIMARY KEY,
    created_at   timestamptz,
    updated_at   timestamptz,
    deleted_at   timestamptz,
    slug         varchar(64) UNIQUE,
    display_name varchar(120),
    description  text,
    color_key    text,
    sort_order   bigint,
    is_active    boolean
);

CREATE TABLE market_tag_assignments (
    id          bigserial PRIMARY KEY,
    created_at  timestamptz,
    updated_at  timestamptz,
    deleted_at  timestamptz,
    market_id   bigint,
    tag_id      bigint,
    assigned_by text,
    source      text,
    UNIQUE (market_id, tag_id)
);

CREATE TABLE market_description_amendments (
    id          bigserial PRIMARY KEY,
    created_at  timestamptz,
    updated_at  timestamptz,
    deleted_at  timestamptz,
    market_id   bigint,
    version     bigint,
    body        text,
    status      text,
    approved_at timestamptz
);

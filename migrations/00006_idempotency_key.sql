-- idempotency_key: which run a client's Idempotency-Key has made. Written in the transaction of the run's own row, so the
-- key stands exactly when the run does; kept for 24 hours.

-- +goose Up
CREATE TABLE idempotency_key (
    organization_id bigint       NOT NULL,
    caller          varchar(255) NOT NULL, -- the subject that signed in: one caller's keys are nobody else's
    key             varchar(255) NOT NULL,
    fingerprint     bytea        NOT NULL, -- of the request: the same key with another body is refused
    kind            text         NOT NULL,
    run_id          varchar(255) NOT NULL,
    created_at      timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT idempotency_key_pkey PRIMARY KEY (organization_id, caller, key),
    CONSTRAINT idempotency_key_kind_known CHECK (kind IN ('wf2des', 'code2wf'))
);

-- For letting go of what is older than a day.
CREATE INDEX idempotency_key_created_at_idx ON idempotency_key (created_at);

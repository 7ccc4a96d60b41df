-- outbox: what must still be told to the job queue and the event feed. A row is written in the transaction of the change it tells of
-- and deleted once told; what needed no telling any more is skipped, what can never be told is set aside.

-- +goose Up
CREATE TABLE outbox (
    id          bigint       GENERATED ALWAYS AS IDENTITY,
    destination text         NOT NULL,
    kind        text         NOT NULL,
    run_id      varchar(255) NOT NULL,
    attempt     integer      NOT NULL,
    stage       text,                  -- what the worker is asked to do; jobs only
    seq         integer,               -- which run_event is told; events only
    traceparent text,
    state       text         NOT NULL DEFAULT 'pending',
    -- clock_timestamp, not the transaction's start: a long transaction must not look overdue at its birth.
    created_at  timestamptz  NOT NULL DEFAULT clock_timestamp(),
    due_at      timestamptz  NOT NULL DEFAULT clock_timestamp(), -- not to be tried before; a claim moves it ahead
    tries       integer      NOT NULL DEFAULT 0,
    last_error  text,
    settled_at  timestamptz,           -- when it was skipped or set aside

    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_destination_known CHECK (destination IN ('jobs', 'events')),
    CONSTRAINT outbox_kind_known CHECK (kind IN ('wf2des', 'code2wf')),
    CONSTRAINT outbox_stage_known CHECK (stage IN ('parse', 'assemble', 'generate')),
    CONSTRAINT outbox_stage_iff_job CHECK ((destination = 'jobs') = (stage IS NOT NULL)),
    CONSTRAINT outbox_seq_iff_event CHECK ((destination = 'events') = (seq IS NOT NULL)),
    CONSTRAINT outbox_state_known CHECK (state IN ('pending', 'skipped', 'set_aside')),
    CONSTRAINT outbox_settled_iff_not_pending CHECK ((state = 'pending') = (settled_at IS NULL)),
    CONSTRAINT outbox_tries_not_negative CHECK (tries >= 0)
) WITH (
    -- A queue is small and turns over completely. Vacuuming by a share of its size would come never or always, so
    -- it goes by dead rows alone, at full speed: every dead row is stepped over by the next claim until then.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    -- The same for statistics: neither a burst nor the emptiness after it should rule the plans for long.
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000,
    -- Giving the empty tail back takes an exclusive lock, here as on every replica, for pages needed again at once.
    vacuum_truncate = false,
    -- A claim changes only due_at and tries, which no index holds: with room on its page it is a HOT update.
    fillfactor = 70
);

-- The claim: oldest first. What rests after a failure is stepped over.
CREATE INDEX outbox_pending_idx ON outbox (destination, id) WHERE state = 'pending';

-- Is something older of the same run still pending? Then this one waits.
CREATE INDEX outbox_pending_run_idx ON outbox (destination, run_id, id) WHERE state = 'pending';

-- What an operator has to look at.
CREATE INDEX outbox_set_aside_idx ON outbox (settled_at) WHERE state = 'set_aside';

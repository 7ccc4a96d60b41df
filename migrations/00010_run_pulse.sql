-- run_pulse: when a run's worker was last heard of. Progress changes no run, but it pushes the deadline of the state that the run is in,
-- and every replica has to agree on that. There are rows for open runs alone; those of ended runs are cleared away.

-- +goose Up
CREATE TABLE run_pulse (
    kind     text         NOT NULL,
    run_id   varchar(255) NOT NULL,
    attempt  integer      NOT NULL, -- of the worker who spoke: what an older one said says nothing of the newer
    heard_at timestamptz  NOT NULL, -- by PostgreSQL's clock, like all times that a deadline is reckoned from

    CONSTRAINT run_pulse_pkey PRIMARY KEY (kind, run_id),
    CONSTRAINT run_pulse_kind_known CHECK (kind IN ('wf2des', 'code2wf')),
    CONSTRAINT run_pulse_attempt_positive CHECK (attempt >= 1)
) WITH (
    -- The same rows are written over and over, in columns that no index holds: with room on the page that is a HOT update.
    fillfactor = 70,
    -- It is small and turns over completely, as the outbox does.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

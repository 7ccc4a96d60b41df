-- run_event: the timeline of every run, of both kinds. What happened, who did it, from where to where, when; also
-- what came too late and changed nothing. It is written in the transaction of the row's change, so it has no gap and
-- replays to the row.

-- +goose Up
CREATE TABLE run_event (
    kind        text         NOT NULL,
    run_id      varchar(255) NOT NULL, -- no foreign key: two tables, and the timeline may outlive the row
    seq         integer      NOT NULL, -- 1, 2, 3, … within the run
    what        text         NOT NULL,
    outcome     text         NOT NULL,
    actor_kind  text         NOT NULL,
    actor       varchar(255) NOT NULL, -- a Cognito subject or the name of a backend actor
    from_state  text,                  -- NULL: there was no run before
    to_state    text         NOT NULL,
    attempt     integer      NOT NULL,
    version     timestamptz  NOT NULL, -- the row's updated_at after this event
    at          timestamptz  NOT NULL,
    data        jsonb        NOT NULL DEFAULT '{}',
    traceparent text,

    CONSTRAINT run_event_pkey PRIMARY KEY (kind, run_id, seq),
    CONSTRAINT run_event_kind_known CHECK (kind IN ('wf2des', 'code2wf')),
    CONSTRAINT run_event_seq_positive CHECK (seq >= 1),
    CONSTRAINT run_event_what_known CHECK (what IN (
        'created', 'parsed', 'confirmed', 'rejected', 'completed', 'failed', 'cancelled',
        'placed', 'rated', 'deleted', 'requeued')),
    CONSTRAINT run_event_outcome_known CHECK (outcome IN ('applied', 'duplicate', 'superseded', 'already_terminal')),
    CONSTRAINT run_event_actor_kind_known CHECK (actor_kind IN ('user', 'worker', 'backend')),
    CONSTRAINT run_event_from_state_known CHECK (from_state IN (
        'parsing', 'awaiting_confirm', 'assembling', 'processing', 'completed', 'failed', 'rejected', 'cancelled')),
    CONSTRAINT run_event_to_state_known CHECK (to_state IN (
        'parsing', 'awaiting_confirm', 'assembling', 'processing', 'completed', 'failed', 'rejected', 'cancelled')),
    CONSTRAINT run_event_data_is_object CHECK (jsonb_typeof(data) = 'object')
);

-- +goose StatementBegin
CREATE FUNCTION run_event_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'run_event is append-only: what happened is not rewritten'
        USING ERRCODE = 'restrict_violation', TABLE = 'run_event', CONSTRAINT = 'run_event_append_only';
END;
$$;
-- +goose StatementEnd

-- DELETE stays possible: old timelines are let go one day.
CREATE TRIGGER run_event_append_only BEFORE UPDATE ON run_event
    FOR EACH STATEMENT EXECUTE FUNCTION run_event_refuse_update();

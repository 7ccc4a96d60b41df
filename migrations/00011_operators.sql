-- What operators do: their hand on the outbox gets a line in the run's timeline, and what they and retention look for is found
-- without reading everything. The indexes cost an ordinary run nothing: none of its rows is ever in them.

-- +goose NO TRANSACTION
-- +goose Up

-- The wider CHECK stands at once; old rows are checked afterwards, beside readers and writers.
ALTER TABLE run_event
    DROP CONSTRAINT run_event_what_known,
    ADD CONSTRAINT run_event_what_known CHECK (what IN (
        'created', 'parsed', 'confirmed', 'rejected', 'completed', 'failed', 'cancelled',
        'placed', 'rated', 'deleted', 'requeued', 'delivery_retried', 'delivery_skipped')) NOT VALID,
    DROP CONSTRAINT run_event_outcome_known,
    ADD CONSTRAINT run_event_outcome_known CHECK (outcome IN (
        'applied', 'duplicate', 'superseded', 'already_terminal', 'noted')) NOT VALID;

ALTER TABLE run_event
    VALIDATE CONSTRAINT run_event_what_known,
    VALIDATE CONSTRAINT run_event_outcome_known;

-- An index whose making was interrupted stays behind invalid: it is made anew.
DROP INDEX CONCURRENTLY IF EXISTS outbox_settled_run_idx;
DROP INDEX CONCURRENTLY IF EXISTS outbox_skipped_idx;
DROP INDEX CONCURRENTLY IF EXISTS run_event_deleted_idx;

-- What was skipped or set aside of one run: for an operator who looks at it, and for retention.
CREATE INDEX CONCURRENTLY outbox_settled_run_idx ON outbox (run_id) WHERE state <> 'pending';

-- Retention: what was skipped long ago.
CREATE INDEX CONCURRENTLY outbox_skipped_idx ON outbox (settled_at) WHERE state = 'skipped';

-- Retention: runs that were deleted long ago.
CREATE INDEX CONCURRENTLY run_event_deleted_idx ON run_event (kind, at) WHERE what = 'deleted';

-- One index of all that the outbox holds of a run, in place of one of what is pending and one of the rest: what is asked of a run's entries is the
-- same before and after they are settled, and an index of what is pending alone offers itself to questions that it answers by reading all of it.

-- +goose NO TRANSACTION
-- +goose Up

-- An index whose making was interrupted stays behind invalid: it is made anew.
DROP INDEX CONCURRENTLY IF EXISTS outbox_whole_run_idx;
CREATE INDEX CONCURRENTLY outbox_whole_run_idx ON outbox (run_id);
DROP INDEX CONCURRENTLY IF EXISTS outbox_run_idx;
ALTER INDEX outbox_whole_run_idx RENAME TO outbox_run_idx;
DROP INDEX CONCURRENTLY IF EXISTS outbox_settled_run_idx;

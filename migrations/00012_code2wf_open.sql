-- The open code2wf runs, the longest unchanged first: what the reaper looks for every few seconds. Without it that look reads an index
-- of all runs there ever were (100 ms instead of 1 with a million of them). It costs one entry when a run is created and nothing when
-- it ends. The open wf2des runs are found by wf2des_open_generation_uq: an index over their updated_at would keep parsed and confirm
-- from being HOT updates, a third of their speed.

-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY code2wf_open_idx ON code2wf (updated_at, id) WHERE status = '0';

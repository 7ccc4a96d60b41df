-- Which queue a job belongs to stands in its outbox entry, so that a claim finds a queue's jobs by an index however many wait for
-- another one that is down.

-- +goose Up
ALTER TABLE outbox
    ADD COLUMN work text NOT NULL DEFAULT '', -- jobs: the edge of a wf2des run, or code2wf; '' for everything else, and for jobs of programs that do not know it
    ADD CONSTRAINT outbox_work_of_jobs CHECK (work = '' OR destination = 'jobs');

UPDATE outbox SET work = coalesce((SELECT CASE edge WHEN '0' THEN 'wf2des' ELSE 'des2wf' END FROM wf2des WHERE wf2des.id = outbox.run_id), 'code2wf')
WHERE destination = 'jobs' AND state = 'pending';

-- The claim: oldest first. What rests after a failure is stepped over. By created_at, which no other index has: in the order of the ids
-- PostgreSQL would rather walk the primary key, over everything that was ever skipped.
CREATE INDEX outbox_due_idx ON outbox (destination, work, created_at, id) WHERE state = 'pending';
DROP INDEX outbox_pending_idx;

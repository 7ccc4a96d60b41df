-- outbox: two destinations more, for the effects of a wf2des run outside the suite. 'documents' takes a designer's decision to
-- the result document, 'designs' a completed run to the platform's design registry. Like events they point to what happened.

-- +goose Up
SET LOCAL lock_timeout = '2s';

ALTER TABLE outbox
    DROP CONSTRAINT outbox_destination_known,
    DROP CONSTRAINT outbox_seq_iff_event,
    ADD CONSTRAINT outbox_destination_known CHECK (destination IN ('jobs', 'events', 'documents', 'designs')),
    ADD CONSTRAINT outbox_seq_iff_event CHECK ((destination = 'jobs') = (seq IS NULL)),
    ADD CONSTRAINT outbox_effect_of_wf2des CHECK (destination IN ('jobs', 'events') OR kind = 'wf2des');

-- The enum types of the seed's type codes. Values are digits as strings, the platform's convention;
-- what a digit means is written beside it and in the store's code map, nowhere else.

-- +goose Up
CREATE TYPE wf2des_status AS ENUM (
    '0', -- processing: the run is open
    '1', -- completed
    '2', -- failed
    '3', -- rejected by the designer, which is not a failure
    '4'  -- cancelled
);

CREATE TYPE wf2des_phase AS ENUM (
    '0', -- parse
    '1', -- awaiting_confirm
    '2'  -- assemble
);

CREATE TYPE wf2des_auto_confirm AS ENUM (
    '0', -- normal: the designer confirms what was parsed
    '1'  -- auto-confirm: parse and assemble in one worker call
);

CREATE TYPE wf2des_trigger_surface AS ENUM (
    '0', -- api
    '1'  -- plugin
);

CREATE TYPE wf2des_feedback_status AS ENUM (
    '0', -- fixed
    '1'  -- adopted
);

CREATE TYPE wf2des_edge AS ENUM (
    '0', -- wf2des
    '1'  -- des2wf
);

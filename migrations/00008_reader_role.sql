-- The role that service query connects with: it can read what is shown to people, and write nothing.

-- +goose Up
-- Roles belong to the whole server, which may hold several databases of the suite. The role cannot sign in until an operator gives it
-- a way to do so (ALTER ROLE framerun_reader LOGIN PASSWORD …), or grants it to a role that can.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'framerun_reader') THEN
        CREATE ROLE framerun_reader NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL; -- another migration makes it this very moment
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'only a role with CREATEROLE can make the role framerun_reader'
            USING ERRCODE = 'insufficient_privilege',
                HINT = 'have an administrator run CREATE ROLE framerun_reader NOLOGIN, and migrate again';
END;
$$;
-- +goose StatementEnd

GRANT USAGE ON SCHEMA public TO framerun_reader;
GRANT SELECT ON wf2des, code2wf, run_event TO framerun_reader;
-- Of the platform's tables: who may call, and which projects there are.
GRANT SELECT ON "user", project TO framerun_reader;

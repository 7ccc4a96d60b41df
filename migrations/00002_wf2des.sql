-- wf2des: one row per generation run on either edge, the seed table to the letter. Its lengths that the seed
-- leaves open follow code2wf's; created_at and updated_at carry the default of the shared audit fields there.

-- +goose Up
CREATE TABLE wf2des (
    id               varchar(255)           NOT NULL, -- UUIDv7 made by the backend; job_id for workers
    organization_id  bigint                 NOT NULL,
    project_id       bigint                 NOT NULL,
    figma_file_key   varchar(255)           NOT NULL,
    wf_node_id       varchar(255)           NOT NULL,
    screen_id        varchar(255)           NOT NULL,
    prompt           text,
    placement_target varchar(255),
    auto_confirm     wf2des_auto_confirm    NOT NULL DEFAULT '0',
    trigger_surface  wf2des_trigger_surface NOT NULL, -- no default: who signed in decides it, every time
    status           wf2des_status          NOT NULL DEFAULT '0',
    phase            wf2des_phase,
    attempt          integer                NOT NULL DEFAULT 1,
    error_message    text,
    result_url       varchar(500),                    -- an S3 key, never a link
    flag_count       integer,
    materialized_at  timestamptz,
    feedback_status  wf2des_feedback_status,
    created_at       timestamptz            NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at       timestamptz            NOT NULL DEFAULT CURRENT_TIMESTAMP,
    deleted_at       timestamptz,
    created_by       varchar(255)           NOT NULL,
    updated_by       varchar(255)           NOT NULL,
    deleted_by       varchar(255),
    edge             wf2des_edge            NOT NULL DEFAULT '0',
    score            numeric(5,4),
    score_version    varchar(32),

    CONSTRAINT wf2des_pkey PRIMARY KEY (id),
    CONSTRAINT wf2des_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization (id),
    CONSTRAINT wf2des_project_id_fkey FOREIGN KEY (project_id) REFERENCES project (id),
    CONSTRAINT wf2des_created_by_fkey FOREIGN KEY (created_by) REFERENCES "user" (cognito_sub),
    CONSTRAINT wf2des_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES "user" (cognito_sub),
    CONSTRAINT wf2des_deleted_by_fkey FOREIGN KEY (deleted_by) REFERENCES "user" (cognito_sub),

    -- The lifecycle, mirrored: whoever writes, by whatever way, an illegal row cannot be stored.
    CONSTRAINT wf2des_phase_iff_open CHECK ((status = '0') = (phase IS NOT NULL)),
    CONSTRAINT wf2des_deleted_is_ended CHECK (deleted_at IS NULL OR status <> '0'),
    CONSTRAINT wf2des_completed_has_result_url CHECK (status <> '1' OR result_url IS NOT NULL),
    CONSTRAINT wf2des_failed_has_error_message CHECK (status <> '2' OR error_message IS NOT NULL),
    CONSTRAINT wf2des_materialized_is_completed CHECK (materialized_at IS NULL OR status = '1'),
    CONSTRAINT wf2des_feedback_is_completed CHECK (feedback_status IS NULL OR status = '1'),
    -- NaN, which numeric can hold and JSON cannot, sorts above every number and so falls outside as well.
    CONSTRAINT wf2des_score_between_0_and_1 CHECK (score BETWEEN 0 AND 1),
    CONSTRAINT wf2des_flag_count_not_negative CHECK (flag_count >= 0),
    CONSTRAINT wf2des_attempt_positive CHECK (attempt >= 1)
);

-- At most one open run per node, edge and project. A run that ends leaves the index in the same transaction,
-- so its node is free again at once.
CREATE UNIQUE INDEX wf2des_open_generation_uq
    ON wf2des (project_id, figma_file_key, wf_node_id, edge) WHERE status = '0';

CREATE INDEX wf2des_org_project_file_status_idx
    ON wf2des (organization_id, project_id, figma_file_key, status);

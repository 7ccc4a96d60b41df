-- code2wf: one row per run that turns an imported page's code into a wireframe, the seed table to the letter.

-- +goose Up
CREATE TABLE code2wf (
    id               varchar(255)  NOT NULL, -- UUIDv7 made by the backend; code2wf_id for workers
    organization_id  bigint        NOT NULL,
    project_id       bigint        NOT NULL,
    page_import_id   varchar(255)  NOT NULL,
    figma_file_key   varchar(255)  NOT NULL,
    screen_id        varchar(255)  NOT NULL,
    placement_target varchar(255),
    status           wf2des_status NOT NULL DEFAULT '0', -- the seed shares wf2des's type
    attempt          integer       NOT NULL DEFAULT 1,
    flag_count       integer,
    result_url       varchar(500),                       -- an S3 key, never a link
    error_message    text,
    materialized_at  timestamptz,
    created_at       timestamptz   NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at       timestamptz   NOT NULL DEFAULT CURRENT_TIMESTAMP,
    deleted_at       timestamptz,
    -- A Cognito subject or the name of a backend actor, hence no foreign key.
    created_by       varchar(255)  NOT NULL,
    updated_by       varchar(255)  NOT NULL,
    deleted_by       varchar(255),

    CONSTRAINT code2wf_pkey PRIMARY KEY (id),
    CONSTRAINT code2wf_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization (id),
    CONSTRAINT code2wf_project_id_fkey FOREIGN KEY (project_id) REFERENCES project (id),
    CONSTRAINT code2wf_page_import_id_fkey FOREIGN KEY (page_import_id) REFERENCES page_import (id),

    -- The lifecycle, mirrored: nobody rejects or cancels a code2wf run.
    CONSTRAINT code2wf_processing_completed_or_failed CHECK (status IN ('0', '1', '2')),
    CONSTRAINT code2wf_deleted_is_ended CHECK (deleted_at IS NULL OR status <> '0'),
    CONSTRAINT code2wf_completed_has_result_url CHECK (status <> '1' OR result_url IS NOT NULL),
    CONSTRAINT code2wf_failed_has_error_message CHECK (status <> '2' OR error_message IS NOT NULL),
    CONSTRAINT code2wf_materialized_is_completed CHECK (materialized_at IS NULL OR status = '1'),
    CONSTRAINT code2wf_flag_count_not_negative CHECK (flag_count >= 0),
    CONSTRAINT code2wf_attempt_positive CHECK (attempt >= 1)
);

CREATE INDEX code2wf_project_id_deleted_at_idx ON code2wf (project_id, deleted_at);

CREATE INDEX code2wf_project_status_idx ON code2wf (project_id, status);

CREATE INDEX code2wf_org_project_file_status_idx
    ON code2wf (organization_id, project_id, figma_file_key, status);

CREATE INDEX code2wf_page_import_id_idx ON code2wf (page_import_id);

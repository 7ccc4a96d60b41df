-- The platform's design registry, as far as the suite knows it: where a completed run of the edge wf2des lands. The true table may have
-- other columns; what the suite writes stands in one file, pkg/designs/columns.go.

-- +goose Up
CREATE TYPE design_type AS ENUM (
    '0' -- component
);

CREATE TABLE design (
    id              varchar(255) NOT NULL,
    organization_id bigint       NOT NULL,
    project_id      bigint       NOT NULL,
    type            design_type  NOT NULL,
    name            varchar(255) NOT NULL,
    figma_file_key  varchar(255) NOT NULL,
    wf2des_id       varchar(255) NOT NULL, -- the run that made it; no reference: the registry may be another database
    result_url      varchar(500) NOT NULL, -- S3 key
    created_at      timestamptz  NOT NULL,
    created_by      varchar(255) NOT NULL,

    CONSTRAINT design_pkey PRIMARY KEY (id),
    CONSTRAINT design_wf2des_id_uq UNIQUE (wf2des_id),
    CONSTRAINT design_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization (id),
    CONSTRAINT design_project_id_fkey FOREIGN KEY (project_id) REFERENCES project (id)
);

-- The platform's tables as far as the suite refers to them: its foreign keys, and the page import a code2wf run starts from.

-- +goose Up
CREATE TABLE organization (
    id   bigint NOT NULL,
    name text   NOT NULL,

    CONSTRAINT organization_pkey PRIMARY KEY (id)
);

CREATE TABLE project (
    id              bigint NOT NULL,
    organization_id bigint NOT NULL,

    CONSTRAINT project_pkey PRIMARY KEY (id),
    CONSTRAINT project_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization (id)
);

CREATE TABLE "user" (
    cognito_sub varchar(255) NOT NULL,

    CONSTRAINT user_pkey PRIMARY KEY (cognito_sub)
);

CREATE TYPE page_import_status AS ENUM (
    '0', -- processing
    '1', -- completed
    '2'  -- failed
);

CREATE TABLE page_import (
    id              varchar(255)       NOT NULL,
    organization_id bigint             NOT NULL,
    project_id      bigint             NOT NULL,
    status          page_import_status NOT NULL DEFAULT '0',
    deleted_at      timestamptz,

    CONSTRAINT page_import_pkey PRIMARY KEY (id),
    CONSTRAINT page_import_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization (id),
    CONSTRAINT page_import_project_id_fkey FOREIGN KEY (project_id) REFERENCES project (id)
);

-- Indexes for lists, beside the seed's own: a page costs the same at the beginning and far down, and whatever other tenants have.
-- The seed's index has no order of time in it, so by it alone a list reads and sorts all that matches.

-- +goose Up
-- All runs of a project, newest first, and those of one Figma file.
CREATE INDEX wf2des_list_idx
    ON wf2des (organization_id, project_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX wf2des_file_list_idx
    ON wf2des (organization_id, project_id, figma_file_key, created_at DESC, id DESC) WHERE deleted_at IS NULL;

-- Of one status: all that are not done with. Completed runs that were placed, which are nearly all there ever are, need no index of their
-- own: wherever one looks in a list there is one near.
CREATE INDEX wf2des_unsettled_idx
    ON wf2des (organization_id, project_id, status, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND (status <> '1' OR materialized_at IS NULL);

-- The inbox of one Figma file, which a plugin asks for when it is opened: completed, and not placed yet.
CREATE INDEX wf2des_file_inbox_idx
    ON wf2des (organization_id, project_id, figma_file_key, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND status = '1' AND materialized_at IS NULL;

CREATE INDEX code2wf_list_idx
    ON code2wf (organization_id, project_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX code2wf_file_list_idx
    ON code2wf (organization_id, project_id, figma_file_key, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX code2wf_unsettled_idx
    ON code2wf (organization_id, project_id, status, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND (status <> '1' OR materialized_at IS NULL);
CREATE INDEX code2wf_file_inbox_idx
    ON code2wf (organization_id, project_id, figma_file_key, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND status = '1' AND materialized_at IS NULL;

-- A project belongs to one organization and a file to one project. Without being told, PostgreSQL takes the three for independent, believes
-- that a file has hardly any runs, and would rather sort them.
CREATE STATISTICS wf2des_tenant_stat (dependencies, ndistinct) ON organization_id, project_id, figma_file_key FROM wf2des;
CREATE STATISTICS code2wf_tenant_stat (dependencies, ndistinct) ON organization_id, project_id, figma_file_key FROM code2wf;

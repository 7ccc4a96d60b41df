package storetest

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// schema is what the seeds and the design of the additive tables ask for, in the words of PostgreSQL's catalog. One line
// a column: name, type, NULL where the seed permits it, default.
var schema = map[string]string{
	"wf2des": `
		id varchar(255)
		organization_id bigint
		project_id bigint
		figma_file_key varchar(255)
		wf_node_id varchar(255)
		screen_id varchar(255)
		prompt text NULL
		placement_target varchar(255) NULL
		auto_confirm wf2des_auto_confirm DEFAULT '0'
		trigger_surface wf2des_trigger_surface
		status wf2des_status DEFAULT '0'
		phase wf2des_phase NULL
		attempt integer DEFAULT 1
		error_message text NULL
		result_url varchar(500) NULL
		flag_count integer NULL
		materialized_at timestamptz NULL
		feedback_status wf2des_feedback_status NULL
		created_at timestamptz DEFAULT CURRENT_TIMESTAMP
		updated_at timestamptz DEFAULT CURRENT_TIMESTAMP
		deleted_at timestamptz NULL
		created_by varchar(255)
		updated_by varchar(255)
		deleted_by varchar(255) NULL
		edge wf2des_edge DEFAULT '0'
		score numeric(5,4) NULL
		score_version varchar(32) NULL`,
	"code2wf": `
		id varchar(255)
		organization_id bigint
		project_id bigint
		page_import_id varchar(255)
		figma_file_key varchar(255)
		screen_id varchar(255)
		placement_target varchar(255) NULL
		status wf2des_status DEFAULT '0'
		attempt integer DEFAULT 1
		flag_count integer NULL
		result_url varchar(500) NULL
		error_message text NULL
		materialized_at timestamptz NULL
		created_at timestamptz DEFAULT CURRENT_TIMESTAMP
		updated_at timestamptz DEFAULT CURRENT_TIMESTAMP
		deleted_at timestamptz NULL
		created_by varchar(255)
		updated_by varchar(255)
		deleted_by varchar(255) NULL`,
	"run_event": `
		kind text
		run_id varchar(255)
		seq integer
		what text
		outcome text
		actor_kind text
		actor varchar(255)
		from_state text NULL
		to_state text
		attempt integer
		version timestamptz
		at timestamptz
		data jsonb DEFAULT '{}'
		traceparent text NULL`,
	"outbox": `
		id bigint IDENTITY
		destination text
		kind text
		run_id varchar(255)
		attempt integer
		stage text NULL
		seq integer NULL
		traceparent text NULL
		state text DEFAULT 'pending'
		created_at timestamptz DEFAULT clock_timestamp()
		due_at timestamptz DEFAULT clock_timestamp()
		tries integer DEFAULT 0
		last_error text NULL
		settled_at timestamptz NULL
		work text DEFAULT ''`,
	"idempotency_key": `
		organization_id bigint
		caller varchar(255)
		key varchar(255)
		fingerprint bytea
		kind text
		run_id varchar(255)
		created_at timestamptz DEFAULT CURRENT_TIMESTAMP`,
	"run_pulse": `
		kind text
		run_id varchar(255)
		attempt integer
		heard_at timestamptz`,
}

const columns = `
	SELECT concat_ws(' ', a.attname,
		replace(replace(format_type(a.atttypid, a.atttypmod),
			'character varying', 'varchar'), 'timestamp with time zone', 'timestamptz'),
		CASE WHEN NOT a.attnotnull THEN 'NULL' END,
		CASE WHEN a.attidentity = 'a' THEN 'IDENTITY' END,
		'DEFAULT ' || regexp_replace(pg_get_expr(d.adbin, d.adrelid), '::\w+$', ''))
	FROM pg_attribute a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
	WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
	ORDER BY a.attnum`

func TestColumnsAreThoseOfTheSeeds(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	for table, want := range schema {
		if diff := cmp.Diff(lines(want), texts(t, db, columns, table)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", table, diff)
		}
	}
	tables := texts(t, db, `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
		AND relname NOT LIKE '%goose%' AND relname NOT IN ('organization', 'project', 'user', 'page_import', 'design')`)
	slices.Sort(tables)
	if diff := cmp.Diff([]string{"code2wf", "idempotency_key", "outbox", "run_event", "run_pulse", "wf2des"}, tables); diff != "" {
		t.Errorf("tables of the suite (-want +got):\n%s", diff)
	}
}

func TestIndexesAreThoseOfTheSeedsAndOurs(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	want := lines(`
		CREATE INDEX code2wf_file_inbox_idx ON public.code2wf USING btree (organization_id, project_id, figma_file_key, created_at DESC, id DESC) WHERE ((deleted_at IS NULL) AND (status = '1'::wf2des_status) AND (materialized_at IS NULL))
		CREATE INDEX code2wf_file_list_idx ON public.code2wf USING btree (organization_id, project_id, figma_file_key, created_at DESC, id DESC) WHERE (deleted_at IS NULL)
		CREATE INDEX code2wf_list_idx ON public.code2wf USING btree (organization_id, project_id, created_at DESC, id DESC) WHERE (deleted_at IS NULL)
		CREATE INDEX code2wf_open_idx ON public.code2wf USING btree (updated_at, id) WHERE (status = '0'::wf2des_status)
		CREATE INDEX code2wf_org_project_file_status_idx ON public.code2wf USING btree (organization_id, project_id, figma_file_key, status)
		CREATE INDEX code2wf_page_import_id_idx ON public.code2wf USING btree (page_import_id)
		CREATE UNIQUE INDEX code2wf_pkey ON public.code2wf USING btree (id)
		CREATE INDEX code2wf_project_id_deleted_at_idx ON public.code2wf USING btree (project_id, deleted_at)
		CREATE INDEX code2wf_project_status_idx ON public.code2wf USING btree (project_id, status)
		CREATE INDEX code2wf_unsettled_idx ON public.code2wf USING btree (organization_id, project_id, status, created_at DESC, id DESC) WHERE ((deleted_at IS NULL) AND ((status <> '1'::wf2des_status) OR (materialized_at IS NULL)))
		CREATE INDEX idempotency_key_created_at_idx ON public.idempotency_key USING btree (created_at)
		CREATE UNIQUE INDEX idempotency_key_pkey ON public.idempotency_key USING btree (organization_id, caller, key)
		CREATE INDEX outbox_lane_idx ON public.outbox USING btree (destination, work, created_at) WHERE (state = 'pending'::text)
		CREATE UNIQUE INDEX outbox_pkey ON public.outbox USING btree (id)
		CREATE INDEX outbox_run_idx ON public.outbox USING btree (run_id)
		CREATE INDEX outbox_set_aside_idx ON public.outbox USING btree (settled_at) WHERE (state = 'set_aside'::text)
		CREATE INDEX outbox_skipped_idx ON public.outbox USING btree (settled_at) WHERE (state = 'skipped'::text)
		CREATE INDEX run_event_deleted_idx ON public.run_event USING btree (kind, at) WHERE (what = 'deleted'::text)
		CREATE UNIQUE INDEX run_event_pkey ON public.run_event USING btree (kind, run_id, seq)
		CREATE UNIQUE INDEX run_pulse_pkey ON public.run_pulse USING btree (kind, run_id)
		CREATE INDEX wf2des_file_inbox_idx ON public.wf2des USING btree (organization_id, project_id, figma_file_key, created_at DESC, id DESC) WHERE ((deleted_at IS NULL) AND (status = '1'::wf2des_status) AND (materialized_at IS NULL))
		CREATE INDEX wf2des_file_list_idx ON public.wf2des USING btree (organization_id, project_id, figma_file_key, created_at DESC, id DESC) WHERE (deleted_at IS NULL)
		CREATE INDEX wf2des_list_idx ON public.wf2des USING btree (organization_id, project_id, created_at DESC, id DESC) WHERE (deleted_at IS NULL)
		CREATE UNIQUE INDEX wf2des_open_generation_uq ON public.wf2des USING btree (project_id, figma_file_key, wf_node_id, edge) WHERE (status = '0'::wf2des_status)
		CREATE INDEX wf2des_org_project_file_status_idx ON public.wf2des USING btree (organization_id, project_id, figma_file_key, status)
		CREATE UNIQUE INDEX wf2des_pkey ON public.wf2des USING btree (id)
		CREATE INDEX wf2des_unsettled_idx ON public.wf2des USING btree (organization_id, project_id, status, created_at DESC, id DESC) WHERE ((deleted_at IS NULL) AND ((status <> '1'::wf2des_status) OR (materialized_at IS NULL)))`)
	got := texts(t, db, `SELECT indexdef FROM pg_indexes WHERE tablename = ANY (string_to_array($1, ' ')) ORDER BY indexname`,
		"wf2des code2wf run_event outbox idempotency_key run_pulse")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReferencesAreThoseOfTheSeeds(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	want := lines(`
		code2wf_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id)
		code2wf_page_import_id_fkey FOREIGN KEY (page_import_id) REFERENCES page_import(id)
		code2wf_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
		wf2des_created_by_fkey FOREIGN KEY (created_by) REFERENCES "user"(cognito_sub)
		wf2des_deleted_by_fkey FOREIGN KEY (deleted_by) REFERENCES "user"(cognito_sub)
		wf2des_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id)
		wf2des_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
		wf2des_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES "user"(cognito_sub)`)
	got := texts(t, db, `SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
		WHERE contype = 'f' AND conrelid::regclass::text = ANY (string_to_array($1, ' ')) ORDER BY conname`,
		"wf2des code2wf run_event outbox idempotency_key run_pulse")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnumsAreThoseOfTheSeeds(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	want := lines(`
		design_type 0
		page_import_status 0 1 2
		wf2des_auto_confirm 0 1
		wf2des_edge 0 1
		wf2des_feedback_status 0 1
		wf2des_phase 0 1 2
		wf2des_status 0 1 2 3 4
		wf2des_trigger_surface 0 1`)
	got := texts(t, db, `SELECT t.typname || ' ' || string_agg(e.enumlabel, ' ' ORDER BY e.enumsortorder)
		FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid GROUP BY t.typname ORDER BY t.typname`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A queue table that autovacuum forgets gets slower with every message.
func TestOutboxIsTunedAsAQueue(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	want := lines(`
		autovacuum_analyze_scale_factor=0
		autovacuum_analyze_threshold=1000
		autovacuum_vacuum_cost_delay=0
		autovacuum_vacuum_scale_factor=0
		autovacuum_vacuum_threshold=1000
		fillfactor=45
		vacuum_truncate=false`)
	got := texts(t, db, `SELECT unnest(reloptions) FROM pg_class WHERE oid = 'outbox'::regclass ORDER BY 1`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lines splits a block of text, indentation and empty lines apart.
func lines(block string) []string {
	split := strings.Split(strings.TrimSpace(block), "\n")
	for i := range split {
		split[i] = strings.TrimSpace(split[i])
	}
	return split
}

// texts reads a query of one text column.
func texts(t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"framerun.dev/migrations/platform"
	"github.com/google/go-cmp/cmp"
	"github.com/lib/pq"
)

// row is a row as SQL expressions by column.
type row map[string]string

// legal are rows that every table takes; the cases below change what they are about.
var legal = map[string]row{
	"wf2des": {
		"id": "'w'", "organization_id": "1", "project_id": "1", "figma_file_key": "'file'", "wf_node_id": "'1:2'",
		"screen_id": "'screen'", "trigger_surface": "'1'", "phase": "'0'",
		"created_by": "'user-plugin'", "updated_by": "'user-plugin'",
	},
	"code2wf": {
		"id": "'c'", "organization_id": "1", "project_id": "1", "page_import_id": quote(platform.PageImportID),
		"figma_file_key": "'file'", "screen_id": "'screen'", "created_by": "'anybody'", "updated_by": "'the reaper'",
	},
	"run_event": {
		"kind": "'wf2des'", "run_id": "'w'", "seq": "1", "what": "'created'", "outcome": "'applied'", "actor_kind": "'user'",
		"actor": "'user-plugin'", "to_state": "'parsing'", "attempt": "1", "version": "now()", "at": "now()",
	},
	"outbox": {
		"destination": "'jobs'", "kind": "'wf2des'", "run_id": "'w'", "attempt": "1", "stage": "'parse'",
	},
	"idempotency_key": {
		"organization_id": "1", "caller": "'user-plugin'", "key": "'k'", "fingerprint": "''", "kind": "'wf2des'", "run_id": "'w'",
	},
	"run_pulse": {"kind": "'wf2des'", "run_id": "'w'", "attempt": "1", "heard_at": "now()"},
}

// What has to be so for a row to have ended in each way.
var (
	completed = row{"status": "'1'", "phase": "NULL", "result_url": "'key'"}
	failed    = row{"status": "'2'", "phase": "NULL", "error_message": "'It failed.'"}
	rejected  = row{"status": "'3'", "phase": "NULL"}
	cancelled = row{"status": "'4'", "phase": "NULL"}
)

func TestLegalRowsAreTaken(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	for _, c := range []struct {
		table  string
		change row
	}{
		{"wf2des", row{}},
		{"wf2des", row{"phase": "'1'"}},
		{"wf2des", row{"phase": "'2'", "attempt": "7", "edge": "'1'", "auto_confirm": "'1'"}},
		{"wf2des", completed},
		{"wf2des", completed.with(row{"score": "0", "flag_count": "0", "score_version": "'ds@1.0'"})},
		{"wf2des", completed.with(row{"score": "1", "flag_count": "2147483647"})},
		{"wf2des", completed.with(row{"score": "0.12345"})}, // rounded to four digits
		{"wf2des", completed.with(row{"materialized_at": "now()", "feedback_status": "'0'"})},
		{"wf2des", completed.with(row{"deleted_at": "now()", "deleted_by": "'user-api'"})},
		{"wf2des", failed},
		{"wf2des", failed.with(row{"result_url": "'the failure artifact'", "deleted_at": "now()"})},
		{"wf2des", rejected.with(row{"deleted_at": "now()"})},
		{"wf2des", cancelled.with(row{"deleted_at": "now()"})},
		{"wf2des", row{"id": text(255), "figma_file_key": text(255), "wf_node_id": text(255), "screen_id": text(255),
			"placement_target": text(255), "result_url": text(500), "score_version": text(32), "prompt": text(8000)}},
		{"code2wf", row{}},
		{"code2wf", row{"status": "'1'", "result_url": "'key'", "materialized_at": "now()", "deleted_at": "now()", "flag_count": "3"}},
		{"code2wf", row{"status": "'2'", "error_message": "'It failed.'", "attempt": "2"}},
		{"run_event", row{}},
		{"run_event", row{"kind": "'code2wf'", "what": "'completed'", "outcome": "'already_terminal'", "actor_kind": "'worker'",
			"from_state": "'failed'", "to_state": "'failed'", "attempt": "0", "data": `'{"a": 1}'`}},
		{"run_event", row{"what": "'delivery_retried'", "outcome": "'noted'", "actor_kind": "'backend'", "from_state": "'parsing'"}},
		{"run_event", row{"what": "'delivery_skipped'", "outcome": "'noted'", "actor_kind": "'backend'", "from_state": "'failed'", "to_state": "'failed'"}},
		{"outbox", row{}},
		{"outbox", row{"destination": "'events'", "stage": "NULL", "seq": "1"}},
		{"outbox", row{"destination": "'documents'", "stage": "NULL", "seq": "1"}},
		{"outbox", row{"destination": "'designs'", "stage": "NULL", "seq": "1"}},
		{"outbox", row{"state": "'skipped'", "settled_at": "now()"}},
		{"outbox", row{"state": "'set_aside'", "settled_at": "now()", "tries": "9", "last_error": "'refused'"}},
		{"idempotency_key", row{}},
		{"run_pulse", row{}},
	} {
		if err := try(t, db, insert(c.table, c.change)); err != nil {
			t.Errorf("%s %v: %v", c.table, c.change, err)
		}
	}
}

// illegal names the constraint that refuses a row. Every CHECK and reference of the suite stands here at least once.
var illegal = []struct {
	constraint string
	change     row
}{
	{"wf2des_phase_iff_open", row{"phase": "NULL"}},
	{"wf2des_phase_iff_open", completed.with(row{"phase": "'2'"})},
	{"wf2des_phase_iff_open", cancelled.with(row{"phase": "'0'"})},
	{"wf2des_deleted_is_ended", row{"deleted_at": "now()"}},
	{"wf2des_completed_has_result_url", completed.with(row{"result_url": "NULL"})},
	{"wf2des_failed_has_error_message", failed.with(row{"error_message": "NULL"})},
	{"wf2des_materialized_is_completed", row{"materialized_at": "now()"}},
	{"wf2des_materialized_is_completed", failed.with(row{"materialized_at": "now()"})},
	{"wf2des_feedback_is_completed", row{"feedback_status": "'1'"}},
	{"wf2des_feedback_is_completed", rejected.with(row{"feedback_status": "'0'"})},
	{"wf2des_score_between_0_and_1", completed.with(row{"score": "'NaN'"})},
	{"wf2des_score_between_0_and_1", completed.with(row{"score": "-0.0001"})},
	{"wf2des_score_between_0_and_1", completed.with(row{"score": "1.0001"})},
	{"wf2des_flag_count_not_negative", completed.with(row{"flag_count": "-1"})},
	{"wf2des_attempt_positive", row{"attempt": "0"}},
	{"wf2des_organization_id_fkey", row{"organization_id": "99"}},
	{"wf2des_project_id_fkey", row{"project_id": "99"}},
	{"wf2des_created_by_fkey", row{"created_by": "'a stranger'"}},
	{"wf2des_updated_by_fkey", row{"updated_by": "'a stranger'"}},
	{"wf2des_deleted_by_fkey", cancelled.with(row{"deleted_at": "now()", "deleted_by": "'a stranger'"})},

	{"code2wf_processing_completed_or_failed", row{"status": "'3'"}},
	{"code2wf_processing_completed_or_failed", row{"status": "'4'"}},
	{"code2wf_deleted_is_ended", row{"deleted_at": "now()"}},
	{"code2wf_completed_has_result_url", row{"status": "'1'"}},
	{"code2wf_failed_has_error_message", row{"status": "'2'"}},
	{"code2wf_materialized_is_completed", row{"materialized_at": "now()"}},
	{"code2wf_flag_count_not_negative", row{"flag_count": "-1"}},
	{"code2wf_attempt_positive", row{"attempt": "0"}},
	{"code2wf_organization_id_fkey", row{"organization_id": "99"}},
	{"code2wf_project_id_fkey", row{"project_id": "99"}},
	{"code2wf_page_import_id_fkey", row{"page_import_id": "'none'"}},

	{"run_event_kind_known", row{"kind": "'des2wf'"}},
	{"run_event_seq_positive", row{"seq": "0"}},
	{"run_event_what_known", row{"what": "'progress'"}},
	{"run_event_outcome_known", row{"outcome": "'refused'"}},
	{"run_event_actor_kind_known", row{"actor_kind": "'operator'"}},
	{"run_event_from_state_known", row{"from_state": "'open'"}},
	{"run_event_to_state_known", row{"to_state": "'deleted'"}},
	{"run_event_data_is_object", row{"data": "'null'"}},

	{"outbox_destination_known", row{"destination": "'letters'", "stage": "NULL", "seq": "1"}},
	{"outbox_kind_known", row{"kind": "'des2wf'"}},
	{"outbox_stage_known", row{"stage": "'confirm'"}},
	{"outbox_stage_iff_job", row{"stage": "NULL"}},
	{"outbox_stage_iff_job", row{"destination": "'events'", "seq": "1"}},
	{"outbox_seq_iff_event", row{"destination": "'events'", "stage": "NULL"}},
	{"outbox_seq_iff_event", row{"destination": "'documents'", "stage": "NULL"}},
	{"outbox_seq_iff_event", row{"destination": "'designs'", "stage": "NULL"}},
	{"outbox_seq_iff_event", row{"seq": "1"}},
	{"outbox_work_of_jobs", row{"destination": "'events'", "stage": "NULL", "seq": "1", "work": "'wf2des'"}},
	{"outbox_effect_of_wf2des", row{"destination": "'documents'", "kind": "'code2wf'", "stage": "NULL", "seq": "1"}},
	{"outbox_effect_of_wf2des", row{"destination": "'designs'", "kind": "'code2wf'", "stage": "NULL", "seq": "1"}},
	{"outbox_state_known", row{"state": "'sent'", "settled_at": "now()"}},
	{"outbox_settled_iff_not_pending", row{"settled_at": "now()"}},
	{"outbox_settled_iff_not_pending", row{"state": "'skipped'"}},
	{"outbox_tries_not_negative", row{"tries": "-1"}},

	{"idempotency_key_kind_known", row{"kind": "'des2wf'"}},

	{"run_pulse_kind_known", row{"kind": "'des2wf'"}},
	{"run_pulse_attempt_positive", row{"attempt": "0"}},
}

func TestIllegalRowsAreRefused(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	for _, c := range illegal {
		if got := refusedBy(try(t, db, insert(tableOf(c.constraint), c.change))); got != c.constraint {
			t.Errorf("%v: refused by %q, want %q", c.change, got, c.constraint)
		}
	}
}

// A constraint that no case above is about could be dropped, or never hold anything back, unseen.
func TestEveryConstraintIsProven(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	exist := texts(t, db, `SELECT conname FROM pg_constraint WHERE contype IN ('c', 'f')
		AND conrelid::regclass::text = ANY (string_to_array($1, ' ')) ORDER BY conname COLLATE "C"`,
		strings.Join(slices.Collect(maps.Keys(legal)), " "))
	var proven []string
	for _, c := range illegal {
		proven = append(proven, c.constraint)
	}
	slices.Sort(proven)
	if diff := cmp.Diff(slices.Compact(proven), exist); diff != "" {
		t.Errorf("(-proven +existing):\n%s", diff)
	}
}

func TestNothingButOptionalColumnsMayBeAbsent(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	for table, columns := range schema {
		for _, line := range lines(columns) {
			column, attributes, _ := strings.Cut(line, " ")
			if strings.Contains(attributes, "NULL") || strings.Contains(attributes, "IDENTITY") {
				continue
			}
			err := try(t, db, insert(table, row{column: "NULL"}))
			if failure, ok := errors.AsType[*pq.Error](err); !ok || failure.Code != "23502" || failure.Column != column {
				t.Errorf("%s.%s = NULL: %v", table, column, err)
			}
		}
	}
}

func TestOneOpenRunPerNodeAndEdge(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	for _, c := range []struct {
		name   string
		second row
		want   string
	}{
		{"the same node", row{}, "wf2des_open_generation_uq"},
		{"the same node, further on", row{"phase": "'2'"}, "wf2des_open_generation_uq"},
		{"another organization's in the same project", row{"organization_id": "2"}, "wf2des_open_generation_uq"},
		{"the other edge", row{"edge": "'1'"}, ""},
		{"another project", row{"project_id": "2"}, ""},
		{"another file", row{"figma_file_key": "'other'"}, ""},
		{"another node", row{"wf_node_id": "'I1:2;3:4'"}, ""},
		{"one that has ended", completed, ""},
		{"the same id", row{"wf_node_id": "'9:9'", "id": "'w'"}, "wf2des_pkey"},
	} {
		second := row{"id": "'second'"}.with(c.second)
		if got := refusedBy(try(t, db, insert("wf2des", row{}), insert("wf2des", second))); got != c.want {
			t.Errorf("%s: refused by %q, want %q", c.name, got, c.want)
		}
	}
	free := `UPDATE wf2des SET status = '4', phase = NULL`
	if err := try(t, db, insert("wf2des", row{}), free, insert("wf2des", row{"id": "'second'"})); err != nil {
		t.Errorf("after the first was cancelled: %v", err)
	}
}

func TestTimelineIsAppendOnly(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	event := insert("run_event", row{})
	for statement, want := range map[string]string{
		`UPDATE run_event SET outcome = 'duplicate'`:                        "run_event_append_only",
		`UPDATE run_event SET seq = seq + 1`:                                "run_event_append_only",
		event + ` ON CONFLICT (kind, run_id, seq) DO UPDATE SET at = now()`: "run_event_append_only",
		event:                   "run_event_pkey",
		`DELETE FROM run_event`: "",
		`TRUNCATE run_event`:    "",
	} {
		if got := refusedBy(try(t, db, event, statement)); got != want {
			t.Errorf("%s: refused by %q, want %q", statement, got, want)
		}
	}
}

func (r row) with(more row) row {
	all := maps.Clone(r)
	maps.Copy(all, more)
	return all
}

// insert is the statement that inserts a table's legal row as changed.
func insert(table string, change row) string {
	full := legal[table].with(change)
	columns := slices.Sorted(maps.Keys(full))
	var values []string
	for _, c := range columns {
		values = append(values, full[c])
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "), strings.Join(values, ", "))
}

// try runs statements in a transaction that is rolled back, and returns the first error.
func try(t *testing.T, db *sql.DB, statements ...string) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, s := range statements {
		if _, err := tx.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return nil
}

// refusedBy is the name of the constraint behind an error, "" without an error.
func refusedBy(err error) string {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[*pq.Error](err); ok && failure.Constraint != "" {
		return failure.Constraint
	}
	return err.Error()
}

func tableOf(constraint string) string {
	for table := range legal {
		if strings.HasPrefix(constraint, table+"_") {
			return table
		}
	}
	return constraint
}

func text(length int) string {
	return quote(strings.Repeat("あ", length))
}

func quote(s string) string {
	return "'" + s + "'"
}

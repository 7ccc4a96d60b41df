package servicetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
)

// tenants are all whose runs must be kept apart.
var tenants = []lifecycle.Tenant{
	Tenant,
	{OrganizationID: platform.OrganizationID, ProjectID: platform.OtherProjectID},
	{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.OtherOrganizationProjectID},
}

// Canary begins every text of the runs that Plant makes in project.
func Canary(project int64) string { return fmt.Sprintf("canary-%d-", project) }

// Plant gives every tenant runs in every state, and puts a canary into each of their texts, so that a reply which holds anything of
// another tenant's sings. From then on Fence listens.
func (w *World) Plant(t testing.TB) {
	t.Helper()
	w.planted = map[int64][]lifecycle.Run{}
	for _, tenant := range tenants {
		canary := Canary(tenant.ProjectID) + "key"
		w.SQL.MustExec(`INSERT INTO "user" (cognito_sub) VALUES ($1)`, canary)
		w.SQL.MustExec(`INSERT INTO page_import (id, organization_id, project_id, status) VALUES ($1, $2, $3, '1')`,
			canary, tenant.OrganizationID, tenant.ProjectID)
		for _, kind := range lifecycle.Kinds {
			for _, state := range StatesOf(kind) {
				run := w.In(t, kind, state, func(r *lifecycle.Run) {
					r.Tenant = tenant
					if kind == lifecycle.Code2WF {
						r.PageImportID = canary
					}
				})
				w.planted[tenant.ProjectID] = append(w.planted[tenant.ProjectID], run)
			}
		}
		w.fill(t, tenant)
	}
}

// Planted are the runs of a project that Plant has made.
func (w *World) Planted(project int64) []lifecycle.Run { return w.planted[project] }

// fill puts canaries into every text column of a project's runs, whatever columns there are, and into what is told of them.
func (w *World) fill(t testing.TB, tenant lifecycle.Tenant) {
	t.Helper()
	canary := Canary(tenant.ProjectID)
	for _, kind := range lifecycle.Kinds {
		var columns []struct {
			Name string `db:"column_name"`
			Max  int    `db:"max"`
		}
		err := w.SQL.SelectContext(t.Context(), &columns, `SELECT column_name, coalesce(character_maximum_length, 255) AS max
			FROM information_schema.columns WHERE table_name = $1 AND data_type IN ('text', 'character varying') AND column_name <> 'id'`, kind)
		if err != nil || len(columns) < 8 {
			t.Fatalf("servicetest: the text columns of %s: %v, %v", kind, columns, err)
		}
		var set []string
		for _, c := range columns {
			value := fmt.Sprintf(`left('%s%s-' || right(id, 12), %d)`, canary, c.Name, c.Max)
			if strings.HasSuffix(c.Name, "_by") || c.Name == "page_import_id" { // they refer to what there is
				value = "'" + canary + "key'"
			}
			set = append(set, c.Name+" = "+value)
		}
		w.SQL.MustExec(fmt.Sprintf(`UPDATE %s SET %s WHERE project_id = $1`, kind, strings.Join(set, ", ")), tenant.ProjectID)
		w.SQL.MustExec(fmt.Sprintf(`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at, data, traceparent)
			SELECT kind, run_id, max(seq) + 1, 'failed', 'duplicate', 'worker', $1 || 'actor', min(to_state), 1, now(), now(),
				jsonb_build_object('error_message', $1 || 'message', 'result_url', $1 || 'result', 'score_version', $1 || 'version'), $1 || 'trace'
			FROM run_event WHERE run_id IN (SELECT id FROM %s WHERE project_id = $2) GROUP BY kind, run_id`, kind), canary, tenant.ProjectID)
		w.SQL.MustExec(fmt.Sprintf(`UPDATE outbox SET last_error = $1 || 'error', traceparent = $1 || 'trace'
			WHERE run_id IN (SELECT id FROM %s WHERE project_id = $2)`, kind), canary, tenant.ProjectID)
	}
}

// Silent checks that a reply to somebody who may see project, and 0 for nobody's, holds no canary and no id of another's runs.
func (w *World) Silent(t testing.TB, reply Reply, project int64) {
	t.Helper()
	heard := fmt.Sprint(reply.Header, reply.Body)
	for other, runs := range w.planted {
		if other == project {
			continue
		}
		sings := strings.Contains(heard, Canary(other)) ||
			slices.ContainsFunc(runs, func(r lifecycle.Run) bool { return strings.Contains(heard, r.ID) })
		if sings {
			t.Errorf("something of project %d is told to who may see project %d: %d %.2000s", other, project, reply.Status, heard)
		}
	}
}

package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
)

// Catches a retention that is on when nobody asked for it, and one so short that a key would lead to a run without a past.
func TestRetentionIsOptedInto(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "0": 0, "24h": 24 * time.Hour, "2160h": 2160 * time.Hour, "23h59m": -1, "1s": -1, "90d": -1} {
		env := app.NewEnv(servicetest.Lookup(map[string]string{"RETENTION": text}))
		keep := readRetention(env)
		if err := env.Err(); (err != nil) != (want < 0) || err == nil && keep != want {
			t.Errorf("RETENTION=%s is read as %s, %v", text, keep, err)
		}
	}
}

// More runs than one batch lets go, with open and young ones between. Catches a batch that is the last one although more is left, and
// what is let go of too soon.
func TestRetentionGoesThroughEverything(t *testing.T) {
	t.Parallel()
	const keep = 30 * 24 * time.Hour
	w := servicetest.New(t)
	s := &server{store: w.Store}
	open, young := w.In(t, lifecycle.WF2Des, lifecycle.Parsing), w.In(t, lifecycle.Code2WF, lifecycle.Failed)
	for _, statement := range []string{
		`DELETE FROM outbox`,
		// Ended, of both kinds, made so long ago as their ids say.
		`INSERT INTO code2wf (id, organization_id, project_id, page_import_id, figma_file_key, screen_id, status, error_message, created_by, updated_by, updated_at)
			SELECT '01890000-0000-7000-8000-' || lpad(n::text, 12, '0'), 1, 1, page_import_id, 'k', 's', '2', 'x', 'u', 'u', now() - interval '31 days'
			FROM code2wf, generate_series(1, 450) n`,
		`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at)
			SELECT 'code2wf', id, seq, 'created', 'applied', 'user', 'u', 'failed', 1, now(), now() FROM code2wf, generate_series(1, 2) seq WHERE id < '0190'`,
		`INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at)
			SELECT 'jobs', 'code2wf', id, 1, 'generate', 'skipped', now() - interval '31 days' FROM code2wf WHERE id < '0190'`,
	} {
		w.SQL.MustExec(statement)
	}
	gone, err := s.letGoOnce(t.Context(), keep)
	if err != nil || gone != (store.LetGo{Lines: 450, Entries: 450}) {
		t.Errorf("let go of %+v, %v; want 450 lines and 450 entries", gone, err)
	}
	if again, err := s.letGoOnce(t.Context(), keep); err != nil || again != (store.LetGo{}) {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	if len(w.Timeline(t, open.Ref)) != 1 || len(w.Timeline(t, young.Ref)) != 2 {
		t.Error("an open or a young run has lost something")
	}
}

// Catches a loop that does nothing, does not say what it did, or does not end with its service.
func TestRetentionRunsUntilTheServiceEnds(t *testing.T) {
	t.Parallel()
	w, log := servicetest.New(t), &servicetest.Log{}
	run := w.In(t, lifecycle.Code2WF, lifecycle.Failed)
	w.SQL.MustExec(`UPDATE outbox SET state = 'skipped', settled_at = now() - interval '2 days'`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- (&server{store: w.Store}).letGo(24*time.Hour, slog.New(slog.NewJSONHandler(log, nil)))(ctx)
	}()
	servicetest.Eventually(t, "the skipped entries are let go", func() bool { return len(w.Outbox(t, run.Ref)) == 0 })
	servicetest.Eventually(t, "it says so", func() bool { return strings.Contains(log.String(), `"entries":3`) })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

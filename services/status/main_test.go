package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// Catches a start that names only its first problem, or that repeats a secret in it.
func TestConfigurationProblemsAreAllNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"nothing": {nil, []string{"LISTEN", "OPS_LISTEN", "DATABASE_URL", "NATS_URL", "SERVICE_ACCOUNT_SUB", "WEBHOOK_SECRETS"}},
		"wrong": {map[string]string{"DATABASE_URL": "mysql://hunter2", "NATS_URL": "hunter2", "WEBHOOK_SECRETS": "whsec_hunter2",
			"PARSING_DEADLINE": "hunter2", "ASSEMBLING_DEADLINE": "10", "PROCESSING_DEADLINE": "-1m", "CONFIRM_DEADLINE": "1 day",
			"REAPER_DRY_RUN": "hunter2", "SQS_DEAD_LETTER_URLS": "hunter2", "DOCUMENTDB_URL": "http://hunter2", "DESIGN_REGISTRY_URL": "mysql://hunter2"},
			[]string{"DATABASE_URL", "NATS_URL", "WEBHOOK_SECRETS", "PARSING_DEADLINE", "ASSEMBLING_DEADLINE", "PROCESSING_DEADLINE",
				"CONFIRM_DEADLINE", "REAPER_DRY_RUN", "SQS_DEAD_LETTER_URLS", "DOCUMENTDB_URL", "DESIGN_REGISTRY_URL"}},
	} {
		err := run(t.Context(), servicetest.Lookup(tc.env), io.Discard)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("%s: %v", name, err)
		}
		for _, variable := range tc.want {
			if !strings.Contains(err.Error(), "\n"+variable+":") {
				t.Errorf("%s: %s is not named in:\n%v", name, variable, err)
			}
		}
	}
}

// The service itself: it starts without NATS, takes a signed word, ends a stranded run by its own look, and ends cleanly.
func TestRun(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	first, second := secret(), secret()
	s := w.Start(t, run, w.Environment(t, map[string]string{"WEBHOOK_SECRETS": first + "," + second}))
	e := &ear{World: w, Client: s.Client, worker: webhooks(t, second)}
	told := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	reply := e.say(t, whole(told, parsed))
	mustTell(t, "parsed", reply, answered("applied", lifecycle.AwaitingConfirm, 1, true))
	if reply.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a browser may call the workers' route")
	}
	stranded := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	e.strand(t, stranded)
	servicetest.Eventually(t, "the stranded run is failed", func() bool { return e.Row(t, stranded.Ref)["status"] == "2" })
	s.Stop()
	if err := s.End(); err != nil {
		t.Error(err)
	}
}

// Catches a service that is ready although the platform does not know its account: every word would be a 500.
func TestAnUnknownAccountIsNotReady(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	env := w.Environment(t, map[string]string{"WEBHOOK_SECRETS": secret(), "SERVICE_ACCOUNT_SUB": "somebody-else"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, servicetest.Lookup(env), io.Discard) }()
	ready := func() (status int, body string) {
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + env["OPS_LISTEN"] + "/readyz?verbose")
		if err != nil {
			return 0, ""
		}
		defer response.Body.Close()
		raw, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(raw)
	}
	servicetest.Eventually(t, "it says why it is not ready", func() bool {
		status, body := ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "service_account")
	})
	w.SQL.MustExec(`INSERT INTO "user" (cognito_sub) VALUES ('somebody-else')`)
	servicetest.Eventually(t, "it is ready once the platform knows the account", func() bool {
		status, _ := ready()
		return status == http.StatusOK
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

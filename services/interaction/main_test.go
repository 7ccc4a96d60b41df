package main

import (
	"io"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// One failed start names everything that is wrong.
func TestConfigurationProblemsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), servicetest.Lookup(map[string]string{"MAX_IN_FLIGHT": "0", "DEFAULT_ORGANIZATION_ID": "-1"}), io.Discard)
	if err == nil {
		t.Fatal("the service started")
	}
	for _, name := range []string{"LISTEN", "OPS_LISTEN", "DATABASE_URL", "NATS_URL", "MAX_IN_FLIGHT", "COGNITO_ISSUER", "COGNITO_CLIENTS", "DEFAULT_ORGANIZATION_ID"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named", name)
		}
	}
}

// The whole service starts, decides without NATS and ends cleanly.
func TestRunStartsAndEndsCleanly(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	service := w.Start(t, run, w.Environment(t, nil))
	waiting := w.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	reply := service.Send(t, "POST", servicetest.Path(waiting, 1)+"/confirm", w.Owner, `{"decision":"confirm","attempt":1}`)
	if reply.Status != 200 || reply.JSON(t)["phase"] != "assemble" {
		t.Errorf("got %d %s", reply.Status, reply.Body)
	}
	service.Stop()
	if err := service.End(); err != nil {
		t.Errorf("a clean end: %v", err)
	}
}

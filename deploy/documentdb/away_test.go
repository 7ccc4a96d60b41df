package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/servicetest"
)

// Catches a store that is away which is taken for a document that is not there, and answers that come only after all have waited in turn.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	silent := servicetest.Listen(t) // takes connections and says nothing
	defer silent.Close()
	for name, address := range map[string]string{"down": servicetest.FreeAddress(t), "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := resultdoc.Open(fmt.Sprintf("mongodb://%s/framerun?directConnection=true", address))
			must(t, err)
			t.Cleanup(func() { d.Close(t.Context()) })
			began := time.Now()
			errs := d.Send(t.Context(), []lifecycle.Announcement{decided("a", 1, lifecycle.WasConfirmed), decided("b", 1, lifecycle.WasRejected)})
			for _, err := range errs {
				if err == nil || known(err) {
					t.Errorf("it is told %v", err)
				}
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("that took %s", took)
			}
			if err := d.Ping(t.Context()); err == nil {
				t.Error("it says that it is well")
			}
		})
	}
}

// Catches an address that is repeated in an error, password and all, and one that is found out to be unusable only later.
func TestBadAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost", "http://hunter2@localhost", "mongodb://", "mongodb://u:hunter2@:0/x",
		"mongodb://u:hunter2@host/x?w=-1", "mongodb://u:hunter2@host:port"} {
		if _, err := resultdoc.Open(address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

package main

import (
	"context"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/designs"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/relay"
	"framerun.dev/pkg/store"
)

// registryWithin bounds one statement in the registry's database: a relay's round has two seconds.
const registryWithin = 1500 * time.Millisecond

// readRegistry opens the platform's design registry at DESIGN_REGISTRY_URL; nil when it is not set: then no run lands there.
func readRegistry(env *app.Env) *designs.Registry {
	address := env.URL("DESIGN_REGISTRY_URL", "", "postgres", "postgresql")
	if address == "" {
		return nil
	}
	db, err := store.Connect(address, store.Options{Pool: 4, StatementTimeout: registryWithin})
	if err != nil {
		env.Refuse("DESIGN_REGISTRY_URL", "is not usable")
		return nil
	}
	return &designs.Registry{DB: db.DB}
}

// land sets up the lane that takes completed runs from the outbox to the registry.
func land(parts *app.Parts, registry *designs.Registry) func(context.Context) error {
	lane := relay.Lane[lifecycle.Landing]{Name: "designs", Fresh: parts.Store.FreshDesigns(relay.Lease), Claim: parts.Store.ClaimDesigns,
		Sender: registry, Store: parts.Store, Log: parts.Log, Count: parts.Carried("designs")}
	return lane.Run
}

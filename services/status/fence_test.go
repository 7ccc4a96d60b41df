package main

import (
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// endpoints are all that this service answers, about runs of the world.
func endpoints(t *testing.T, w *servicetest.World) []servicetest.Endpoint {
	return []servicetest.Endpoint{{
		Path: "/v1/ai-status", Allow: "POST, OPTIONS",
		Run:  func() lifecycle.Run { return w.In(t, lifecycle.WF2Des, lifecycle.Parsing) },
		Asks: map[string]servicetest.Permission{"POST": {Body: `{"job_id":"{id}","attempt":1,"event":"parsed"}`, Worker: 200}},
	}}
}

// fenced is the service as the world's own worker knows it.
func fenced(t *testing.T) *ear {
	t.Helper()
	w := servicetest.New(t)
	return listenOn(t, w, web.Options{NoCORS: true}, w.Worker.Secret)
}

// Every method as everybody: a worker alone may speak here.
func TestFence(t *testing.T) {
	t.Parallel()
	e := fenced(t)
	servicetest.Fence(t, e.World, e.Client, endpoints(t, e.World))
}

// Everything that strangers send, people's tokens good and bad among it.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	e := fenced(t)
	servicetest.FrontDoor(t, e.World, e.Client, endpoints(t, e.World))
}

// PostgreSQL fails in a way that nobody expects.
func TestFailuresAreNotTold(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	s := &server{
		store: w.Store, webhooks: webhooks(t, w.Worker.Secret), nerve: &heard{},
		account: lifecycle.Actor{Voice: lifecycle.Backend, Name: platform.UserWorker},
	}
	servicetest.Failures(t, w, s.routes(), web.Options{NoCORS: true}, endpoints(t, w))
}

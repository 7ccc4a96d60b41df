package main

import (
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// endpoints are all that this service answers, about runs of the world.
func endpoints(t *testing.T, w *servicetest.World) []servicetest.Endpoint {
	endpoint := func(kind lifecycle.Kind, state lifecycle.State, suffix, method, body, allow string) servicetest.Endpoint {
		return servicetest.Endpoint{
			Path: "/v1/projects/{project}/" + string(kind) + "/{id}" + suffix, Allow: allow,
			Run:  func() lifecycle.Run { return w.In(t, kind, state) },
			Asks: map[string]servicetest.Permission{method: {Body: body, Owner: 200}},
		}
	}
	return []servicetest.Endpoint{
		endpoint(lifecycle.WF2Des, lifecycle.AwaitingConfirm, "/confirm", "POST", `{"decision":"confirm","attempt":1}`, "POST, OPTIONS"),
		endpoint(lifecycle.WF2Des, lifecycle.AwaitingConfirm, "/confirm", "POST", `{"decision":"reject","attempt":1}`, "POST, OPTIONS"),
		endpoint(lifecycle.WF2Des, lifecycle.Parsing, "/cancel", "POST", ``, "POST, OPTIONS"),
		endpoint(lifecycle.WF2Des, lifecycle.Completed, "/feedback", "POST", `{"feedbackStatus":"fixed"}`, "POST, OPTIONS"),
		endpoint(lifecycle.WF2Des, lifecycle.Completed, "/placement", "POST", ``, "POST, OPTIONS"),
		endpoint(lifecycle.WF2Des, lifecycle.Failed, "", "DELETE", ``, "DELETE, OPTIONS"),
		endpoint(lifecycle.Code2WF, lifecycle.Completed, "/placement", "POST", ``, "POST, OPTIONS"),
		endpoint(lifecycle.Code2WF, lifecycle.Failed, "", "DELETE", ``, "DELETE, OPTIONS"),
	}
}

// Every endpoint with every method as everybody.
func TestFence(t *testing.T) {
	t.Parallel()
	in := open(t)
	servicetest.Fence(t, in.World, in.Client, endpoints(t, in.World))
}

// Every endpoint with everything that strangers send.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	in := open(t)
	servicetest.FrontDoor(t, in.World, in.Client, endpoints(t, in.World))
}

// Every endpoint while PostgreSQL fails in a way that nobody expects.
func TestFailuresAreNotTold(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	s := &server{store: w.Store, people: w.People, told: func(lifecycle.Ref) {}}
	servicetest.Failures(t, w, s.routes(), web.Options{}, endpoints(t, w))
}

// The routes that a code2wf run does not have do not exist, for no method.
func TestCode2WFHasNoConfirmCancelOrFeedback(t *testing.T) {
	t.Parallel()
	in := open(t)
	run := in.In(t, lifecycle.Code2WF, lifecycle.Processing)
	for _, suffix := range []string{"/confirm", "/cancel", "/feedback"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS"} {
			in.Send(t, method, servicetest.Path(run, 1)+suffix, in.Owner, "").Refused(t, 404, "not_found")
		}
	}
}

package main

import (
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// endpoints are all that this service answers.
func endpoints() []servicetest.Endpoint {
	const ofANode = `{"figmaFileKey":"k","screenId":"s","wfNodeId":"{node}"}`
	const ofAnImport = `{"figmaFileKey":"k","screenId":"s","pageImportId":"` + platform.PageImportID + `"}`
	return []servicetest.Endpoint{
		{
			Path: "/v1/projects/{project}/wf2des", Allow: "POST, OPTIONS",
			Asks: map[string]servicetest.Permission{"POST": {Body: ofANode, Owner: 201, OtherProject: 201, OtherOrganization: 201}},
		},
		{
			// The page import is of the owner's project: in their own projects the others are told that there is no such import.
			Path: "/v1/projects/{project}/code2wf", Allow: "POST, OPTIONS",
			Asks: map[string]servicetest.Permission{"POST": {Body: ofAnImport, Owner: 201, OtherProject: 422, OtherOrganization: 422}},
		},
	}
}

// Every endpoint with every method as everybody.
func TestFence(t *testing.T) {
	t.Parallel()
	in := open(t)
	servicetest.Fence(t, in.World, in.Client, endpoints())
}

// Every endpoint with everything that strangers send.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	in := open(t)
	servicetest.FrontDoor(t, in.World, in.Client, endpoints())
}

// Every endpoint while PostgreSQL fails in a way that nobody expects.
func TestFailuresAreNotTold(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	s := &server{store: w.Store, people: w.People, limits: web.NewLimiter(0, 0)}
	servicetest.Failures(t, w, s.routes(), web.Options{}, endpoints())
}

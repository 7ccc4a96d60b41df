package main

import (
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/servicetest"
)

// Every endpoint with every method as everybody.
func TestFence(t *testing.T) {
	t.Parallel()
	in := open(t)
	const ofANode = `{"figmaFileKey":"k","screenId":"s","wfNodeId":"{node}"}`
	const ofAnImport = `{"figmaFileKey":"k","screenId":"s","pageImportId":"` + platform.PageImportID + `"}`
	servicetest.Fence(t, in.World, in.Client, []servicetest.Endpoint{
		{
			Path: "/v1/projects/{project}/wf2des", Allow: "POST, OPTIONS",
			Asks: map[string]servicetest.Permission{"POST": {Body: ofANode, Owner: 201, OtherProject: 201, OtherOrganization: 201}},
		},
		{
			// The page import is of the owner's project: in their own projects the others are told that there is no such import.
			Path: "/v1/projects/{project}/code2wf", Allow: "POST, OPTIONS",
			Asks: map[string]servicetest.Permission{"POST": {Body: ofAnImport, Owner: 201, OtherProject: 422, OtherOrganization: 422}},
		},
	})
}

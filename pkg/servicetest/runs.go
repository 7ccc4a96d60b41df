package servicetest

import (
	"fmt"
	"testing"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// Tenant is the owner's.
var Tenant = lifecycle.Tenant{OrganizationID: platform.OrganizationID, ProjectID: platform.ProjectID}

// waysTo are the verbs that lead from the creation to each state.
var waysTo = map[lifecycle.State][]lifecycle.Verb{
	lifecycle.Parsing:         {},
	lifecycle.Processing:      {},
	lifecycle.AwaitingConfirm: {lifecycle.Parsed},
	lifecycle.Assembling:      {lifecycle.Parsed, lifecycle.Confirm},
	lifecycle.Completed:       {lifecycle.Parsed, lifecycle.Confirm, lifecycle.Complete},
	lifecycle.Failed:          {lifecycle.Fail},
	lifecycle.Rejected:        {lifecycle.Parsed, lifecycle.Reject},
	lifecycle.Cancelled:       {lifecycle.Cancel},
}

// StatesOf lists the states that runs of kind can be in.
func StatesOf(kind lifecycle.Kind) []lifecycle.State {
	if kind == lifecycle.Code2WF {
		return []lifecycle.State{lifecycle.Processing, lifecycle.Completed, lifecycle.Failed}
	}
	return []lifecycle.State{lifecycle.Parsing, lifecycle.AwaitingConfirm, lifecycle.Assembling, lifecycle.Completed,
		lifecycle.Failed, lifecycle.Rejected, lifecycle.Cancelled}
}

// Draft is a run as the owner would ask for it, of a node that no other draft of this world names.
func (w *World) Draft(kind lifecycle.Kind) lifecycle.Run {
	run := lifecycle.Run{
		Ref: lifecycle.Ref{Kind: kind, ID: uuid.NewV7().String()}, Tenant: Tenant,
		FigmaFileKey: "itMrdXTfcIHTHbSGK0Ivox", ScreenID: "screen",
	}
	if kind == lifecycle.Code2WF {
		run.PageImportID = platform.PageImportID
		return run
	}
	run.WFNodeID, run.Edge, run.TriggerSurface = fmt.Sprintf("1:%d", w.nodes.Add(1)), lifecycle.EdgeWF2Des, lifecycle.Plugin
	return run
}

// In stores a draft of kind, changed by the given functions, and leads it to state in the ways of the lifecycle.
func (w *World) In(t testing.TB, kind lifecycle.Kind, state lifecycle.State, change ...func(*lifecycle.Run)) lifecycle.Run {
	t.Helper()
	draft := w.Draft(kind)
	for _, f := range change {
		f(&draft)
	}
	owner := lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin}
	run, err := w.Store.Create(t.Context(), store.Creation{Run: draft, By: owner})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range waysTo[state] {
		if next := w.Step(t, run, verb); next.Outcome == lifecycle.Applied {
			run = next.Run
		}
	}
	if run.State != state {
		t.Fatalf("servicetest: a %s run came to be %s instead of %s", kind, run.State, state)
	}
	return run
}

// Step carries verb out on run, with everything that it needs: as the worker if it is the worker's, else as the owner. What the
// run does not allow fails the test; an auto-confirm run passes over what only others need.
func (w *World) Step(t testing.TB, run lifecycle.Run, verb lifecycle.Verb) store.Applied {
	t.Helper()
	if verb == lifecycle.Parsed && run.Kind == lifecycle.Code2WF || verb == lifecycle.Confirm && (run.AutoConfirm || run.Kind == lifecycle.Code2WF) {
		return store.Applied{Outcome: lifecycle.Unchanged, Run: run}
	}
	cmd := lifecycle.Command{
		Verb: verb, Run: run.Ref, Tenant: &run.Tenant, By: lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin}, Attempt: run.Attempt,
		Result: lifecycle.Result{
			Key:       new(fmt.Sprintf("%s/%s/%d/spec.json", run.Kind, run.ID, run.Attempt)),
			FlagCount: new(2), Score: new(lifecycle.Score(8125)), ScoreVersion: new("ds@1.0"),
		},
		Message: "The page could not be read.", Feedback: lifecycle.Adopted,
	}
	switch verb {
	case lifecycle.Parsed, lifecycle.Complete, lifecycle.Fail:
		cmd.Tenant, cmd.By = nil, lifecycle.Actor{Voice: lifecycle.Worker, Name: platform.UserWorker}
	}
	if verb == lifecycle.Fail {
		cmd.Result = lifecycle.Result{}
	}
	applied, err := w.Store.Apply(t.Context(), cmd)
	if err != nil {
		t.Fatalf("servicetest: %s: %v", verb, err)
	}
	return applied
}

// Path is where a run is found by whoever asks under project.
func Path(run lifecycle.Run, project int64) string {
	return fmt.Sprintf("/v1/projects/%d/%s/%s", project, run.Kind, run.ID)
}

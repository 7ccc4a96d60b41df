package main

import (
	"fmt"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// wait names what a run waits for.
type wait string

const (
	forNobody   wait = "nothing"        // it has ended
	forDesigner wait = "designer"       // it is the designer's turn
	forWorker   wait = "worker"         // a worker has been sent the job
	forRelay    wait = "relay"          // the job has not left the outbox, and no try of it is known to have failed
	forQueue    wait = "queue"          // SQS did not take the job, and is tried again
	forOperator wait = "operator"       // the job was set aside
	jobSkipped  wait = "job_never_left" // the job was skipped although the run waits for it
)

// diagnosis is what a run waits for, and what can be done about it.
type diagnosis struct {
	WaitsFor wait     `json:"waitsFor"`
	Says     string   `json:"says"`
	Try      []string `json:"try"`
}

var stages = map[lifecycle.State]lifecycle.Stage{
	lifecycle.Parsing: lifecycle.StageParse, lifecycle.Assembling: lifecycle.StageAssemble, lifecycle.Processing: lifecycle.StageGenerate,
}

// diagnose reads out of a run and its outbox what it waits for.
func diagnose(run lifecycle.Run, told []store.Entry) diagnosis {
	switch {
	case run.Ended():
		return diagnosis{forNobody, fmt.Sprintf("It has ended: %s.", run.State), nil}
	case run.State == lifecycle.AwaitingConfirm:
		return diagnosis{forDesigner, "The designer has to confirm or reject what the worker parsed. Nothing is broken.", freeing(run)}
	}
	job := jobOf(run, told)
	switch {
	case job == nil:
		return diagnosis{forWorker, fmt.Sprintf("A worker was sent the job (attempt %d) and has not said how it went.", run.Attempt),
			append([]string{"runctl queue tail --run " + run.ID + "   (does the job still lie in its queue?)"}, freeing(run)...)}
	case job.State == store.SetAside:
		return diagnosis{forOperator, "Its job was set aside: " + cause(job), append([]string{fmt.Sprintf("runctl outbox retry %d", job.ID)}, freeing(run)...)}
	case job.State == store.Skipped:
		return diagnosis{jobSkipped, "Its job was skipped, so no worker knows of it.", freeing(run)}
	case job.LastError != "":
		return diagnosis{forQueue, fmt.Sprintf("Its job could not be handed to SQS (%d tries, and it goes on by itself): %s", job.Tries, cause(job)), freeing(run)}
	}
	return diagnosis{forRelay, "Its job has not left the outbox: is service intake running?", freeing(run)}
}

func cause(e *store.Entry) string {
	if e.LastError == "" {
		return "it is not known why."
	}
	return clip(plain(e.LastError), 300)
}

// jobOf is the newest entry for the job that the run waits for; nil if it has left.
func jobOf(run lifecycle.Run, told []store.Entry) (job *store.Entry) {
	for i, e := range told {
		if e.Attempt == run.Attempt && e.Stage != lifecycle.NoJob && e.Stage == stages[run.State] {
			job = &told[i]
		}
	}
	return job
}

// freeing are the commands by which an open run can be freed, as the lifecycle allows them.
func freeing(run lifecycle.Run) []string {
	var all []string
	for _, verb := range []lifecycle.Verb{lifecycle.Requeue, lifecycle.Fail, lifecycle.Cancel} {
		cmd := lifecycle.Command{Verb: verb, Run: run.Ref, Attempt: run.Attempt, Message: "-"}
		d, err := lifecycle.Decide(run, cmd, run.UpdatedAt.Add(1))
		if err != nil || d.Outcome != lifecycle.Applied {
			continue
		}
		line := fmt.Sprintf("runctl runs %s %s --operator YOU", verb, run.ID)
		if verb == lifecycle.Fail {
			line += ` --reason "…"`
		}
		all = append(all, line)
	}
	return all
}

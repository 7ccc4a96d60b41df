// Package events is the nerve between the services: every NATS subject, who tells it and what it means.
//
// PostgreSQL is the truth. Core NATS may lose, double or reorder anything, and the suite is still right, only slower: whoever
// hears a hint looks for itself, and looks now and then without one. Only the public feed (JetStream) is kept, and it is fed
// from the outbox.
package events

import (
	"slices"
	"strings"
	"uuid"

	"framerun.dev/pkg/lifecycle"
)

// Subjects hold only words and ids made by the suite, never a user's text.
const (
	// OutboxWake: interaction, runctl → intake: a job may wait.
	OutboxWake = "framerun.outbox.wake"
	// Stranded: relay → status: a job was set aside, its run waits for nothing.
	Stranded = "framerun.outbox.stranded"
	// Stream is the JetStream stream of the public feed, FeedSubjects what it holds.
	Stream       = "FRAMERUN_EVENTS"
	FeedSubjects = "framerun.event.>"

	changed  = "framerun.run.changed."
	progress = "framerun.run.progress."
	feed     = "framerun.event."
)

// Changed is the subject on which whoever changes a run tells query to look at a run again.
func Changed(run lifecycle.Ref) string { return changed + string(run.Kind) + "." + run.ID }

// Progressed is the subject on which status tells query a worker's latest progress.
func Progressed(run lifecycle.Ref) string { return progress + string(run.Kind) + "." + run.ID }

// Public is the subject of one event of the public feed.
func Public(e lifecycle.Event) string { return feed + string(e.Run.Kind) + "." + string(e.What) }

// refOf reads the run out of a subject with the given prefix; false for anything that is not of the suite's making.
func refOf(subject, prefix string) (lifecycle.Ref, bool) {
	kind, id, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
	parsed, err := uuid.Parse(id)
	ref := lifecycle.Ref{Kind: lifecycle.Kind(kind), ID: id}
	return ref, err == nil && parsed.String() == id && slices.Contains(lifecycle.Kinds, ref.Kind)
}

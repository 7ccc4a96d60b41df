package main

import (
	"context"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/web"
)

// numbersWithin is how long a completion waits at most for numbers that its worker did not send. A store that is down or slow costs
// that and no more: the row is completed without them.
const numbersWithin = 500 * time.Millisecond

// documents is what of the document store this service uses.
type documents interface {
	Numbers(ctx context.Context, run lifecycle.Ref, attempt int) (resultdoc.Numbers, error)
}

// readDocuments opens the document store at DOCUMENTDB_URL; nil when it is not set: then what a worker does not send is not known.
func readDocuments(env *app.Env) *resultdoc.Documents {
	address := env.String("DOCUMENTDB_URL", "")
	if address == "" {
		return nil
	}
	d, err := resultdoc.Open(address)
	if err != nil {
		env.Refuse("DOCUMENTDB_URL", "must look like mongodb://user:password@host:27017/database")
	}
	return d
}

// whole is the result that a worker has sent, with the numbers that it left out read from the run's document (seed: flag_count is
// copied from confidence.flag_count at the completion). What the worker said itself stands.
func (s *server) whole(ctx context.Context, said word) lifecycle.Result {
	r := said.result
	if s.documents == nil || said.event != completed || said.run.Kind != lifecycle.WF2Des || r.FlagCount != nil && r.Score != nil {
		return r
	}
	within, cancel := context.WithTimeout(ctx, numbersWithin)
	defer cancel()
	found, err := s.documents.Numbers(within, said.run, said.attempt)
	if err != nil {
		web.Note(ctx, "document", "not read: "+err.Error())
		return r
	}
	return together(r, found)
}

// together fills in what r lacks. A score and its version belong together: none is put beside the other's.
func together(r lifecycle.Result, found resultdoc.Numbers) lifecycle.Result {
	if r.FlagCount == nil {
		r.FlagCount = found.FlagCount
	}
	sameVersion := r.ScoreVersion == nil || found.ScoreVersion != nil && *found.ScoreVersion == *r.ScoreVersion
	if r.Score == nil && found.Score != nil && sameVersion {
		r.Score, r.ScoreVersion = found.Score, found.ScoreVersion
	}
	return r
}

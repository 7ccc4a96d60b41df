package main

import (
	"context"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/relay"
	"framerun.dev/pkg/resultdoc"
)

// readDocuments opens the document store at DOCUMENTDB_URL; nil when it is not set: then nobody is told of decisions.
func readDocuments(env *app.Env) *resultdoc.Documents {
	address := env.String("DOCUMENTDB_URL", "")
	if address == "" {
		return nil
	}
	documents, err := resultdoc.Open(address)
	if err != nil {
		env.Refuse("DOCUMENTDB_URL", "must look like mongodb://user:password@host:27017/database")
	}
	return documents
}

// tell sets up the lane that takes decisions from the outbox to the result documents.
func tell(parts *app.Parts, documents *resultdoc.Documents) func(context.Context) error {
	lane := relay.Lane[lifecycle.Announcement]{Name: "documents", Most: 50, Fresh: parts.Store.FreshDecisions(relay.Lease), Claim: parts.Store.ClaimDecisions,
		Sender: documents, Store: parts.Store, Log: parts.Log, Count: parts.Carried("documents")}
	return lane.Run
}

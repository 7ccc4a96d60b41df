package main

import (
	"context"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/designs"
	"framerun.dev/pkg/resultdoc"
)

// outside is what this service reads from and writes to beside PostgreSQL, each nil where it is switched off. The service works
// without: what they are down for is made up for later, or goes missing from the row.
type outside struct {
	documents *resultdoc.Documents
	registry  *designs.Registry
}

func readOutside(env *app.Env) outside {
	return outside{readDocuments(env), readRegistry(env)}
}

// reader is the document store as the server asks it.
func (o outside) reader() documents {
	if o.documents == nil {
		return nil
	}
	return o.documents
}

func (o outside) checks() []app.Check {
	documentDB, registry := app.Check{Name: "documentdb", Off: true}, app.Check{Name: "design_registry", Off: true}
	if o.documents != nil {
		documentDB = app.Check{Name: "documentdb", Ask: o.documents.Ping}
	}
	if o.registry != nil {
		registry = app.Check{Name: "design_registry", Ask: o.registry.Ping}
	}
	return []app.Check{documentDB, registry}
}

func (o outside) close(ctx context.Context) {
	if o.documents != nil {
		o.documents.Close(ctx)
	}
	if o.registry != nil {
		o.registry.DB.Close()
	}
}

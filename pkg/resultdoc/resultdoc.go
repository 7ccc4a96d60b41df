// Package resultdoc is for the result document of a wf2des run: what the AI workers found and made, kept in DocumentDB beside the row.
//
// There is one document for a run (seed: its _id is the row's id). The worker makes it and the suite adds the designer's decision.
// Every write is guarded by (_id, attempt), in the filter of one atomic update: what is of another attempt is never overwritten, and
// the suite never makes a document, for a half one would keep the worker from making the whole.
package resultdoc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

const (
	// Collection is where the documents are (seed).
	Collection = "design_generation_result"
	// database is used where the address names none.
	database = "framerun"
)

// How long the document store may take. A relay's round has two seconds for all it carries.
const (
	findServer = 1 * time.Second         // to be found at all
	oneCall    = 1500 * time.Millisecond // for one call, finding included
)

// Documents are the result documents in one document store. It is safe for concurrent use.
type Documents struct {
	client *mongo.Client
	all    *mongo.Collection
}

// Open returns the documents at uri, a mongodb:// URL that may name the database (else framerun). It does not connect yet: a store that
// is down shows in Ping and in each call, and is used again as soon as it is back. No error repeats the address, which holds a password.
func Open(uri string) (*Documents, error) {
	address, err := connstring.ParseAndValidate(uri)
	if err != nil {
		return nil, errors.New("resultdoc: the address must look like mongodb://user:password@host:27017/database")
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri).
		SetServerSelectionTimeout(findServer).SetConnectTimeout(findServer).SetTimeout(oneCall).
		SetRetryWrites(false). // DocumentDB has none; the relay tries again by itself
		SetRetryReads(false).
		SetWriteConcern(writeconcern.Majority())) // what a failover would lose has not arrived
	if err != nil {
		return nil, errors.New("resultdoc: the address is not usable")
	}
	name := address.Database
	if name == "" {
		name = database
	}
	return &Documents{client: client, all: client.Database(name).Collection(Collection)}, nil
}

// Ping asks the document store for a sign of life.
func (d *Documents) Ping(ctx context.Context) error {
	if err := d.client.Ping(ctx, nil); err != nil {
		return fmt.Errorf("resultdoc: ping: %w", err)
	}
	return nil
}

// Close gives the connections back.
func (d *Documents) Close(ctx context.Context) error { return d.client.Disconnect(ctx) }

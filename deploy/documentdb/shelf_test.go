package main

import (
	"errors"
	"log/slog"
	"testing"
	"time"
	"uuid"

	"framerun.dev/deploy/documentdb/server"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/servicetest"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// shelf is a document store of a test's own, and a second way into it.
type shelf struct {
	*resultdoc.Documents
	raw *mongo.Collection
	url string
}

func open(t *testing.T) *shelf {
	t.Helper()
	s, err := server.Start(servicetest.FreeAddress(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return enter(t, s.URL())
}

// enter opens the store at address.
func enter(t *testing.T, address string) *shelf {
	t.Helper()
	documents, err := resultdoc.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { documents.Close(t.Context()); client.Disconnect(t.Context()) })
	return &shelf{documents, client.Database("framerun").Collection(resultdoc.Collection), address}
}

// put stores a document behind the package's back, as a worker in another language would.
func (s *shelf) put(t *testing.T, doc bson.D) {
	t.Helper()
	if _, err := s.raw.InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
}

// text is the whole document as it stands; empty if there is none.
func (s *shelf) text(t *testing.T, id string) string {
	t.Helper()
	raw, err := s.raw.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw.String()
}

func (s *shelf) read(t *testing.T, id string) (doc resultdoc.Document) {
	t.Helper()
	if err := s.raw.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// parsed is a document as a worker leaves it, with a member that the suite does not know.
func parsed(id string, attempt int) bson.D {
	return bson.D{
		{Key: "_id", Value: id}, {Key: "attempt", Value: attempt}, {Key: "request", Value: bson.D{{Key: "placement_target", Value: "1:2"}}},
		{Key: "parse", Value: bson.D{{Key: "components", Value: bson.A{"Header"}}, {Key: "notes", Value: "the worker's own"}}},
		{Key: "confidence", Value: bson.D{{Key: "flag_count", Value: 3}, {Key: "why", Value: "blurred"}}},
	}
}

// decided is what happened: who decided what about which attempt, a moment ago.
func decided(id string, attempt int, what lifecycle.What) lifecycle.Announcement {
	return lifecycle.Announcement{Event: lifecycle.Event{
		Run: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: id}, What: what, Attempt: attempt, At: time.Now().UTC(),
		By: lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin},
	}}
}

func (s *shelf) tell(t *testing.T, a lifecycle.Announcement) error {
	t.Helper()
	return s.Send(t.Context(), []lifecycle.Announcement{a})[0]
}

func fresh() string { return uuid.NewV7().String() }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

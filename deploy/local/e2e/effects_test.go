package e2e

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
	"framerun.dev/pkg/resultdoc"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestEffects plays whole runs beside a document store and the design registry: what the designer decides comes into the worker's
// document, what the worker found comes out of it into the row, a design lands once, and a store that dies costs the row nothing.
func TestEffects(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{DocumentDB: true})
	documents := s.shelf(t)

	r := s.create(t)
	eventually(t, 20*time.Second, "the designer is asked", func() bool { return s.state(t, r) == "awaiting_confirm" })
	if doc := documents(r); doc.Attempt != 1 || doc.Confidence == nil || doc.Parse.Confirmed != nil {
		t.Errorf("before the decision the document is %+v", doc)
	}
	s.confirm(t, r)
	eventually(t, 20*time.Second, "the run is completed", func() bool { return s.state(t, r) == "completed" })
	eventually(t, 10*time.Second, "the document holds the decision", func() bool { return documents(r).Parse.Confirmed != nil })
	doc := documents(r)
	if by := s.ask(t, "GET", r.self, nil).text("createdBy"); doc.Parse.Confirmed.By != by || doc.Parse.Rejected != nil {
		t.Errorf("it was confirmed by %s: %+v", by, doc.Parse)
	}
	got := s.ask(t, "GET", r.self, nil).want(t, 200)
	if got.body["flagCount"] != float64(doc.Confidence.FlagCount) || got.body["score"] != *doc.Score || got.text("scoreVersion") != *doc.ScoreVersion {
		t.Errorf("the row does not hold the document's numbers: %s", got.raw)
	}
	s.lands(t, r)

	no := s.create(t)
	eventually(t, 20*time.Second, "the designer is asked", func() bool { return s.state(t, no) == "awaiting_confirm" })
	s.ask(t, "POST", no.self+"/confirm", map[string]any{"decision": "reject", "attempt": 1}).want(t, 200)
	eventually(t, 10*time.Second, "the document holds the rejection", func() bool { return documents(no).Parse.Rejected != nil })

	other := draft()
	other["edge"] = "des2wf"
	back := created(s.ask(t, "POST", collection, other).want(t, 201))
	eventually(t, 20*time.Second, "the designer is asked", func() bool { return s.state(t, back) == "awaiting_confirm" })
	s.signal(t, "documentdb", syscall.SIGKILL) // the stack starts it again in a moment
	s.confirm(t, back)
	eventually(t, 20*time.Second, "the run is completed all the same", func() bool { return s.state(t, back) == "completed" })
	eventually(t, 20*time.Second, "the decision arrives after all", func() bool { return documents(back).Parse.Confirmed != nil })

	eventually(t, 20*time.Second, "no effect is on its way any more", func() bool {
		return s.number(t, `SELECT count(*) FROM outbox WHERE destination IN ('documents', 'designs')`) == 0
	})
	if n := s.number(t, `SELECT count(*) FROM design`); n != 1 {
		t.Errorf("%d designs have landed, want the one of edge wf2des", n)
	}
}

// lands waits until the run's design is in the registry and points to its result.
func (s *suite) lands(t *testing.T, r run) {
	t.Helper()
	eventually(t, 10*time.Second, "the design has landed", func() bool {
		return s.number(t, `SELECT count(*) FROM design JOIN wf2des ON wf2des.id = wf2des_id AND design.result_url = wf2des.result_url
			WHERE wf2des_id = $1 AND type = '0'`, r.id) == 1
	})
}

// shelf reads the documents of runs; the zero document for one that is not there.
func (s *suite) shelf(t *testing.T) func(run) resultdoc.Document {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(*s.at.DocumentDB).SetTimeout(5 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(t.Context()) })
	all := client.Database("framerun").Collection(resultdoc.Collection)
	return func(r run) (doc resultdoc.Document) {
		if err := all.FindOne(t.Context(), bson.D{{Key: "_id", Value: r.id}}).Decode(&doc); err != nil {
			t.Logf("document of %s: %v", r.id, err)
		}
		return doc
	}
}

// Catches a stack that hides what is switched off, and a registry that is off where it should be on.
func TestWithoutDocumentDB(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{})
	if s.at.DocumentDB != nil {
		t.Errorf("stack.json names the document store %s", *s.at.DocumentDB)
	}
	for _, service := range []string{"interaction", "status"} {
		res, err := http.Get(s.at.Services[service].Ops + "/readyz?verbose")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close()
		if said := string(raw); err != nil || !strings.Contains(said, `"name":"documentdb","ok":true,"critical":false,"off":true`) {
			t.Errorf("%s says %s, %v", service, said, err)
		}
	}
	r := s.create(t)
	eventually(t, 20*time.Second, "the designer is asked", func() bool { return s.state(t, r) == "awaiting_confirm" })
	s.confirm(t, r)
	eventually(t, 20*time.Second, "the run is completed", func() bool { return s.state(t, r) == "completed" })
	s.lands(t, r)
	if n := s.number(t, `SELECT count(*) FROM outbox WHERE destination = 'documents'`); n != 0 {
		t.Errorf("%d decisions wait for a store that is off", n)
	}
}

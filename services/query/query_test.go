package main

import (
	"context"
	"encoding/json/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// query is the service in a world of its own.
type query struct {
	*servicetest.World
	*servicetest.Client
	hot  *hot
	self *server
}

// s3Key signs links; nobody checks them here.
func s3Key(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
}

func open(t *testing.T) *query {
	t.Helper()
	q := still(t)
	watching(t, q.hot)
	return q
}

// still opens a service that looks at nothing but what it is asked for. It signs in to PostgreSQL as one that may only read.
func still(t testing.TB) *query {
	t.Helper()
	q := &query{World: servicetest.New(t)}
	reader, err := store.Open(storetest.Reader(t, q.World.URL), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	q.self = newServer(reader, q.People, &artifacts.Links{
		Client: s3.New(s3.Options{Region: "ap-northeast-1", Credentials: aws.CredentialsProviderFunc(s3Key)}),
		Bucket: "framerun-artifacts", Valid: 5 * time.Minute,
	})
	q.hot = q.self.hot
	q.Client = q.Serve(t, q.self.routes())
	return q
}

// watching lets h look for itself, as long as the test lasts.
func watching(t *testing.T, h *hot) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var looks sync.WaitGroup
	looks.Go(func() { h.lookOut(ctx) })
	looks.Go(func() { h.follow(ctx) })
	t.Cleanup(func() {
		stop()
		looks.Wait()
	})
}

// get asks as the owner for what lies at path and must be answered 200.
func (q *query) get(t *testing.T, path string, headers ...string) servicetest.Reply {
	t.Helper()
	reply := q.Send(t, "GET", path, q.Owner, "", headers...)
	if reply.Status != 200 {
		t.Fatalf("GET %s: %d %s", path, reply.Status, reply.Body)
	}
	return reply
}

// path is where the owner finds the run.
func path(run lifecycle.Run) string { return servicetest.Path(run, run.ProjectID) }

// waiters is how many requests wait for the run at the moment.
func (h *hot) waiters(run lifecycle.Ref) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.runs[run] {
		n += len(e.waiters)
	}
	return n
}

// heeds reports whether every hint about the run has been looked into.
func (h *hot) heeds(run lifecycle.Ref) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.runs[run] {
		if e.heeded != e.hints {
			return false
		}
	}
	return true
}

// body reads a JSON object.
func body(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return object
}

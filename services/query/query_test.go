package main

import (
	"context"
	"encoding/json/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// query is the service in a world of its own.
type query struct {
	*servicetest.World
	*servicetest.Client
	watch *watch
}

// s3Key signs links; nobody checks them here.
func s3Key(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
}

func open(t *testing.T) *query {
	t.Helper()
	q := &query{World: servicetest.New(t), watch: newWatch()}
	s := &server{store: q.Store, people: q.People, watch: q.watch, links: &artifacts.Links{
		Client: s3.New(s3.Options{Region: "ap-northeast-1", Credentials: aws.CredentialsProviderFunc(s3Key)}),
		Bucket: "framerun-artifacts", Valid: 5 * time.Minute,
	}}
	q.Client = q.Serve(t, s.routes())
	return q
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

// waiters is how many requests watch the run at the moment.
func (w *watch) waiters(run lifecycle.Ref) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting[run])
}

// untold is how many of them have not looked yet since the last hint.
func (w *watch) untold(run lifecycle.Ref) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.waiting[run] {
		n += len(c)
	}
	return n
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

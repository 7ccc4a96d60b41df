package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json/v2"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// One failed start names everything that is wrong, and repeats no value.
func TestConfigurationProblemsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	err := run(t.Context(), servicetest.Lookup(map[string]string{
		"DATABASE_URL": "mysql://root:" + secret + "@db/x", "DATABASE_POOL": "1", "LOG_LEVEL": "loud", "DRAIN_DELAY": "5",
		"COGNITO_CLIENTS": "abc=" + secret, "SQS_QUEUE_URLS": "wf2des=http://q/1,other=http://q/2", "CREATE_BURST": "0",
	}), io.Discard)
	if err == nil {
		t.Fatal("the service started")
	}
	for _, name := range []string{
		"LISTEN", "OPS_LISTEN", "DATABASE_URL", "DATABASE_POOL", "NATS_URL", "LOG_LEVEL", "DRAIN_DELAY", "COGNITO_ISSUER", "COGNITO_CLIENTS",
		"STATUS_URL", "CREATE_BURST", "no queue for des2wf", "no queue for code2wf", "not wf2des, des2wf or code2wf",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named", name)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("a value is repeated: %v", err)
	}
}

// There is one queue for all, or one for each kind and edge; a job without a queue, or a queue that is none, would show much later.
func TestQueues(t *testing.T) {
	t.Parallel()
	all := map[string]string{"wf2des": "https://q/1", "des2wf": "https://q/2", "code2wf": "https://q/3"}
	for _, c := range []struct {
		one, each string
		want      map[string]string // nil if it is refused
	}{
		{"https://q/1", "", map[string]string{"wf2des": "https://q/1", "des2wf": "https://q/1", "code2wf": "https://q/1"}},
		{"", "wf2des=https://q/1, des2wf=https://q/2, code2wf=https://q/3", all},
		{"https://q/9", "wf2des=https://q/1,des2wf=https://q/2,code2wf=https://q/3", all},
		{"", "", nil},
		{"jobs", "", nil},
		{"", "wf2des=https://q/1,des2wf=https://q/2", nil},
		{"", "wf2des=https://q/1,des2wf=https://q/2,code2wf=https://q/3,other=https://q/4", nil},
		{"", "wf2des=jobs,des2wf=https://q/2,code2wf=https://q/3", nil},
	} {
		env := app.NewEnv(servicetest.Lookup(map[string]string{"SQS_QUEUE_URL": c.one, "SQS_QUEUE_URLS": c.each, "STATUS_URL": "https://status/"}))
		got := readWorkers(env)
		if refused := env.Err() != nil; refused != (c.want == nil) || !refused && !maps.Equal(got.urls, c.want) {
			t.Errorf("%q and %q are read as %v, %v; want %v", c.one, c.each, got.urls, env.Err(), c.want)
		}
	}
}

// queue is a stand-in for SQS that takes every batch and keeps what came.
type queue struct {
	mu  sync.Mutex
	raw []string
}

func (q *queue) bodies() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string{}, q.raw...)
}

// ServeHTTP speaks SendMessageBatch of SQS's AWS JSON 1.0 protocol.
func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type done struct {
		ID        string `json:"Id"`
		MessageID string `json:"MessageId"`
		MD5       string `json:"MD5OfMessageBody"`
	}
	var batch struct {
		Entries []struct {
			ID          string `json:"Id"`
			MessageBody string
		}
	}
	if err := json.UnmarshalRead(r.Body, &batch); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" {
		http.Error(w, "not a batch", http.StatusBadRequest)
		return
	}
	answer := map[string][]done{"Successful": {}}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range batch.Entries {
		q.raw = append(q.raw, e.MessageBody)
		sum := md5.Sum([]byte(e.MessageBody))
		answer["Successful"] = append(answer["Successful"], done{e.ID, e.ID, hex.EncodeToString(sum[:])})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.MarshalWrite(w, answer)
}

// start runs the whole service, with a queue of the test's own and no NATS.
func start(t *testing.T, w *servicetest.World) (*servicetest.Running, *queue) {
	t.Helper()
	q := &queue{}
	sqs := httptest.NewUnstartedServer(q)
	sqs.Listener.Close()
	sqs.Listener = servicetest.Listen(t)
	sqs.Start()
	t.Cleanup(sqs.Close)
	for name, value := range map[string]string{
		"AWS_REGION": "ap-northeast-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL_SQS": sqs.URL,
	} {
		t.Setenv(name, value)
	}
	env := w.Environment(t, map[string]string{"SQS_QUEUE_URL": sqs.URL + "/1/jobs", "STATUS_URL": "http://status.example/v1/ai-status"})
	return w.Start(t, run, env), q
}

// A whole service starts, works without NATS, tells its outbox and ends cleanly, with the outbox told.
func TestRunStartsAndEndsCleanly(t *testing.T) {
	w := servicetest.New(t)
	service, queue := start(t, w)
	reply := service.Send(t, "POST", code2wf, w.Owner, `{"figmaFileKey":"k","screenId":"s","pageImportId":"`+plainCode2WF["pageImportId"].(string)+`"}`)
	if reply.Status != 201 {
		t.Fatalf("got %d %s", reply.Status, reply.Body)
	}
	servicetest.Eventually(t, "the job has reached the queue", func() bool { return len(queue.bodies()) == 1 })
	run := lifecycle.Ref{Kind: lifecycle.Code2WF, ID: reply.JSON(t)["id"].(string)}
	servicetest.Eventually(t, "the job has left the outbox", func() bool {
		return cmp.Equal(servicetest.Told(w.Outbox(t, run)), []string{"events 1"}) // which waits for NATS
	})
	metrics, err := service.HTTP.Get(service.Ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	if err != nil || !strings.Contains(string(text), `framerun_outbox_carried_total{destination="jobs",result="sent"} 1`) {
		t.Errorf("the metrics do not tell of the job: %v", err)
	}
	service.Stop()
	if err := service.End(); err != nil {
		t.Errorf("a clean end: %v", err)
	}
}

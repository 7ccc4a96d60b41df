package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
)

// letterbox is a dead letter queue without a network: it gives what is in it until that is taken out or hidden.
type letterbox struct {
	mu     sync.Mutex
	down   bool
	bodies map[string]string // by id, which is the receipt as well
	hidden map[string]bool
	asked  int
}

func (b *letterbox) Do(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	raw, err := io.ReadAll(r.Body)
	if err == nil && b.down {
		err = errors.New("no connection")
	}
	var in struct{ ReceiptHandle string }
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return nil, err
	}
	out, answer := map[string]any{}, []any{}
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case "ReceiveMessage":
		for id, body := range b.bodies {
			if sum := md5.Sum([]byte(body)); !b.hidden[id] {
				answer = append(answer, map[string]any{"MessageId": id, "ReceiptHandle": id, "Body": body, "MD5OfBody": hex.EncodeToString(sum[:])})
			}
		}
		out["Messages"] = answer
	case "DeleteMessage":
		delete(b.bodies, in.ReceiptHandle)
	case "ChangeMessageVisibility":
		b.hidden[in.ReceiptHandle] = true
	}
	body, err := json.Marshal(out)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// holds says what of the letter is left: "" if it was taken out.
func (b *letterbox) holds(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, there := b.bodies[id]; {
	case !there:
		return ""
	case b.hidden[id]:
		return "left"
	}
	return "there"
}

func (b *letterbox) put(id, body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bodies[id] = body
}

func (b *letterbox) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

func (e *ear) undertaker() (*undertaker, *letterbox, *servicetest.Log) {
	box, log := &letterbox{bodies: map[string]string{}, hidden: map[string]bool{}}, &servicetest.Log{}
	client := sqs.New(sqs.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		BaseEndpoint: aws.String("http://127.0.0.1:1"), HTTPClient: box, Retryer: aws.NopRetryer{}})
	return &undertaker{server: e.server, letters: &jobs.DeadLetters{Client: client, URL: "https://sqs/dlq"}, log: log.Logger(),
		seen: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"result"})}, box, log
}

// letter is the job of run's stage as it lies in a queue.
func letter(run lifecycle.Run, stage lifecycle.Stage, attempt int) string {
	m := map[string]any{"schema": jobs.Schema, idMember(run.Kind): run.ID, "kind": run.Kind, "stage": stage, "attempt": attempt, "screen_id": "hunter2"}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// round settles what is in the box.
func (u *undertaker) round(t *testing.T) error {
	t.Helper()
	letters, err := u.letters.Receive(t.Context())
	for _, l := range letters {
		err = errors.Join(err, u.bury(t.Context(), l))
	}
	return err
}

// Every dead job meets a run in every state. Catches a run that waits for ever for what no worker will do, one that is ended for a job
// that it has left behind, a letter that stays for no reason, and a timeline that tells of a letter which changed nothing.
func TestDeadJobsInEveryState(t *testing.T) {
	t.Parallel()
	e := listen(t)
	u, box, _ := e.undertaker()
	awaited := map[lifecycle.State]lifecycle.Stage{lifecycle.Parsing: lifecycle.StageParse, lifecycle.Assembling: lifecycle.StageAssemble,
		lifecycle.Processing: lifecycle.StageGenerate}
	for _, kind := range lifecycle.Kinds {
		for _, state := range servicetest.StatesOf(kind) {
			for _, stage := range []lifecycle.Stage{lifecycle.StageParse, lifecycle.StageAssemble, lifecycle.StageGenerate} {
				for attempt := 1; attempt <= 3; attempt++ {
					run := e.In(t, kind, state)
					e.SQL.MustExec(`UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, run.ID)
					box.put("m", letter(run, stage, attempt))
					ends := stage == awaited[state] && attempt == 2
					bury := func() { noError(t, u.round(t)) }
					if !ends {
						e.unchanged(t, "a dead job that nobody waits for", bury)
					} else {
						bury()
						e.mustBeBuried(t, run)
					}
					want := map[bool]string{true: "left", false: ""}[attempt == 3] // which cannot be honest
					if got := box.holds("m"); got != want {
						t.Errorf("%s of attempt %d for a %s run: the letter is %q, want %q", stage, attempt, state, got, want)
					}
					box.hidden["m"] = false
				}
			}
		}
	}
}

func (e *ear) mustBeBuried(t *testing.T, run lifecycle.Run) {
	t.Helper()
	row, line := e.Row(t, run.Ref), e.LastLine(t, run.Ref)
	if row["status"] != "2" || row["error_message"] != "The request could not be handed to a worker. Please start the generation again." ||
		row["attempt"] != 2. || row["updated_by"] != platform.UserWorker {
		t.Errorf("the row: %v", row)
	}
	if line.What != "failed" || line.Outcome != "applied" || line.By != "backend" || line.From == nil || *line.From != string(run.State) {
		t.Errorf("the line: %+v", line)
	}
	if told, _ := e.nerve.take(); len(told) != 1 || told[0] != run.Ref {
		t.Errorf("told of %v", told)
	}
}

// Catches an auto-confirm run that waits for ever: its one job parses and assembles.
func TestADeadJobOfAnAutoConfirmRun(t *testing.T) {
	t.Parallel()
	e := listen(t)
	u, box, _ := e.undertaker()
	run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling, func(r *lifecycle.Run) { r.AutoConfirm = true })
	box.put("m", letter(run, lifecycle.StageParse, 1))
	noError(t, u.round(t))
	if row := e.Row(t, run.Ref); row["status"] != "2" {
		t.Errorf("the row: %v", row)
	}
}

// Catches a letter that loops or vanishes although nobody could read it, whose content reaches the log, or that keeps others waiting;
// and one of an unknown run that stays.
func TestLettersThatSayNothing(t *testing.T) {
	t.Parallel()
	e := listen(t)
	u, box, log := e.undertaker()
	run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	box.put("junk", `{"schema":"hunter2"}`)
	box.put("stranger", letter(e.Draft(lifecycle.WF2Des), lifecycle.StageParse, 1))
	box.put("good", letter(run, lifecycle.StageGenerate, 1))
	noError(t, u.round(t))
	for id, want := range map[string]string{"junk": "left", "stranger": "", "good": ""} {
		if got := box.holds(id); got != want {
			t.Errorf("letter %s is %q, want %q", id, got, want)
		}
	}
	if row := e.Row(t, run.Ref); row["status"] != "2" {
		t.Errorf("the row: %v", row)
	}
	if said := log.String(); strings.Contains(said, "hunter2") || !strings.Contains(said, `"message":"junk"`) || !strings.Contains(said, "for the operator") {
		t.Errorf("the log: %s", said)
	}
}

// Catches a letter that is taken out before the store has answered, and one that is settled twice after a crash between the two.
func TestALetterLeavesOnlyWhenTheRunHasEnded(t *testing.T) {
	t.Parallel()
	e := listen(t)
	u, box, _ := e.undertaker()
	run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	body := letter(run, lifecycle.StageGenerate, 1)
	box.put("m", body)
	down, err := store.Open("postgres://127.0.0.1:1/none?sslmode=disable", store.Options{})
	noError(t, err)
	t.Cleanup(func() { down.Close() })
	up := u.server
	u.server = &server{store: down, account: up.account, nerve: up.nerve}
	if u.round(t) == nil || box.holds("m") != "there" {
		t.Errorf("PostgreSQL is down, and the letter is %q", box.holds("m"))
	}
	u.server = up
	l, err := u.letters.Receive(t.Context())
	noError(t, err)
	if result, _, err := u.settle(t.Context(), l[0]); result != "failed" || err != nil { // and here it is killed
		t.Errorf("%s, %v", result, err)
	}
	e.unchanged(t, "the letter that comes again", func() { noError(t, u.round(t)) })
	if got := box.holds("m"); got != "" {
		t.Errorf("the letter is %q", got)
	}
}

// Catches a watch that gives up while SQS is down, that asks without pause, or that does not end when it should.
func TestTheWatchOutlastsSQS(t *testing.T) {
	t.Parallel()
	e := listen(t)
	u, box, log := e.undertaker()
	run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	box.setDown(true)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- u.run(ctx) }()
	servicetest.Eventually(t, "it says so", func() bool { return strings.Contains(log.String(), "trying again") })
	box.put("m", letter(run, lifecycle.StageGenerate, 1))
	box.setDown(false)
	servicetest.Eventually(t, "the run is failed", func() bool { return e.Row(t, run.Ref)["status"] == "2" })
	if n := strings.Count(log.String(), "trying again"); n > 3 {
		t.Errorf("it has complained %d times", n)
	}
	stop()
	noError(t, <-ended)
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// What sign makes, verify accepts; what was changed since, it refuses and says where. Catches a secret or a signature that is shown.
func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	secret := servicetest.New(t).Worker.Secret
	folder := t.TempDir()
	body, headers := filepath.Join(folder, "body.json"), filepath.Join(folder, "headers.txt")
	if err := os.WriteFile(body, []byte("{\"event\": \"parsed\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	signed := ctl(t, "", "webhook", "sign", body, "--webhook-secrets", secret).want(t, exitDone)
	if err := os.WriteFile(headers, []byte("> Host: x\n"+signed.out), 0o600); err != nil {
		t.Fatal(err)
	}
	ctl(t, "", "webhook", "verify", body, "--headers", headers, "--webhook-secrets", secret).want(t, exitDone)
	changed := ctl(t, "{\"event\": \"parsed\"}", "webhook", "verify", "--headers", headers, "--webhook-secrets", secret).want(t, exitRefused)
	if !strings.Contains(changed.out, "the line break at its end was taken away") {
		t.Errorf("a changed body: %s", changed.out)
	}
	old := ctl(t, "{}", "webhook", "sign", "--id", "msg_1", "--at", "1614265330", "-o", "json", "--webhook-secrets", secret).want(t, exitDone).json(t)["headers"].(map[string]any)
	late := ctl(t, "{}", "webhook", "verify", "--id", "msg_1", "--timestamp", "1614265330", "--signature", old["webhook-signature"].(string), "-o", "json",
		"--webhook-secrets", secret).want(t, exitRefused)
	if late.json(t)["good"] != false || !strings.Contains(late.out, "more than 5 minutes old") {
		t.Errorf("an old one: %s", late.out)
	}
	for _, said := range []told{signed, changed, late} {
		if strings.Contains(said.out+said.err, secret) {
			t.Error("the secret is shown")
		}
	}
	ctl(t, "{}", "webhook", "sign", "--webhook-secrets", "whsec_short").want(t, exitUsage)
	ctl(t, "{}", "webhook", "sign", "--nats-url", "nats://x").want(t, exitUsage)
	ctl(t, "", "webhook", "verify", filepath.Join(folder, "lost"), "--webhook-secrets", secret).want(t, exitUsage)
}

// receiver answers as service status might, and keeps what came with a good signature.
type receiver struct {
	status int
	bodies []string
}

func (d *desk) receiver(t *testing.T) (*receiver, []string) {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	webhooks, err := auth.NewWebhooks([]string{d.Worker.Secret}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if err := webhooks.Verify(req.Header, body); err != nil {
			t.Errorf("what was sent is refused: %v", err)
		}
		r.bodies = append(r.bodies, string(body))
		w.WriteHeader(r.status)
		io.WriteString(w, `{"outcome":"applied"}`)
	}))
	server.Listener.Close()
	server.Listener = servicetest.Listen(t)
	server.Start()
	t.Cleanup(server.Close)
	return r, []string{"--webhook-url", server.URL, "--webhook-secrets", d.Worker.Secret}
}

// Catches a word that a worker would say otherwise, one that is sent in a dry run, and an exit code that misleads a script.
func TestSend(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	r, at := d.receiver(t)
	run, other := d.In(t, lifecycle.WF2Des, lifecycle.Parsing), d.In(t, lifecycle.Code2WF, lifecycle.Processing)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{run.ID, "parsed"}, `{"attempt":1,"event":"parsed","job_id":"` + run.ID + `"}`},
		{[]string{run.ID, "parsed", "--attempt", "7"}, `{"attempt":7,"event":"parsed","job_id":"` + run.ID + `"}`},
		{[]string{other.ID, "completed", "--flag-count", "0", "--score", "0.5", "--score-version", "v"},
			`{"attempt":1,"code2wf_id":"` + other.ID + `","event":"completed","flag_count":0,"result_url":"code2wf/` + other.ID + `/1/result.json","score":0.5,"score_version":"v"}`},
		{[]string{run.ID, "failed", "--error-code", "timeout"},
			`{"attempt":1,"event":"failed","job_id":"` + run.ID + `","manifest":{"error_code":"timeout","error_message":""}}`},
		{[]string{run.ID, "progress", "--percent", "40", "--message", "on it"},
			`{"attempt":1,"event":"progress","job_id":"` + run.ID + `","progress":{"message":"on it","percent":40}}`},
	} {
		args := append(append([]string{"webhook", "send"}, c.args...), at...)
		if got := d.ctl(t, append(args, "--dry-run")...).want(t, exitDone); len(r.bodies) != 0 || !strings.Contains(got.out, c.want) {
			t.Errorf("a dry run of %v sent %v, and says %s", c.args, r.bodies, got.out)
		}
		d.ctl(t, args...).want(t, exitDone)
		if len(r.bodies) != 1 || r.bodies[0] != c.want {
			t.Errorf("%v: sent %v, want %s", c.args, r.bodies, c.want)
		}
		r.bodies = nil
	}
	ctl(t, "as it stands\n", append([]string{"webhook", "send", "--body", "-"}, at...)...).want(t, exitDone)
	if r.bodies[0] != "as it stands\n" {
		t.Errorf("sent %q", r.bodies)
	}
	for status, code := range map[int]int{401: exitRefused, 404: exitNotFound, 409: exitRefused, 422: exitRefused, 429: exitUnavailable, 503: exitUnavailable, 500: exitUnavailable} {
		r.status = status
		d.ctl(t, append([]string{"webhook", "send", run.ID, "parsed"}, at...)...).want(t, code)
	}
	d.ctl(t, append([]string{"webhook", "send", run.ID}, at...)...).want(t, exitUsage)
	d.ctl(t, "webhook", "send", run.ID, "parsed", "--webhook-url", "http://"+servicetest.FreeAddress(t), "--webhook-secrets", d.Worker.Secret).want(t, exitUnavailable)
}

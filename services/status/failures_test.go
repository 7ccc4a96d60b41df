package main

import (
	"encoding/json/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// fail has a fresh run fail with the manifest as it stands in the body, byte for byte, and returns what a client then reads.
func (e *ear) fail(t *testing.T, name, manifest string) string {
	t.Helper()
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	body := strings.TrimSuffix(about(run, failed, nil), "}") + manifest + "}"
	mustTell(t, name, e.say(t, body), answered("applied", lifecycle.Failed, 1, false))
	row := e.Row(t, run.Ref)
	message, _ := row["error_message"].(string)
	if row["status"] != "2" || message == "" {
		t.Errorf("%s: the row: %v", name, row)
	}
	if !utf8.ValidString(message) || utf8.RuneCountInString(message) > 1000 || strings.ContainsFunc(message, unicode.IsControl) {
		t.Errorf("%s: a client reads %.80q (%d bytes)", name, message, len(message))
	}
	return message
}

// A failed event is never refused for its texts. Catches a run that stays open for ever because of what its worker's last words
// looked like, and words that are shown although they are not fit, or hidden although they are.
func TestFailuresAreNeverRefusedForTheirTexts(t *testing.T) {
	t.Parallel()
	e := listen(t)
	text := func(s string) string {
		quoted, _ := json.Marshal(s)
		return `,"manifest":{"error_message":` + string(quoted) + `}`
	}
	const empty = "The frame holds nothing that could be generated from."
	for name, tc := range map[string]struct{ manifest, want string }{
		"no manifest":               {``, generic},
		"null":                      {`,"manifest":null`, generic},
		"an empty manifest":         {`,"manifest":{}`, generic},
		"empty texts":               {`,"manifest":{"error_code":"","error_message":""}`, generic},
		"a known code":              {`,"manifest":{"error_code":"source_empty"}`, empty},
		"a known code and a text":   {`,"manifest":{"error_code":"source_empty","error_message":"layer 3 is empty"}`, empty},
		"an unknown code":           {`,"manifest":{"error_code":"E_42"}`, generic},
		"an unknown code and text":  {`,"manifest":{"error_code":"E_42","error_message":"Layer 3 is empty."}`, "Layer 3 is empty."},
		"a code in another case":    {`,"manifest":{"error_code":"SOURCE_EMPTY","error_message":"Layer 3."}`, "Layer 3."},
		"Japanese":                  {text("レイヤー「ボタン/primary」が見つかりません。"), "レイヤー「ボタン/primary」が見つかりません。"},
		"names with slashes":        {text("Button/Primary/Large and icon/24 are hidden, see 2026/11/29."), "Button/Primary/Large and icon/24 are hidden, see 2026/11/29."},
		"a public page":             {text("See https://help.figma.com/hc/articles/360040328"), generic},
		"white space":               {text("  one\r\n\ttwo\u2028three \u00a0 four "), "one two three four"},
		"controls":                  {`,"manifest":{"error_message":"a\u0000b\u0008c\u001b[31md\u007fe\u0085f"}`, "a b c [31md e f"},
		"only controls":             {`,"manifest":{"error_message":"\u0000\u0001\u200b\ufeff"}`, generic},
		"bidirectional overrides":   {text("abc\u202Edef\u2066ghi"), "abcdefghi"},
		"a lone surrogate":          {`,"manifest":{"error_message":"half \ud800 of it"}`, "half \uFFFD of it"},
		"surrogates in disorder":    {`,"manifest":{"error_message":"\udc00\ud800x"}`, "\uFFFD\uFFFDx"},
		"invalid UTF-8":             {`,"manifest":{"error_message":"broken ` + "\xff" + ` bytes"}`, "broken \uFFFD bytes"},
		"a cut character":           {`,"manifest":{"error_message":"cut ` + "\xe7" + `"}`, "cut \uFFFD"},
		"raw controls":              {",\"manifest\":{\"error_message\":\"one\ntwo\x1b\tthree\"}", "one two three"},
		"an escape that is none":    {`,"manifest":{"error_message":"fold \x here"}`, generic},
		"a number for a text":       {`,"manifest":{"error_code":7,"error_message":{"a":[1]}}`, generic},
		"an invalid code":           {`,"manifest":{"error_code":"` + "\xff" + `","error_message":"Layer 3."}`, "Layer 3."},
		"1000 characters":           {text(strings.Repeat("長い", 500)), strings.Repeat("長い", 500)},
		"1001 characters":           {text(strings.Repeat("長い", 500) + "。"), strings.Repeat("長い", 499) + "長…"},
		"200 kB":                    {text(strings.Repeat("long ", 40_000)), strings.Repeat("long ", 199) + "long…"},
		"200 kB of quotes":          {text(strings.Repeat(`"`, 100_000)), strings.Repeat(`"`, 999) + "…"},
		"a result without a prefix": {`,"result_url":"s3://b/k"`, generic},
	} {
		if got := e.fail(t, name, tc.manifest); got != tc.want {
			t.Errorf("%s: a client reads %.300q, want %.300q", name, got, tc.want)
		}
	}
}

// Catches a code of the agreed list that does not end in a sentence of its own.
func TestEveryKnownCodeHasItsSentence(t *testing.T) {
	t.Parallel()
	said := map[string]string{}
	for _, code := range []string{
		"source_not_found", "source_unreadable", "source_too_large", "source_empty", "unsupported_content", "content_policy", "model_unavailable",
		"model_overloaded", "quota_exceeded", "timeout", "invalid_result", "undeliverable", "internal",
	} {
		sentence := failureMessage(code, "pq: password")
		if twin := said[sentence]; twin != "" || sentence == generic && code != "internal" {
			t.Errorf("%s says %q, as %q does", code, sentence, twin)
		}
		if said[sentence] = code; !strings.HasSuffix(sentence, ".") {
			t.Errorf("%s: %q is no sentence", code, sentence)
		}
	}
	if len(said) != len(sentences) {
		t.Errorf("%d codes are agreed on, %d were tried", len(sentences), len(said))
	}
}

// Catches a failure's artifact that a client could be led to although it is not the run's, and a proper one that is lost.
func TestFailureArtifacts(t *testing.T) {
	t.Parallel()
	e := listen(t)
	other := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	for _, kind := range lifecycle.Kinds {
		for _, proper := range []bool{true, false} {
			run := e.In(t, kind, servicetest.StatesOf(kind)[0])
			at, want := key(run), any(key(run))
			if !proper {
				at, want = key(other), nil
			}
			mustTell(t, "failed", e.say(t, about(run, failed, members{"result_url": at})), answered("applied", lifecycle.Failed, 1, false))
			if got := e.Row(t, run.Ref)["result_url"]; got != want {
				t.Errorf("%s: the artifact is %v, want %v", at, got, want)
			}
		}
	}
}

// Catches a failed event that is let off more than its texts.
func TestABrokenTextExcusesNothingElse(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	broken := `,"manifest":{"error_message":"` + "\xff" + `"}`
	e.unchanged(t, "a malformed failure", func() {
		for name, body := range map[string]string{
			"another event":      strings.TrimSuffix(about(run, parsed, nil), "}") + broken + "}",
			"progress":           strings.TrimSuffix(about(run, progress, members{"progress": members{"percent": 1}}), "}") + broken + "}",
			"an unknown member":  strings.TrimSuffix(about(run, failed, members{"x": 1}), "}") + broken + "}",
			"a member twice":     strings.TrimSuffix(about(run, failed, nil), "}") + broken + broken + "}",
			"text after the end": strings.TrimSuffix(about(run, failed, nil), "}") + broken + "}{}",
			"cut off":            strings.TrimSuffix(about(run, failed, nil), "}") + broken,
			"a broken name":      strings.TrimSuffix(about(run, failed, nil), "}") + broken + ",\"\xff\":1}",
		} {
			if reply := e.say(t, body); reply.Status != 400 {
				t.Errorf("%s: got %d %s", name, reply.Status, reply.Body)
			}
		}
	})
}

// canaries are what must never leave the suite, each with the part that would give it away.
var canaries = []struct{ text, bird string }{
	{"AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"},
	{"key ASIAY34FZKBOKMUTVV7A was refused", "FZKBOKMUTVV7A"},
	{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"},
	{"signed with wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEK+/", "K7MDENG"},
	{"session IQoJb3JpZ2luX2VjEJr//////////wEaDmFwLW5vcnRoZWFzdC0xIkcwRQIhAKw", "b3JpZ2lu"},
	{"AIzaSyA-0123456789abcdefghijklmnopqrstu", "0123456789abc"},
	{"arn:aws:iam::123456789012:role/framerun-worker", "123456789012"},
	{"not authorized on arn:aws-cn:sqs:cn-north-1:123456789012:q", "123456789012"},
	{"postgres://framerun:hunter2@db.internal:5432/framerun", "hunter2"},
	{"dial https://user:hunter2@proxy.example/", "hunter2"},
	{"mongodb+srv://cluster0.example/db", "cluster0"},
	{"s3://framerun-artifacts/wf2des/1", "framerun-artifacts"},
	{`{"password":"hunter2"}`, "hunter2"}, {`{\"password\": \"hunter2\"}`, "hunter2"}, {"DB_PASSWORD=hunter2", "hunter2"}, {"OPENAI_API_KEY: hunter2", "hunter2"},
	{"client_secret_v2='hunter2'", "hunter2"}, {"session_token=hunter2", "hunter2"}, {"AccountKey=hunter2;", "hunter2"},
	{"Authorization: Bearer hunter2hunter2", "hunter2"}, {"sent bearer\n\thunter2hunter2", "hunter2"}, {"Basic dXNlcjpodW50ZXIy", "dXNlcjp"},
	{"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhYmMifQ.c2ln", "eyJzdWIi"},
	{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8G"}, {"sk-proj-hunter2hunter2", "hunter2"}, {"ghp_hunter2hunter2", "hunter2"}, {"xoxb-hunter2-hunter2", "hunter2"}, {"figd_hunter2hunter2", "hunter2"},
	{"-----BEGIN RSA PRIVATE KEY----- hunter2", "hunter2"},
	{"https://b.s3.ap-northeast-1.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=hunter2", "hunter2"},
	{"https://cdn.example/k?e=1&amp;X-Amz-Signature=hunter2", "hunter2"}, {"https://cdn.example/k?sig=hunter2", "hunter2"},
	{"GET https://framerun-artifacts.s3.amazonaws.com/k", "framerun-artifacts"},
	{"open /var/lib/framerun/model.bin: no such file", "lib/framerun"}, {"cannot read `/srv/app/keys`", "srv/app"}, {"<{/srv/app/keys}>", "srv/app"},
	{"in ./src/worker/main.ts", "src/worker"}, {"/home/山田/秘密", "山田"}, {`C:\Users\svc\keys.txt`, "Users"}, {`\\fileserver\share`, "fileserver"}, {"~/.aws/credentials", ".aws"},
	{"Traceback (most recent call last):\n  File \"worker.py\", line 12, in parse\nKeyError: 'x'", "KeyError"},
	{"goroutine 17 [running]:\nmain.parse(0xc000010000)", "main.parse"}, {"panic: assignment to entry in nil map", "nil map"},
	{"runtime error: invalid memory address", "memory address"}, {"at parse (worker.js:12:7)", "worker.js"}, {"Exception in thread main", "in thread"},
	{"worker.go:42: boom", "worker.go"}, {`File "worker.py", line 3`, "worker.py"},
	{"SELECT * FROM wf2des WHERE id = 'x'", "wf2des"}, {"insert\tinto quotas values (1)", "quotas"}, {"UPDATE wf2des SET status='1'", "wf2des"},
	{"DELETE FROM wf2des", "wf2des"}, {`pq: relation "wf2des" does not exist`, "wf2des"}, {`ERROR: relation "wf2des" does not exist`, "wf2des"},
	{`violates foreign key constraint "wf2des_project_fk"`, "project_fk"}, {`ERROR: syntax error at or near "wf2des"`, "wf2des"}, {"SQLSTATE 23505", "SQLSTATE"},
	{"connect to 10.0.3.17:5432", "10.0.3.17"}, {"http 169.254.169.254 refused", "169.254.169"}, {"connect localhost:5432", "localhost"}, {"db-1.internal is down", "db-1.internal"},
	{"AKIA\u200bIOSFODNN7EXAMPLE", "IOSFODNN7"}, {"/var/\u2060lib/framerun", "lib/framerun"},
}

// Catches a credential, an address, a path, a stack or a statement that a worker's words carry into a row, a timeline, an answer, the
// public feed or a log.
func TestCanariesNeverSing(t *testing.T) {
	t.Parallel()
	var log servicetest.Log
	e := listenOn(t, servicetest.New(t), web.Options{NoCORS: true, Logger: log.Logger()}, secret())
	for _, c := range canaries {
		for _, text := range []string{c.text, "The worker gave up: " + c.text + " (attempt 1)", strings.Repeat("so much ", 2000) + c.text} {
			e.plant(t, text, c.bird)
		}
	}
	for _, c := range canaries {
		if strings.Contains(log.String(), c.bird) {
			t.Errorf("the log holds %q", c.bird)
		}
	}
}

func (e *ear) plant(t *testing.T, text, bird string) {
	t.Helper()
	run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	replies := []servicetest.Reply{
		e.say(t, about(run, progress, members{"progress": members{"percent": 1, "message": text}})),
		e.say(t, about(run, failed, members{"result_url": text, "manifest": members{"error_code": text, "error_message": text}})),
		e.say(t, about(run, failed, members{"manifest": members{"error_code": "odd", "error_message": text}})), // a late one
	}
	_, reports := e.nerve.take()
	seen, err := json.Marshal([]any{e.Row(t, run.Ref), e.Timeline(t, run.Ref), replies, reports})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(seen), bird) {
		t.Errorf("%q came out of %.100q:\n%.3000s", bird, text, seen)
	}
	if message := e.Row(t, run.Ref)["error_message"]; message != generic && len(text) < 1000 {
		t.Errorf("%q: a client reads %q", text, message)
	}
}

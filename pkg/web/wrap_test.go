package web_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

func TestRequestIDIsKeptOnlyIfItIsAPlainWord(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", func(r *http.Request) (*web.Reply, error) {
		return &web.Reply{Body: web.RequestID(r.Context())}, nil
	})
	s := serve(t, rt, web.Options{})
	fresh := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for _, c := range []struct {
		sent []string
		kept bool
	}{
		{[]string{"X-Request-Id: a"}, true},
		{[]string{"X-Request-Id: Az09._-" + strings.Repeat("a", 57)}, true},
		{nil, false},
		{[]string{"X-Request-Id: "}, false},
		{[]string{"X-Request-Id: " + strings.Repeat("a", 65)}, false},
		{[]string{"X-Request-Id: a b"}, false},
		{[]string{"X-Request-Id: a\",\"level\":\"ERROR"}, false},
		{[]string{"X-Request-Id: <script>"}, false},
		{[]string{"X-Request-Id: ä"}, false},
		{[]string{"X-Request-Id: a", "X-Request-Id: b"}, false},
	} {
		got := s.send(t, http.MethodGet, "/", "", c.sent...)
		id := got.Header.Get("X-Request-Id")
		if c.kept && "X-Request-Id: "+id != c.sent[0] || !c.kept && !fresh.MatchString(id) {
			t.Errorf("%q became %q", c.sent, id)
		}
		if got.body != `"`+id+`"` {
			t.Errorf("the handler saw %s, the client %s", got.body, id)
		}
	}
}

func TestTraceparentGoesOnOrBegins(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", func(r *http.Request) (*web.Reply, error) {
		return &web.Reply{Body: web.Traceparent(r.Context())}, nil
	})
	s := serve(t, rt, web.Options{})
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	form := regexp.MustCompile(`^"00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])"$`)
	for _, c := range []struct {
		sent []string
		goes bool
		flag string
	}{
		{[]string{"Traceparent: 00-" + id + "-" + span + "-01"}, true, "01"},
		{[]string{"Traceparent: 00-" + id + "-" + span + "-00"}, true, "00"},
		{[]string{"Traceparent: 00-" + id + "-" + span + "-ff"}, true, "01"},
		{[]string{"Traceparent: cc-" + id + "-" + span + "-01-what-else"}, true, "01"},
		{nil, false, "01"},
		{[]string{"Traceparent: ff-" + id + "-" + span + "-01"}, false, "01"},
		{[]string{"Traceparent: 00-" + id + "-" + span + "-01-more"}, false, "01"},
		{[]string{"Traceparent: 00-" + strings.ToUpper(id) + "-" + span + "-01"}, false, "01"},
		{[]string{"Traceparent: 00-" + strings.Repeat("0", 32) + "-" + span + "-01"}, false, "01"},
		{[]string{"Traceparent: 00-" + id + "-" + strings.Repeat("0", 16) + "-01"}, false, "01"},
		{[]string{"Traceparent: 00-" + id[1:] + "-" + span + "-01"}, false, "01"},
		{[]string{"Traceparent: nonsense"}, false, "01"},
		{[]string{"Traceparent: 00-" + id + "-" + span + "-01", "Traceparent: 00-" + id + "-" + span + "-01"}, false, "01"},
	} {
		got := s.send(t, http.MethodGet, "/", "", c.sent...)
		part := form.FindStringSubmatch(got.body)
		if part == nil {
			t.Fatalf("%q: %s", c.sent, got.body)
		}
		if goes := part[1] == id; goes != c.goes || part[2] == span || part[3] != c.flag {
			t.Errorf("%q: %s", c.sent, got.body)
		}
	}
}

// Everything that a caller sends may be secret or hostile. The line holds none of it but what was checked.
func TestOneLogLineARequestAndNoSecretInIt(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodPost, "/v1/things/{id}", func(r *http.Request) (*web.Reply, error) {
		web.Note(r.Context(), "caller", "sub-1\n{\"level\":\"ERROR\"}")
		return &web.Reply{Status: http.StatusCreated, Body: "four"}, nil
	})
	s := serve(t, rt, web.Options{})
	s.send(t, http.MethodPost, "/v1/things/canary-path?token=canary-query", `{"a":"canary-body"}`,
		"Authorization: Bearer canary-token", "Cookie: canary-cookie", "Webhook-Signature: canary-signature", "X-Request-Id: r1",
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "User-Agent: canary-agent")
	line := s.log.line(t, 0)
	if took, ok := line["duration_ms"].(float64); !ok || took < 0 {
		t.Errorf("duration_ms %v", line["duration_ms"])
	}
	delete(line, "time")
	delete(line, "duration_ms")
	want := map[string]any{
		"level": "INFO", "msg": "request", "method": "POST", "route": "/v1/things/{id}", "status": 201.0, "bytes": 6.0,
		"request_id": "r1", "trace_id": "0af7651916cd43dd8448eb211c80319c", "caller": "sub-1\n{\"level\":\"ERROR\"}",
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Error(diff)
	}
	if text := s.log.String(); strings.Contains(text, "canary") || strings.Count(text, "\n") != 1 {
		t.Errorf("the log holds too much: %s", text)
	}
}

func TestAPanicBecomesA500AndOneLine(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", func(*http.Request) (*web.Reply, error) { panic("canary: out of cheese") })
	s := serve(t, rt, web.Options{})
	got := s.send(t, http.MethodGet, "/", "")
	if p := got.problem(t); p.Code != "internal" || strings.Contains(got.body, "canary") {
		t.Errorf("%s", got.body)
	}
	line := s.log.line(t, 0)
	stack, _ := line["stack"].(string)
	if line["error"] != "panic: canary: out of cheese" || !strings.Contains(stack, "wrap_test.go") || line["level"] != "ERROR" {
		t.Errorf("%v", line)
	}
	if s.send(t, http.MethodGet, "/", "").StatusCode != 500 {
		t.Error("the service did not survive")
	}
}

// Half an answer must not look like a whole one, however it came to be half.
func TestAnAnswerThatBreaksOffIsCut(t *testing.T) {
	for name, value := range map[string]any{"panic": "out of cheese", "abort": http.ErrAbortHandler} {
		t.Run(name, func(t *testing.T) {
			rt := web.NewRouter()
			rt.Handle(http.MethodGet, "/", func(*http.Request) (*web.Reply, error) {
				return &web.Reply{Stream: func(w http.ResponseWriter, r *http.Request) error {
					_, _ = io.WriteString(w, "half")
					_ = http.NewResponseController(w).Flush()
					panic(value)
				}}, nil
			})
			s := serve(t, rt, web.Options{})
			resp, err := http.Get(s.url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err == nil || string(text) != "half" {
				t.Errorf("%q %v", text, err)
			}
			if line := s.log.line(t, 0); name == "panic" && (line["level"] != "ERROR" || line["status"] != 200.0) {
				t.Errorf("%v", line)
			}
		})
	}
}

func TestStreamWritesForItself(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/events", func(*http.Request) (*web.Reply, error) {
		return &web.Reply{
			Header: http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}},
			Stream: func(w http.ResponseWriter, r *http.Request) error {
				_, err := io.WriteString(w, "data: 1\n\n")
				return errors.Join(err, http.NewResponseController(w).Flush(), errors.New("stream: the source dried up"))
			},
		}, nil
	})
	rt.Handle(http.MethodGet, "/never", func(*http.Request) (*web.Reply, error) {
		return &web.Reply{
			Header: http.Header{"Etag": {`"a"`}, "Cache-Control": {"private"}, "Content-Type": {"text/event-stream"}},
			Stream: func(http.ResponseWriter, *http.Request) error { return lifecycle.ErrUnavailable },
		}, nil
	})
	s := serve(t, rt, web.Options{})
	got := s.send(t, http.MethodGet, "/events", "")
	if got.body != "data: 1\n\n" || got.Header.Get("Content-Type") != "text/event-stream" || got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%q %v", got.body, got.Header)
	}
	if line := s.log.line(t, 0); line["error"] != "stream: the source dried up" || line["bytes"] != 9.0 {
		t.Errorf("%v", line)
	}
	never := s.send(t, http.MethodGet, "/never", "")
	if never.problem(t).Code != "unavailable" || never.Header.Get("ETag") != "" || never.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v", never.body, never.Header)
	}
}

func TestReplyIsDeterministicJSON(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/map", say(&web.Reply{Body: map[string]any{"b": "<&>\u2028", "a": []string(nil), "c": 1}}))
	rt.Handle(http.MethodGet, "/unchanged", say(&web.Reply{Status: 304, Header: http.Header{"Etag": {`"a"`}}, Body: "not sent"}))
	rt.Handle(http.MethodGet, "/nothing", say(&web.Reply{Status: 204, Body: "not sent"}))
	rt.Handle(http.MethodGet, "/broken", say(&web.Reply{Header: http.Header{"Etag": {`"a"`}}, Body: func() {}}))
	s := serve(t, rt, web.Options{})
	for _, c := range []struct {
		path   string
		status int
		body   string
		etag   string
	}{
		{"/map", 200, "{\"a\":[],\"b\":\"<&>\u2028\",\"c\":1}", ""},
		{"/unchanged", 304, "", `"a"`},
		{"/nothing", 204, "", ""},
	} {
		got := s.send(t, http.MethodGet, c.path, "")
		if got.StatusCode != c.status || got.body != c.body || got.Header.Get("ETag") != c.etag {
			t.Errorf("%s: %d %s %v", c.path, got.StatusCode, got.body, got.Header)
		}
	}
	got := s.send(t, http.MethodGet, "/broken", "")
	if got.problem(t).Code != "internal" || got.Header.Get("ETag") != "" {
		t.Errorf("%s %v", got.body, got.Header)
	}
}

// What was rendered before, for many readers, is sent to each as it is and with its length; its headers are the reader's own. Catches a
// body that is rendered twice, which would be a JSON text in spaces of its own or a string in base64.
func TestReplyThatIsRenderedAlreadyIsSentAsItIs(t *testing.T) {
	const text = "{\"b\": 1,\n  \"a\" : [2, \"<\\u0026>\"]}"
	shared, length := http.Header{"Etag": {`"a"`}}, strconv.Itoa(len(text))
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", say(&web.Reply{Header: shared, Body: jsontext.Value(text)}))
	rt.Handle(http.MethodGet, "/unchanged", say(&web.Reply{Status: 304, Header: shared, Body: jsontext.Value(text)}))
	s := serve(t, rt, web.Options{})
	for _, c := range []struct {
		method, path string
		status       int
		body, length string
	}{{"GET", "/", 200, text, length}, {"HEAD", "/", 200, "", length}, {"GET", "/unchanged", 304, "", ""}} {
		got := s.send(t, c.method, c.path, "")
		if got.StatusCode != c.status || got.body != c.body || got.Header.Get("Content-Length") != c.length || got.Header.Get("ETag") != `"a"` {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, got.StatusCode, got.body, got.Header)
		}
		if c.status == 200 && got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", c.method, c.path, got.Header)
		}
	}
	if diff := cmp.Diff(http.Header{"Etag": {`"a"`}}, shared); diff != "" {
		t.Errorf("the headers of all readers were written to:\n%s", diff)
	}
}

// The plugin's iframe has the origin null. It must be able to read every answer, and above all the refusals.
func TestCORSOnSuccessAndOnEveryError(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/good", say(&web.Reply{Body: 1}))
	rt.Handle(http.MethodGet, "/panic", func(*http.Request) (*web.Reply, error) { panic("x") })
	rt.Handle(http.MethodGet, "/bad", refuse(&web.RateLimitedError{}))
	s := serve(t, rt, web.Options{})
	for _, c := range []struct {
		method, path string
		status       int
	}{{"GET", "/good", 200}, {"GET", "/panic", 500}, {"GET", "/bad", 429}, {"GET", "/nowhere", 404}, {"PUT", "/good", 405}, {"GET", "//good", 404}} {
		got := s.send(t, c.method, c.path, "", "Origin: null")
		h := got.Header
		if got.StatusCode != c.status || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s: %d %v", c.method, c.path, got.StatusCode, h)
		}
		exposed := strings.Split(h.Get("Access-Control-Expose-Headers"), ", ")
		for _, name := range []string{"ETag", "Location", "Retry-After", "X-Request-Id", "Preference-Applied", "Idempotent-Replayed", "Link"} {
			if !slices.Contains(exposed, name) {
				t.Errorf("%s %s does not expose %s", c.method, c.path, name)
			}
		}
	}
	for _, path := range []string{"/good", "/nowhere", "/v1/projects/1/wf2des", "//x"} {
		got := s.send(t, http.MethodOptions, path, "", "Origin: null", "Access-Control-Request-Method: DELETE", "Access-Control-Request-Headers: authorization")
		h := got.Header
		if got.StatusCode != 204 || got.body != "" || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Max-Age") == "" {
			t.Errorf("%s: %d %v", path, got.StatusCode, h)
		}
		allowed := strings.Split(h.Get("Access-Control-Allow-Headers"), ", ")
		for _, name := range []string{"Authorization", "Content-Type", "If-None-Match", "Idempotency-Key", "Prefer", "Last-Event-ID", "X-Request-Id", "traceparent"} {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s: %s is not allowed", path, name)
			}
		}
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			if !strings.Contains(h.Get("Access-Control-Allow-Methods"), method) {
				t.Errorf("%s: %s is not allowed", path, method)
			}
		}
	}
}

func TestCORSCanBeSwitchedOff(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodPost, "/v1/ai-status", say(&web.Reply{Body: 1}))
	s := serve(t, rt, web.Options{NoCORS: true})
	for _, method := range []string{"POST", "OPTIONS", "GET"} {
		got := s.send(t, method, "/v1/ai-status", "", "Origin: null", "Access-Control-Request-Method: POST")
		for name := range got.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s", method, name)
			}
		}
	}
}

func TestSecurityHeadersStandOnEveryAnswer(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", say(&web.Reply{Body: 1}))
	rt.Handle(http.MethodGet, "/cached", say(&web.Reply{Body: 1, Header: http.Header{"Cache-Control": {"private, no-cache"}}}))
	s := serve(t, rt, web.Options{})
	for path, cache := range map[string]string{"/": "no-store", "/cached": "private, no-cache", "/nowhere": "no-store"} {
		want := map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": cache,
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		}
		got := s.send(t, http.MethodGet, path, "")
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if got.Header.Get(name) != want[name] {
				t.Errorf("%s: %s: %q", path, name, got.Header.Get(name))
			}
		}
	}
}

// A client that hangs up is no failure of ours, and must not ring an alarm.
func TestAClientThatHasGoneIsNotCountedAsAFailure(t *testing.T) {
	entered := make(chan struct{})
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", func(r *http.Request) (*web.Reply, error) {
		close(entered)
		<-r.Context().Done()
		return nil, fmt.Errorf("store: read: %w", r.Context().Err())
	})
	s := serve(t, rt, web.Options{})
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-entered; hangUp() }()
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if line := s.log.line(t, 0); line["status"] != 499.0 || line["level"] != "INFO" {
		t.Errorf("%v", line)
	}
}

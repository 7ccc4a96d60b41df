package fuzz

import (
	"net/http"
	"strings"
	"testing"
)

const runPath = "/v1/projects/1/code2wf/01980000-0000-7000-8000-0000000000aa"

// good is an answer that nothing is wrong with: an open code2wf run.
func good() (*Request, *Reply) {
	body := `{"kind":"code2wf","id":"01980000-0000-7000-8000-0000000000aa","organizationId":1,"projectId":1,"figmaFileKey":"k","screenId":"s",` +
		`"placementTarget":null,"status":"processing","attempt":1,"flagCount":null,"resultUrl":null,"errorMessage":null,"materializedAt":null,` +
		`"createdAt":"2026-01-02T03:04:05.000006Z","updatedAt":"2026-01-02T03:04:05.000006Z","createdBy":"u","updatedBy":"u","done":false,"nextActions":[],` +
		`"links":{"self":"` + runPath + `","timeline":"` + runPath + `/timeline"},"code2wfId":"01980000-0000-7000-8000-0000000000aa","pageImportId":"p"}`
	return &Request{Service: "query", Method: "GET", Target: runPath}, reply(200, "application/json", body,
		"Etag", `"01980000-0000-7000-8000-0000000000aa.1767323045000006"`, "Retry-After", "2")
}

func refusal() (*Request, *Reply) {
	return &Request{Service: "query", Method: "GET", Target: runPath}, reply(404, "application/problem+json",
		`{"type":"/problems/not_found","title":"t","status":404,"code":"not_found","detail":"d","requestId":"id-1"}`)
}

func reply(status int, contentType, body string, headers ...string) *Reply {
	r := &Reply{Status: status, Header: http.Header{}, Body: []byte(body), Length: int64(len(body))}
	for name, value := range map[string]string{"Content-Type": contentType, "X-Request-Id": "id-1", "Access-Control-Allow-Origin": "*",
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestGoodAnswersPass(t *testing.T) {
	t.Parallel()
	for _, make := range []func() (*Request, *Reply){good, refusal} {
		if v := judge(make()); len(v.problems) > 0 {
			t.Errorf("a good answer is blamed: %q", v.problems)
		}
	}
}

// replaced is an answer with a part of its body, and its length, changed.
func replaced(make func() (*Request, *Reply), old, new string) func() (*Request, *Reply) {
	return func() (*Request, *Reply) {
		r, answer := make()
		answer.Body = []byte(strings.ReplaceAll(string(answer.Body), old, new))
		answer.Length = int64(len(answer.Body))
		return r, answer
	}
}

func with(make func() (*Request, *Reply), change func(*Request, *Reply)) func() (*Request, *Reply) {
	return func() (*Request, *Reply) {
		r, answer := make()
		change(r, answer)
		return r, answer
	}
}

// Each of these answers has one fault. A judge who lets one pass would let all like it pass.
func TestEveryFaultIsSeen(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func() (*Request, *Reply){
		"a 500":                       with(refusal, func(_ *Request, a *Reply) { a.Status = 500 }),
		"a redirect":                  with(good, func(_ *Request, a *Reply) { a.Status = 301 }),
		"another status":              with(good, func(r *Request, _ *Reply) { r.wants = []int{404} }),
		"no request id":               with(good, func(_ *Request, a *Reply) { a.Header.Del("X-Request-Id") }),
		"another request id":          with(good, func(r *Request, _ *Reply) { r.add("X-Request-Id", "mine") }),
		"no CORS":                     with(refusal, func(_ *Request, a *Reply) { a.Header.Del("Access-Control-Allow-Origin") }),
		"CORS twice":                  with(good, func(_ *Request, a *Reply) { a.Header.Add("Access-Control-Allow-Origin", "*") }),
		"CORS for workers":            with(refusal, func(r *Request, _ *Reply) { r.Service = "status" }),
		"a refusal with a version":    with(refusal, func(_ *Request, a *Reply) { a.Header.Set("Etag", `"x"`) }),
		"no length":                   with(good, func(_ *Request, a *Reply) { a.Length = -1 }),
		"another length":              with(good, func(_ *Request, a *Reply) { a.Length++ }),
		"HEAD with a body":            with(good, func(r *Request, _ *Reply) { r.Method = "HEAD" }),
		"304 with a body":             with(good, func(_ *Request, a *Reply) { a.Status = 304 }),
		"text for a problem":          with(refusal, func(_ *Request, a *Reply) { a.Header.Set("Content-Type", "text/plain") }),
		"text for a run":              with(good, func(_ *Request, a *Reply) { a.Header.Set("Content-Type", "text/plain") }),
		"a code of no list":           replaced(refusal, "not_found", "gone"),
		"a code of another status":    replaced(refusal, "not_found", "invalid_field"),
		"another status inside":       replaced(refusal, `"status":404`, `"status":400`),
		"another request inside":      replaced(refusal, "id-1", "id-2"),
		"an unknown member":           replaced(refusal, `"detail":"d"`, `"detail":"d","cause":"x"`),
		"no title":                    replaced(refusal, `"title":"t",`, ``),
		"a member twice":              replaced(refusal, `"title":"t"`, `"title":"t","title":"t"`),
		"text behind":                 replaced(refusal, `"}`, `"}x`),
		"a cause":                     replaced(refusal, `"detail":"d"`, `"detail":"pq: duplicate key"`),
		"a fault at no place":         replaced(refusal, `"detail":"d"`, `"detail":"d","errors":[{"detail":"x"}]`),
		"a missing column":            replaced(good, `"attempt":1,`, ``),
		"a digit for a word":          replaced(good, `"processing"`, `"0"`),
		"a time in another form":      replaced(good, `05.000006Z`, `05Z`),
		"done and open":               replaced(good, `"done":false`, `"done":true`),
		"completed without result":    replaced(good, `"processing"`, `"completed"`),
		"a run of another project":    replaced(good, `"projectId":1`, `"projectId":2`),
		"an action without a link":    replaced(good, `"nextActions":[]`, `"nextActions":["delete"]`),
		"no version":                  with(good, func(_ *Request, a *Reply) { a.Header.Del("Etag") }),
		"no Retry-After while open":   with(good, func(_ *Request, a *Reply) { a.Header.Del("Retry-After") }),
		"an answer where no route is": with(good, func(r *Request, _ *Reply) { r.Target = "/v1/projects/1/code2wf/" }),
	} {
		if v := judge(make()); len(v.problems) == 0 {
			t.Errorf("%s is not seen", name)
		}
	}
}

func TestPlainRefusalsAreForWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	plain := &Reply{Status: 400, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: []byte("400 Bad Request")}
	if v := judge(&Request{Raw: true}, plain); len(v.problems) > 0 {
		t.Errorf("net/http's own refusal is blamed: %q", v.problems)
	}
	if v := judge(&Request{}, plain); len(v.problems) == 0 {
		t.Error("a plain refusal of a proper request is not seen")
	}
}

package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/web"
)

// order is a body with a member of every type that the suite's bodies use.
type order struct {
	FigmaFileKey *string  `json:"figmaFileKey"`
	Prompt       *string  `json:"prompt"`
	Attempt      *int64   `json:"attempt"`
	Score        *float64 `json:"score"`
	Final        *bool    `json:"final"`
	Manifest     *struct {
		ErrorCode *string `json:"error_code"`
	} `json:"manifest"`
	Tags []string `json:"tags"`
}

const bodyLimit = 4096

// ordering takes an order, checks two of its fields and repeats the prompt.
func ordering() *web.Router {
	rt := web.NewRouter()
	rt.Handle(http.MethodPost, "/orders", func(r *http.Request) (*web.Reply, error) {
		body, err := web.Body[order](r, bodyLimit)
		if err != nil {
			return nil, err
		}
		var fields web.Fields
		fields.Text("/figmaFileKey", body.FigmaFileKey, true, 10)
		prompt := fields.Text("/prompt", body.Prompt, false, 20)
		return &web.Reply{Body: map[string]string{"prompt": prompt}}, fields.Err()
	})
	rt.Handle(http.MethodDelete, "/orders", func(r *http.Request) (*web.Reply, error) {
		return &web.Reply{Status: http.StatusNoContent}, web.EmptyBody(r)
	})
	return rt
}

const (
	none  = "(no fault is listed)"
	whole = "" // the pointer to the whole body
)

// badBodies are all the ways in which a body is refused.
var badBodies = []struct {
	name, body    string
	status        int
	code, pointer string
	says          string // part of the fault's detail, or of the document's where no fault is listed
}{
	{"empty text", " ", 400, "malformed_request", whole, "there is no body"},
	{"nothing", "", 400, "malformed_request", whole, "there is no body"},
	{"null document", "null", 400, "malformed_request", whole, "expected an object, got null"},
	{"array", `[{"figmaFileKey":"a"}]`, 400, "malformed_request", whole, "expected an object, got an array"},
	{"string", `"figmaFileKey"`, 400, "malformed_request", whole, "expected an object, got a string"},
	{"number", "1", 400, "malformed_request", whole, "expected an object, got a number"},
	{"boolean", "true", 400, "malformed_request", whole, "expected an object, got a boolean"},
	{"word", "figmaFileKey", 400, "malformed_request", whole, "got a boolean"},
	{"bare word", "hello", 400, "malformed_request", whole, "not valid JSON at byte 0"},
	{"unfinished", `{"figmaFileKey":"a"`, 400, "malformed_request", whole, "ends too early"},
	{"unfinished string", `{"figmaFileKey":"a`, 400, "malformed_request", "/figmaFileKey", "ends too early"},
	{"trailing comma", `{"figmaFileKey":"a",}`, 400, "malformed_request", whole, "not valid JSON at byte 19"},
	{"comment", `{"figmaFileKey":"a"/**/}`, 400, "malformed_request", whole, "not valid JSON"},
	{"single quotes", `{'figmaFileKey':'a'}`, 400, "malformed_request", whole, "not valid JSON"},
	{"trailing text", `{"figmaFileKey":"a"} x`, 400, "malformed_request", whole, "after top-level value"},
	{"two documents", `{"figmaFileKey":"a"}{"figmaFileKey":"b"}`, 400, "malformed_request", whole, "after top-level value"},
	{"byte order mark", "\uFEFF" + `{"figmaFileKey":"a"}`, 400, "malformed_request", whole, "byte order mark"},
	{"UTF-16", "\xff\xfe{\x00}\x00", 400, "malformed_request", whole, "not valid UTF-8 from byte 0"},
	{"broken UTF-8 in a value", `{"figmaFileKey":"` + "\xff" + `"}`, 400, "malformed_request", whole, "not valid UTF-8 from byte 17"},
	{"broken UTF-8 in a name", `{"` + "\xc3" + `":"a"}`, 400, "malformed_request", whole, "not valid UTF-8 from byte 2"},
	{"surrogate in UTF-8", `{"figmaFileKey":"` + "\xed\xa0\x80" + `"}`, 400, "malformed_request", whole, "not valid UTF-8"},
	{"lone high surrogate", `{"figmaFileKey":"\ud83d"}`, 400, "malformed_request", "/figmaFileKey", "surrogate"},
	{"lone low surrogate", `{"figmaFileKey":"\udc00"}`, 400, "malformed_request", "/figmaFileKey", "surrogate"},
	{"raw newline in a string", "{\"figmaFileKey\":\"a\nb\"}", 400, "malformed_request", "/figmaFileKey", "not valid JSON"},
	{"bad escape", `{"figmaFileKey":"\x41"}`, 400, "malformed_request", "/figmaFileKey", "not valid JSON"},
	{"duplicate member", `{"figmaFileKey":"a","figmaFileKey":"b"}`, 400, "malformed_request", "/figmaFileKey", "more than once"},
	{"duplicate by escape", `{"figmaFileKey":"a","figma\u0046ileKey":"b"}`, 400, "malformed_request", "/figmaFileKey", "more than once"},
	{"duplicate inside", `{"manifest":{"error_code":"a","error_code":"b"}}`, 400, "malformed_request", "/manifest/error_code", "more than once"},
	{"unknown member", `{"figmaFileKey":"a","colour":"red"}`, 400, "malformed_request", "/colour", "allowed are figmaFileKey, prompt, attempt"},
	{"unknown member inside", `{"manifest":{"code":1}}`, 400, "malformed_request", "/manifest/code", "allowed are error_code"},
	{"unknown null member", `{"figmaFileKey":"a","colour":null}`, 400, "malformed_request", "/colour", "unknown member"},
	{"empty name", `{"":"a"}`, 400, "malformed_request", "/", "unknown member \"\""},
	{"name like a pointer", `{"a/b~c":"a"}`, 400, "malformed_request", "/a~1b~0c", "unknown member \"a/b~c\""},
	{"server-owned member", `{"figmaFileKey":"a","createdBy":"me"}`, 400, "malformed_request", "/createdBy", "unknown member"},
	{"prototype", `{"__proto__":{"figmaFileKey":"a"}}`, 400, "malformed_request", "/__proto__", "unknown member"},
	{"lower case", `{"figmafilekey":"a"}`, 400, "malformed_request", "/figmafilekey", `did you mean "figmaFileKey"?`},
	{"upper case", `{"PROMPT":"a"}`, 400, "malformed_request", "/PROMPT", `did you mean "prompt"?`},
	{"snake case", `{"figma_file_key":"a"}`, 400, "malformed_request", "/figma_file_key", `did you mean "figmaFileKey"?`},
	{"folded letter", `{"tagſ":[]}`, 400, "malformed_request", "/tagſ", `did you mean "tags"?`},
	{"endless name", `{"` + strings.Repeat("n", 2000) + `":1}`, 400, "malformed_request", whole, "unknown member"},
	{"number for a string", `{"figmaFileKey":12}`, 400, "malformed_request", "/figmaFileKey", "expected a string, got a number"},
	{"object for a string", `{"figmaFileKey":{}}`, 400, "malformed_request", "/figmaFileKey", "expected a string, got an object"},
	{"array for a string", `{"figmaFileKey":["a"]}`, 400, "malformed_request", "/figmaFileKey", "expected a string, got an array"},
	{"string for a number", `{"attempt":"1"}`, 400, "malformed_request", "/attempt", "expected a whole number, got a string"},
	{"fraction", `{"attempt":1.5}`, 400, "malformed_request", "/attempt", "expected a whole number, got 1.5"},
	{"exponent", `{"attempt":1e2}`, 400, "malformed_request", "/attempt", "expected a whole number, got 1e2"},
	{"whole number too large", `{"attempt":9223372036854775808}`, 400, "malformed_request", "/attempt", "out of range"},
	{"float too large", `{"score":1e400}`, 400, "malformed_request", "/score", "out of range"},
	{"NaN", `{"score":NaN}`, 400, "malformed_request", "/score", "not valid JSON"},
	{"infinity", `{"score":-Infinity}`, 400, "malformed_request", "/score", "not valid JSON"},
	{"leading zero", `{"attempt":01}`, 400, "malformed_request", whole, "not valid JSON"},
	{"plus sign", `{"attempt":+1}`, 400, "malformed_request", "/attempt", "not valid JSON"},
	{"string for a boolean", `{"final":"true"}`, 400, "malformed_request", "/final", "expected true or false, got a string"},
	{"array for an object", `{"manifest":[]}`, 400, "malformed_request", "/manifest", "expected an object, got an array"},
	{"object for an array", `{"tags":{}}`, 400, "malformed_request", "/tags", "expected an array, got an object"},
	{"number in an array", `{"tags":["a",1]}`, 400, "malformed_request", "/tags/1", "expected a string, got a number"},
	{"too deep", `{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, 400, "malformed_request", whole, "deeper than 32"},
	{"deep bomb", strings.Repeat(`{"a":`, 800), 400, "malformed_request", whole, "deeper than 32"},
	{"deep enough", `{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`, 400, "malformed_request", "/x", "unknown member"},
	{"too large", `{"prompt":"` + strings.Repeat("a", bodyLimit) + `"}`, 413, "payload_too_large", none, "4096 bytes"},
	{"required absent", `{"prompt":"a"}`, 422, "invalid_field", "/figmaFileKey", "is required"},
	{"required null", `{"figmaFileKey":null}`, 422, "invalid_field", "/figmaFileKey", "is required"},
	{"required empty", `{"figmaFileKey":""}`, 422, "invalid_field", "/figmaFileKey", "must not be empty"},
	{"NUL", `{"figmaFileKey":"a\u0000b"}`, 422, "invalid_field", "/figmaFileKey", "NUL"},
	{"one too long", `{"figmaFileKey":"12345678901"}`, 422, "invalid_field", "/figmaFileKey", "11 characters long; at most 10"},
	{"trailing spaces count", `{"figmaFileKey":"1234567890 "}`, 422, "invalid_field", "/figmaFileKey", "11 characters long"},
	{"combining marks count", `{"figmaFileKey":"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"}`, 422, "invalid_field", "/figmaFileKey", "12 characters long"},
}

func TestBodyRefusesWhatIsNotStrictJSON(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	for _, c := range badBodies {
		t.Run(c.name, func(t *testing.T) {
			got := s.send(t, http.MethodPost, "/orders", c.body, "Content-Type: application/json")
			p := got.problem(t)
			pointer, detail := none, p.Detail
			if len(p.Errors) > 0 {
				pointer, detail = *p.Errors[0].Pointer, p.Errors[0].Detail
			}
			if p.Status != c.status || p.Code != c.code || pointer != c.pointer || !strings.Contains(detail, c.says) {
				t.Errorf("got %d %s at %q: %s\nwant %d %s at %q: …%s…", p.Status, p.Code, pointer, detail, c.status, c.code, c.pointer, c.says)
			}
			if len(got.body) > 800 {
				t.Errorf("a refusal of %d bytes repeats too much", len(got.body))
			}
		})
	}
}

// What a designer may call a layer: everything but NUL, to the last byte.
func TestBodyKeepsEveryOtherTextExactly(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	for escaped, want := range map[string]string{
		`a\bb`: "a\bb", `\u2028`: "\u2028", `\uffff`: "\uffff", `  a  `: "  a  ", ` `: " ", `\u001f\u007f`: "\x1f\x7f", `😀`: "😀",
		`\ud83d\ude00`: "😀", "e\u0301": "e\u0301", `<b>&amp;</b>`: "<b>&amp;</b>", `\u202e`: "\u202e", `漢字`: "漢字", "": "",
		strings.Repeat("😀", 20): strings.Repeat("😀", 20),
	} {
		got := s.send(t, http.MethodPost, "/orders", `{"figmaFileKey":"1234567890","prompt":"`+escaped+`"}`, "Content-Type: application/json")
		var reply struct{ Prompt string }
		read(t, got, &reply)
		if reply.Prompt != want {
			t.Errorf("%q came back as %q", want, reply.Prompt)
		}
	}
}

func TestNullIsAbsentForOptionalMembers(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	const body = `{"figmaFileKey":"a","prompt":null,"attempt":null,"score":null,"final":null,"manifest":null,"tags":null}`
	if got := s.send(t, http.MethodPost, "/orders", body, "Content-Type: application/json"); got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

func TestFieldsReportsAllProblemsAtOnce(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	got := s.send(t, http.MethodPost, "/orders", `{"prompt":"`+strings.Repeat("a", 21)+`"}`, "Content-Type: application/json")
	first, second := "/figmaFileKey", "/prompt"
	want := []fault{
		{Pointer: &first, Detail: "is required"},
		{Pointer: &second, Detail: "is 21 characters long; at most 20 are allowed"},
	}
	if diff := cmp.Diff(want, got.problem(t).Errors); diff != "" {
		t.Error(diff)
	}
}

func TestBodyTakesPlainJSONOnly(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"Content-Type: application/json"}, 200},
		{[]string{"Content-Type: Application/JSON; Charset=UTF-8"}, 200},
		{[]string{`Content-Type: application/json;charset="utf-8"`}, 200},
		{nil, 415},
		{[]string{"Content-Type: "}, 415},
		{[]string{"Content-Type: text/plain"}, 415},
		{[]string{"Content-Type: application/jsonp"}, 415},
		{[]string{"Content-Type: application/merge-patch+json"}, 415},
		{[]string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{[]string{"Content-Type: application/json; charset=utf-16"}, 415},
		{[]string{"Content-Type: application/json; charset=utf-8; version=2"}, 415},
		{[]string{"Content-Type: application/json; charset"}, 415},
		{[]string{"Content-Type: application/json, application/json"}, 415},
		{[]string{"Content-Type: application/json", "Content-Type: application/json"}, 415},
		{[]string{"Content-Type: application/json", "Content-Encoding: gzip"}, 415},
		{[]string{"Content-Type: application/json", "Content-Encoding: identity"}, 415},
	} {
		got := s.send(t, http.MethodPost, "/orders", `{"figmaFileKey":"a"}`, c.header...)
		if got.StatusCode != c.want {
			t.Errorf("%q: got %d, want %d", c.header, got.StatusCode, c.want)
		}
		if c.want == 415 && got.problem(t).Code != "unsupported_media_type" {
			t.Errorf("%q: %s", c.header, got.body)
		}
	}
}

// A length that is not announced is bounded as well: the second megabyte is never waited for.
func TestBodyBoundsWhatIsChunked(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	source, sink := io.Pipe()
	defer source.Close()
	go func() {
		_, err := io.WriteString(sink, `{"figmaFileKey":"`+strings.Repeat("a", bodyLimit))
		_ = sink.CloseWithError(err)
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/orders", io.MultiReader(source, neverEnding{t.Context().Done()}))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if p := s.do(t, req).problem(t); p.Status != 413 {
		t.Errorf("%+v", p)
	}
}

// neverEnding is a body that has no more bytes and does not say so.
type neverEnding struct{ done <-chan struct{} }

func (n neverEnding) Read([]byte) (int, error) { <-n.done; return 0, io.EOF }

// A length that is announced is believed: not one byte is read.
func TestBodyRefusesAnAnnouncedLengthUnread(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	got := s.raw(t, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10737418240\r\n\r\n{}")
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "Connection: close") {
		t.Errorf("got %q", got)
	}
}

func TestBodyThatIsShorterThanAnnouncedIsMalformed(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	got := s.raw(t, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{}")
	if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, `"malformed_request"`) {
		t.Errorf("got %q", got)
	}
}

func TestEmptyBodyTakesNothingOrAnEmptyObject(t *testing.T) {
	s := serve(t, ordering(), web.Options{})
	for body, want := range map[string]int{"": 204, "{}": 204, " { } ": 204, "[]": 400, "null": 400, `{"a":1}`: 400, " ": 400, "{}{}": 400} {
		if got := s.send(t, http.MethodDelete, "/orders", body, "Content-Type: application/json"); got.StatusCode != want {
			t.Errorf("%q: got %d, want %d: %s", body, got.StatusCode, want, got.body)
		}
	}
	if got := s.send(t, http.MethodDelete, "/orders", ""); got.StatusCode != 204 {
		t.Errorf("no body and no Content-Type: %d", got.StatusCode)
	}
	if got := s.send(t, http.MethodDelete, "/orders", "{}"); got.StatusCode != 415 {
		t.Errorf("a body without a Content-Type: %d", got.StatusCode)
	}
}

package servicetest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// strangeBodies are not the JSON object of any endpoint.
var strangeBodies = []string{
	"null", "[]", `[{}]`, `""`, "1", "true", "x", "{", "}", "{}{}", "{} x", "{},", "\ufeff{}", "{/**/}", "{'a':1}", `{"a":1,}`, `{"a":NaN}`, `{"a":01}`,
	`{"x":1}`, `{"x":null}`, `{"":1}`, `{"__proto__":{}}`, `{"a":1,"a":1}`, `{"ſtatuſ":"1"}`, "{\"\xff\":1}", "{\"a\":\"\xed\xa0\x80\"}", `{"a":"\ud800"}`,
	"{\"a\":\"\n\"}", "\xff\xfe{\x00}\x00", "{\x00}", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), strings.Repeat("[", 1000),
	`{"status":"1"}`, `{"STATUS":"completed"}`, `{"phase":"2"}`, `{"id":"x"}`, `{"organizationId":2}`, `{"organization_id":2}`, `{"createdBy":"x"}`,
	`{"deletedAt":null}`, `{"updatedAt":"2026-01-31T08:30:00Z"}`, `{"materializedAt":"now"}`, `{"triggerSurface":"api"}`, `{"trigger_surface":"0"}`,
}

// strangeTypes are headers, pairs of name and value, under which no body is read.
var strangeTypes = [][]string{
	{"Content-Type", ""}, {"Content-Type", "text/plain"}, {"Content-Type", "text/json"}, {"Content-Type", "application/jsonp"}, {"Content-Type", "*/*"},
	{"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Type", "multipart/form-data; boundary=x"}, {"Content-Type", "application/xml"},
	{"Content-Type", "application/merge-patch+json"}, {"Content-Type", "application/json; charset=utf-16"}, {"Content-Type", "application/json; charset=shift_jis"},
	{"Content-Type", "application/json, text/plain"}, {"Content-Type", "application/json; v=2"}, {"Content-Encoding", "gzip"}, {"Content-Encoding", "br"},
	{"Content-Encoding", "identity"},
}

// bodies checks that a body which is not strict JSON, of another type or too long is refused before anything is done.
func (d door) bodies(t *testing.T) {
	if !changes(d.method) {
		return
	}
	good := d.Endpoint.body(d.World, d.method, d.id)
	if good == "" { // nothing need be said
		good = "{}"
	}
	before := d.Content(t)
	for _, body := range strangeBodies {
		d.ask(t, d.good(), body).Refused(t, http.StatusBadRequest, "malformed_request")
	}
	for _, headers := range strangeTypes {
		d.ask(t, d.good(), good, headers...).Refused(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	long := good[:len(good)-1] + strings.Repeat(" ", 300<<10) + "}"
	d.ask(t, d.good(), long).Refused(t, http.StatusRequestEntityTooLarge, "payload_too_large")
	if diff := cmp.Diff(before, d.Content(t)); diff != "" {
		t.Errorf("a refused body changed something: %s", diff)
	}
}

package servicetest

import (
	"encoding/json/v2"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"framerun.dev/pkg/web"
)

// Client sends requests to one service.
type Client struct {
	URL  string
	HTTP *http.Client
	Log  *Log // of the service, unless the test has given it a logger of its own

	routes []web.Route // what the service answers, if that is known
	cors   bool
}

// A redirect would be followed as a GET; here it is an answer like any other, which no test expects.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Reply is an answer that was read to its end.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Request makes a request as the principal. A body that is not empty is application/json unless the headers, pairs of name and
// value, say otherwise; an empty value takes a header away.
func (c *Client) Request(t testing.TB, method, path string, as Principal, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if as.Token != "" {
		r.Header.Set("Authorization", "Bearer "+as.Token)
	}
	maps.Copy(r.Header, as.sign(t, body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// Send sends a request, see Request, and reads the answer. Every answer must have the suite's manners.
func (c *Client) Send(t testing.TB, method, path string, as Principal, body string, headers ...string) Reply {
	t.Helper()
	reply, err := c.Try(c.Request(t, method, path, as, body, headers...))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	c.manners(t, method+" "+path, reply)
	return reply
}

// Try is Send for goroutines, which may not end the test.
func (c *Client) Try(r *http.Request) (Reply, error) {
	response, err := c.HTTP.Do(r)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, response.Header, string(body)}, err
}

// manners are what every answer has, good or bad.
func (c *Client) manners(t testing.TB, asked string, reply Reply) {
	t.Helper()
	if reply.Header.Get("X-Request-Id") == "" || reply.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: an answer without the suite's headers: %v", asked, reply.Header)
	}
	if origin := reply.Header.Get("Access-Control-Allow-Origin"); (origin == "*") != c.cors {
		t.Errorf("%s: Access-Control-Allow-Origin is %q", asked, origin)
	}
	if reply.Status >= 300 && reply.Status < 400 && reply.Status != http.StatusNotModified {
		t.Errorf("%s: a redirect, %d to %q", asked, reply.Status, reply.Header.Get("Location"))
	}
}

// JSON is the body as a JSON object.
func (r Reply) JSON(t testing.TB) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(r.Body), &object); err != nil {
		t.Fatalf("the answer %d %q is no JSON object: %v", r.Status, r.Body, err)
	}
	return object
}

// Refused checks that the reply is the problem document (RFC 9457) of code with the HTTP status, and returns it.
func (r Reply) Refused(t testing.TB, status int, code string) map[string]any {
	t.Helper()
	if r.Status != status || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("got %d %s %s; want %d %s", r.Status, r.Header.Get("Content-Type"), r.Body, status, code)
	}
	p := r.JSON(t)
	if p["code"] != code || p["type"] != "/problems/"+code || p["status"] != float64(status) || p["requestId"] != r.Header.Get("X-Request-Id") {
		t.Fatalf("got the problem %s; want %d %s", r.Body, status, code)
	}
	return p
}

// Faults are the pointers and parameters of a problem's errors, in their order.
func Faults(problem map[string]any) []string {
	var faults []string
	list, _ := problem["errors"].([]any)
	for _, each := range list {
		fault, _ := each.(map[string]any)
		if pointer, ok := fault["pointer"].(string); ok {
			faults = append(faults, pointer)
			continue
		}
		parameter, _ := fault["parameter"].(string)
		faults = append(faults, parameter)
	}
	return faults
}

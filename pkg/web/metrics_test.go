package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"framerun.dev/pkg/web"
)

func TestMetricsKnowRoutesAndFixedWordsOnly(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/v1/things/{id}", say(&web.Reply{Body: 1}))
	s := serve(t, rt, web.Options{})
	s.send(t, http.MethodGet, "/v1/things/1", "")
	s.send(t, http.MethodGet, "/v1/things/2", "")
	s.send(t, "BREW", "/v1/things/2", "")
	s.send(t, http.MethodGet, "/nowhere/%ff", "")
	s.send(t, http.MethodOptions, "/nowhere", "", "Access-Control-Request-Method: GET")
	s.raw(t, "GET /\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	s.log.line(t, 5) // the counting is done

	const want = `
# HELP framerun_http_requests_total Requests answered, by status code; 499: the client had gone.
# TYPE framerun_http_requests_total counter
framerun_http_requests_total{code="200",method="GET",route="/v1/things/{id}",service="test"} 2
framerun_http_requests_total{code="204",method="OPTIONS",route="preflight",service="test"} 1
framerun_http_requests_total{code="404",method="GET",route="unmatched",service="test"} 2
framerun_http_requests_total{code="405",method="other",route="unmatched",service="test"} 1
# HELP framerun_http_requests_in_flight Requests being answered.
# TYPE framerun_http_requests_in_flight gauge
framerun_http_requests_in_flight{service="test"} 0
`
	if err := testutil.GatherAndCompare(s.metrics, strings.NewReader(want), "framerun_http_requests_total", "framerun_http_requests_in_flight"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(s.metrics, "framerun_http_request_duration_seconds"); n != 4 || err != nil {
		t.Errorf("%d histograms, %v", n, err)
	}
}

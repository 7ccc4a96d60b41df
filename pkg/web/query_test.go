package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/web"
)

func TestQueryReadsAllOrRefuses(t *testing.T) {
	for _, c := range []struct {
		query string
		want  url.Values
	}{
		{"", url.Values{}},
		{"&", url.Values{}},
		{"limit=5", url.Values{"limit": {"5"}}},
		{"limit", url.Values{"limit": {""}}},
		{"limit=&status=open", url.Values{"limit": {""}, "status": {"open"}}},
		{"status=a%3Bb%26c%3D%2B+d=e", url.Values{"status": {"a;b&c=+ d=e"}}},
		{"%73tatus=%E6%BC%A2", url.Values{"status": {"漢"}}},
	} {
		r := &http.Request{URL: &url.URL{RawQuery: c.query}}
		got, err := web.Query(r, "limit", "status")
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", c.query, err, diff)
		}
	}
}

func TestQueryNamesWhatItRefuses(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/list", func(r *http.Request) (*web.Reply, error) {
		_, err := web.Query(r, "limit", "status")
		return &web.Reply{}, err
	})
	rt.Handle(http.MethodGet, "/none", func(r *http.Request) (*web.Reply, error) {
		_, err := web.Query(r)
		return &web.Reply{}, err
	})
	s := serve(t, rt, web.Options{})
	for _, c := range []struct{ path, parameter, says string }{
		{"/list?limit=1;status=a", "limit", "semicolon"},
		{"/list?limit=1&status=%zz", "status", "percent escape"},
		{"/list?status=%e6%bc", "status", "UTF-8"},
		{"/list?status=a%00", "status", "NUL"},
		{"/list?limit=1&limit=1", "limit", "more than once"},
		{"/list?limit=1&%6cimit=2", "%6cimit", "more than once"},
		{"/list?Limit=1", "Limit", "allowed are limit, status"},
		{"/list?access_token=secret", "access_token", "unknown parameter"},
		{"/list?status[]=a", "status[]", "unknown parameter"},
		{"/list?=1", "query", "unknown parameter"},
		{"/list?/a=1", "query", "unknown parameter"},
		{"/list?" + strings.Repeat("n", 500) + "=1", "query", "unknown parameter"},
		{"/none?limit=1", "limit", "none is taken here"},
	} {
		got := s.send(t, http.MethodGet, c.path, "")
		p := got.problem(t)
		if p.Status != 400 || len(p.Errors) != 1 || p.Errors[0].Pointer != nil || p.Errors[0].Parameter != c.parameter ||
			!strings.Contains(p.Errors[0].Detail, c.says) {
			t.Errorf("%.60s: %s", c.path, got.body)
		}
		if strings.Contains(got.body, "secret") {
			t.Errorf("%s: a value was repeated: %s", c.path, got.body)
		}
	}
}

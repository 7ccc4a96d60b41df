package web

import (
	"maps"
	"net/http"
)

// hardened sets what suits an API whose answers are data: never sniffed, never cached unless a Reply says otherwise, never
// shown as a page.
func hardened(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), hard)
		next.ServeHTTP(w, r)
	})
}

// hard and shared are copied into every answer. Their values are nobody's to write to.
var (
	hard = http.Header{
		"X-Content-Type-Options":  {"nosniff"},
		"Cache-Control":           {"no-store"},
		"Referrer-Policy":         {"no-referrer"},
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	}
	shared = http.Header{
		"Access-Control-Allow-Origin":   {"*"},
		"Access-Control-Expose-Headers": {corsExposed},
	}
)

const (
	corsMethods = "GET, HEAD, POST, DELETE, OPTIONS"
	corsAllowed = "Authorization, Content-Type, If-None-Match, Idempotency-Key, Prefer, Last-Event-ID, X-Request-Id, traceparent"
	corsExposed = "ETag, Location, Retry-After, X-Request-Id, Preference-Applied, Idempotent-Replayed, Link"
	corsMaxAge  = "7200" // seconds; the most that Chromium keeps
)

// cors lets any page read every answer, errors too, because the plugin's iframe has the origin `null`. No credentials are
// involved: who calls is said by the bearer token, which a foreign page does not have. A preflight carries no token, so it is
// answered for every path before anybody asks who is there.
func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			maps.Copy(h, shared)
			next.ServeHTTP(w, r)
			return
		}
		exchangeOf(r.Context()).route = "preflight"
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", corsAllowed)
		h.Set("Access-Control-Max-Age", corsMaxAge)
		w.WriteHeader(http.StatusNoContent)
	})
}

package s3

import "net/http"

// allowOrigin lets any page read an answer: presigned links are fetched from
// plugin iframes, whose origin is "null", and a link's signature is all the
// authority it needs.
func allowOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "ETag, Content-Length, Content-Range, Accept-Ranges, Last-Modified, x-amz-request-id")
}

// answerPreflight allows browsers to read and nothing else, as the bucket's
// rule in production does.
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	method := r.Header.Get("Access-Control-Request-Method")
	if method != http.MethodGet && method != http.MethodHead {
		writeError(w, r, refuse(http.StatusForbidden, "AccessForbidden", "CORSResponse: This CORS request is not allowed."))
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "3000")
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Add("Vary", "Access-Control-Request-Method")
}

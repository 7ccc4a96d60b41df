// Package web is for speaking HTTP in one way in all services: every answer, good or bad, from a handler or from the router,
// has the same shape, the same headers and one line in the log.
//
// A service registers its handlers on a Router and serves Wrap(router, options). A Handler reads its input with Body, Query,
// ProjectID and RunID and returns a Reply or an error; problem.go alone knows which status an error deserves.
package web

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

// Handler answers one request with a Reply or with an error, never with both. It writes nothing by itself, so that no answer
// can be half good and half a problem document.
type Handler func(r *http.Request) (*Reply, error)

// Reply is a good answer.
type Reply struct {
	Status int         // 0 stands for 200
	Header http.Header // replaces the headers that Wrap has set; may be nil
	Body   any         // rendered as JSON, a jsontext.Value as it is; nil sends none

	// Stream takes the connection over once Header is set, for Server-Sent Events; Status and Body are then not used.
	// The server's write deadline still holds: a stream that outlives it moves it with http.NewResponseController(w).
	// Until its first byte an error becomes a problem document, after it only a word in the log.
	Stream func(w http.ResponseWriter, r *http.Request) error
}

// ServeHTTP lets a Handler stand wherever an http.Handler can.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply, err := h(r)
	if err == nil {
		err = reply.write(w, r)
	}
	if err != nil {
		WriteProblem(w, r, err)
	}
}

// write renders the body before it touches w: a value that JSON cannot hold still becomes a clean 500.
func (p *Reply) write(w http.ResponseWriter, r *http.Request) error {
	if p.Stream != nil {
		maps.Copy(w.Header(), p.Header)
		return p.Stream(w, r)
	}
	status := cmp.Or(p.Status, http.StatusOK)
	if p.Body == nil || status == http.StatusNoContent || status == http.StatusNotModified {
		maps.Copy(w.Header(), p.Header)
		w.WriteHeader(status)
		return nil
	}
	body, rendered := p.Body.(jsontext.Value)
	if !rendered {
		var err error
		if body, err = json.Marshal(p.Body, json.Deterministic(true)); err != nil {
			return fmt.Errorf("web: rendering the reply: %w", err)
		}
	}
	maps.Copy(w.Header(), p.Header)
	send(w, r, status, "application/json", body)
	return nil
}

// send writes a whole body, or for HEAD only what its headers would have been. A failing write means that the client has gone:
// there is nobody left to tell.
func send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

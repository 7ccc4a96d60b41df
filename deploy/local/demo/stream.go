package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// stream reads Server-Sent Events.
type stream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
}

// event is one that a run's stream tells: "run" with the whole resource, or "progress".
type event struct{ name, data string }

const longestLine = 1 << 20 // a resource with its prompt is far shorter

// listen opens the run's stream.
func (r *run) listen(ctx context.Context) (*stream, error) {
	path := r.now.Links["self"]
	resp, err := r.d.plugin.open(ctx, "GET", path, nil, "Accept", "text/event-stream")
	if err != nil {
		return nil, err
	}
	if media := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		resp.Body.Close()
		return nil, surprise("GET "+path, "200 text/event-stream", resp.Status+" "+media)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, longestLine)
	return &stream{body: resp.Body, lines: lines}, nil
}

// next waits for the next event; comments, which only show that the stream lives, are passed over.
func (s *stream) next() (event, error) {
	var e event
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case field == "event":
			e.name = value
		case field == "data":
			e.data = value
		case field == "" && e.data != "":
			return e, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return e, err
	}
	return e, fmt.Errorf("the stream: %w", io.ErrUnexpectedEOF)
}

package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
	"uuid"

	"github.com/gorilla/mux"

	"framerun.dev/pkg/lifecycle"
)

// ProjectID is the path value {projectId}. Anything but a positive 64-bit number in its one decimal spelling names no project:
// lifecycle.ErrNotFound.
func ProjectID(r *http.Request) (int64, error) {
	text := mux.Vars(r)["projectId"]
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, lifecycle.ErrNotFound
	}
	return id, nil
}

// RunID is the path value {id}. Every run has a UUIDv7 in canonical lower case, so anything else names no run:
// lifecycle.ErrNotFound.
func RunID(r *http.Request) (string, error) {
	text := mux.Vars(r)["id"]
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text || id[6]>>4 != 7 || id[8]>>6 != 0b10 {
		return "", lifecycle.ErrNotFound
	}
	return text, nil
}

// RunPath is where a run is found, for Location and links.
func RunPath(run lifecycle.Run) string {
	return fmt.Sprintf("/v1/projects/%d/%s/%s", run.ProjectID, run.Kind, run.ID)
}

// Timestamp is how times stand on the wire: RFC 3339 in UTC with all six digits that PostgreSQL keeps.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

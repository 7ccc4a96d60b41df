package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"uuid"
)

// refusal is an error as S3 words it.
type refusal struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string
	RequestID string `xml:"RequestId"`

	status int
}

func (e *refusal) Error() string { return e.Code + ": " + e.Message }

func refuse(status int, code, message string) *refusal {
	return &refusal{Code: code, Message: message, status: status}
}

func denied(message string) *refusal {
	return refuse(http.StatusForbidden, "AccessDenied", message)
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		e = refuse(http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
	}
	e.Resource = r.URL.Path
	e.RequestID = uuid.New().String()
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("x-amz-request-id", e.RequestID)
	w.WriteHeader(e.status)
	// A client that does not stay for its error loses nothing by it.
	_, _ = w.Write([]byte(xml.Header))
	_ = xml.NewEncoder(w).Encode(e)
}

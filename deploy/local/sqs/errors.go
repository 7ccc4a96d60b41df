package sqs

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
)

// apiError is a refusal in SQS' own terms. Its code is the JSON protocol's
// name, which the SDK turns into a type.
type apiError struct {
	code    string
	message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func refuse(code, format string, args ...any) *apiError {
	return &apiError{code, fmt.Sprintf(format, args...)}
}

func invalid(parameter string, value any, reason string) *apiError {
	return refuse("InvalidParameterValue", "Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

// queryCodes are the names that the older query protocol gave to the same
// errors. SQS still sends them in x-amzn-query-error, and the SDK shows them
// as the error's code. Errors not listed have one name only.
var queryCodes = map[string]string{
	"BatchEntryIdsNotDistinct":     "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
	"BatchRequestTooLong":          "AWS.SimpleQueueService.BatchRequestTooLong",
	"EmptyBatchRequest":            "AWS.SimpleQueueService.EmptyBatchRequest",
	"InvalidBatchEntryId":          "AWS.SimpleQueueService.InvalidBatchEntryId",
	"MessageNotInflight":           "AWS.SimpleQueueService.MessageNotInflight",
	"QueueDoesNotExist":            "AWS.SimpleQueueService.NonExistentQueue",
	"QueueNameExists":              "QueueAlreadyExists",
	"TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
	"UnsupportedOperation":         "AWS.SimpleQueueService.UnsupportedOperation",
}

// receiverStatus holds the errors that are the server's own fault, with their
// HTTP status; every other error is the caller's and 400.
var receiverStatus = map[string]int{
	"InternalFailure":    http.StatusInternalServerError,
	"ServiceUnavailable": http.StatusServiceUnavailable,
}

func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = refuse("InternalFailure", "%v", err)
	}
	code, status, fault := e.code, http.StatusBadRequest, "Sender"
	if old, ok := queryCodes[e.code]; ok {
		code = old
	}
	if s, ok := receiverStatus[e.code]; ok {
		status, fault = s, "Receiver"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("x-amzn-query-error", code+";"+fault)
	w.WriteHeader(status)
	// A client that does not stay for its error loses nothing by it.
	_ = json.MarshalWrite(w, map[string]string{"__type": "com.amazonaws.sqs#" + e.code, "message": e.message})
}

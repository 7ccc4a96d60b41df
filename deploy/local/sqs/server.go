// Package sqs stands in for Amazon SQS on one machine and in tests, so that
// the suite's queue code runs through the real SDK without an AWS account.
//
// It speaks the AWS JSON 1.0 protocol and keeps standard queues in memory:
// batches, long polling, visibility timeouts, delays, receive counts, redrive
// to a dead-letter queue, checksums and the errors that the SDK turns into
// types. Two things are its own: [Server.SetFaults] makes it misbehave as SQS
// can, and [Server.Log] remembers every message it ever accepted.
//
// Not here: FIFO queues, policies, encryption, tags, the minute of rest that
// SQS demands after a purge or a deletion, and any look at signatures.
package sqs

import (
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"uuid"
)

const (
	contentType = "application/x-amz-json-1.0"

	// requestLimit bounds what is read of one request, in bytes: a batch of
	// 1 MiB in which every byte arrives as a six-byte JSON escape fits.
	requestLimit = 8 << 20
)

// Config says under which names the queues are known.
type Config struct {
	// Endpoint begins every queue URL, e.g. "http://127.0.0.1:18090". Required.
	Endpoint string
	// Region is named in queue ARNs; "us-east-1" when empty.
	Region string
	// AccountID is named in queue ARNs and URLs; "000000000000" when empty.
	AccountID string
}

// Server is the stand-in, an [http.Handler] for the SQS endpoint. All methods
// may be called at once from many goroutines.
type Server struct {
	config Config
	faults faults
	done   chan struct{}
	close  func()

	mu       sync.Mutex
	queues   map[string]*queue
	accepted []Message
	sequence uint64
}

// New gives a server without queues.
func New(c Config) *Server {
	c.Endpoint = strings.TrimSuffix(c.Endpoint, "/")
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.AccountID == "" {
		c.AccountID = "000000000000"
	}
	s := &Server{config: c, queues: map[string]*queue{}, done: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.done) })
	s.faults.changed = make(chan struct{})
	return s
}

// Close answers all waiting polls at once, so that the HTTP server around it
// can shut down without sitting out their time. It may be called repeatedly.
func (s *Server) Close() { s.close() }

// ServeHTTP reads the whole body before anything else: net/http notices that
// a client hung up only after that, and a poller that is gone must not be
// handed a message.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-amzn-RequestId", uuid.New().String())
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
	if err != nil {
		writeError(w, refuse("RequestEntityTooLarge", "The request could not be read: %v", err))
		return
	}
	name := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	if err := s.admit(r.Context(), name); err != nil {
		writeError(w, err)
		return
	}
	out, err := s.perform(r.Context(), name, body)
	switch {
	case err != nil:
		writeError(w, err)
	case s.faults.spendReset(name):
		reset(w)
	default:
		write(w, r, out)
	}
}

// operations are the calls that SQS names in X-Amz-Target.
var operations = map[string]operation{
	"CreateQueue":                  does((*Server).createQueue),
	"DeleteQueue":                  does((*Server).deleteQueue),
	"GetQueueUrl":                  does((*Server).queueURL),
	"ListQueues":                   does((*Server).listQueues),
	"GetQueueAttributes":           does((*Server).queueAttributes),
	"SetQueueAttributes":           does((*Server).setQueueAttributes),
	"PurgeQueue":                   does((*Server).purgeQueue),
	"SendMessage":                  does((*Server).sendMessage),
	"SendMessageBatch":             does((*Server).sendMessageBatch),
	"ReceiveMessage":               does((*Server).receiveMessage),
	"DeleteMessage":                does((*Server).deleteMessage),
	"DeleteMessageBatch":           does((*Server).deleteMessageBatch),
	"ChangeMessageVisibility":      does((*Server).changeVisibility),
	"ChangeMessageVisibilityBatch": does((*Server).changeVisibilityBatch),
}

type operation func(s *Server, ctx context.Context, body []byte) (any, error)

// empty is the answer of the operations that have nothing to say.
type empty struct{}

func does[In, Out any](do func(*Server, context.Context, In) (Out, error)) operation {
	return func(s *Server, ctx context.Context, body []byte) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, refuse("SerializationException", "The request is not what the operation takes: %v", err)
		}
		return do(s, ctx, in)
	}
}

func (s *Server) perform(ctx context.Context, name string, body []byte) (any, error) {
	do, ok := operations[name]
	if !ok {
		return nil, refuse("UnknownOperationException", "The operation %q is not known.", name)
	}
	return do(s, ctx, body)
}

// returnable is an answer that holds something of value, to be taken back
// when the client is not there to have it.
type returnable interface{ takeBack() }

// write answers in one piece and with its length, as SQS does: the SDK takes
// an answer whose end comes late for a broken one, and asks again.
func write(w http.ResponseWriter, r *http.Request, out any) {
	body, err := json.Marshal(out)
	if err == nil {
		err = r.Context().Err()
	}
	if err == nil {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, err = w.Write(body)
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if held, ok := out.(returnable); ok && err != nil && !errors.Is(err, errors.ErrUnsupported) {
		held.takeBack()
	}
}

// Package s3 stands in for Amazon S3 on one machine and in tests, so that
// artifacts and presigned links go through the real SDK without an AWS
// account.
//
// gofakes3 keeps the objects, in memory. In front of it stands what it lacks
// and what links depend on: the check of every signature, in headers and in
// presigned links, and the expiry of links. Browsers may read from any origin.
package s3

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Config says who may call and which buckets there are.
type Config struct {
	// AccessKeyID and SecretAccessKey are the one known pair. Required.
	AccessKeyID, SecretAccessKey string
	// Region is the one that requests must be signed for; "us-east-1" when empty.
	Region string
	// Buckets exist from the start.
	Buckets []string
	// Now is the server's clock; time.Now when nil.
	Now func() time.Time
}

// Server is the stand-in, an [http.Handler] for the S3 endpoint with the
// bucket in the path. All methods may be called at once.
type Server struct {
	objects     http.Handler
	signer      *v4.Signer
	credentials aws.Credentials
	region      string
	now         func() time.Time
}

// New gives a server whose buckets are empty. It is an error when there is no
// key pair or when a bucket's name is not one that S3 allows.
func New(c Config) (*Server, error) {
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return nil, errors.New("s3: no key pair: every request would have to be refused")
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	memory := s3mem.New(s3mem.WithTimeSource(clock(c.Now)))
	for _, name := range c.Buckets {
		if err := gofakes3.ValidateBucketName(name); err != nil {
			return nil, fmt.Errorf("s3: bucket name %q: %w", name, err)
		}
		if err := memory.CreateBucket(name); err != nil {
			return nil, fmt.Errorf("s3: creating bucket %q: %w", name, err)
		}
	}
	return &Server{
		objects:     gofakes3.New(memory, gofakes3.WithTimeSource(clock(c.Now))).Server(),
		signer:      v4.NewSigner(plain),
		credentials: aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey},
		region:      c.Region,
		now:         c.Now,
	}, nil
}

// clock makes gofakes3 tell the time as the server does.
type clock func() time.Time

func (c clock) Now() time.Time                  { return c() }
func (c clock) Since(t time.Time) time.Duration { return c().Sub(t) }

// ServeHTTP lets signed requests through to the objects.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	allowOrigin(w.Header())
	if r.Method == http.MethodOptions {
		answerPreflight(w, r)
		return
	}
	if err := s.verify(r); err != nil {
		writeError(w, r, err)
		return
	}
	s.objects.ServeHTTP(w, r)
}

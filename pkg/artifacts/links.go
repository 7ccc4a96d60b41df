package artifacts

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Links makes presigned links to artifacts. Making one asks nobody: S3 checks it when it is used.
type Links struct {
	Client *s3.Client
	Bucket string
	Valid  time.Duration // how long a link works
}

// Link is a way to fetch one artifact without further credentials.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// To signs a link to key.
func (l *Links) To(ctx context.Context, key string, now time.Time) (Link, error) {
	req, err := s3.NewPresignClient(l.Client).PresignGetObject(ctx,
		&s3.GetObjectInput{Bucket: &l.Bucket, Key: aws.String(key)}, s3.WithPresignExpires(l.Valid))
	if err != nil {
		return Link{}, fmt.Errorf("artifacts: sign a link: %w", err)
	}
	return Link{URL: req.URL, ExpiresAt: now.Add(l.Valid)}, nil
}

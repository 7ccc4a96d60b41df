package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/cloud"
)

// results is where results lie. Credentials, region and endpoint are the AWS SDK's own variables.
type results struct {
	bucket    string        // ARTIFACTS_BUCKET
	valid     time.Duration // RESULT_LINK_TTL: how long a link works
	pathStyle bool          // S3_PATH_STYLE: for servers that have no host name for each bucket
}

func readResults(e *app.Env) results {
	r := results{
		bucket:    e.Required("ARTIFACTS_BUCKET"),
		valid:     e.Duration("RESULT_LINK_TTL", 5*time.Minute),
		pathStyle: e.Bool("S3_PATH_STYLE", false),
	}
	if r.valid < time.Second || r.valid > 7*24*time.Hour {
		e.Refuse("RESULT_LINK_TTL", "must lie between 1s and 168h, S3's own bounds")
	}
	return r
}

func (r results) links(ctx context.Context, log *slog.Logger) (*artifacts.Links, error) {
	aws, err := cloud.Config(ctx, log)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(aws, func(o *s3.Options) { o.UsePathStyle = r.pathStyle })
	return &artifacts.Links{Client: client, Bucket: r.bucket, Valid: r.valid}, nil
}

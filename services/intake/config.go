package main

import (
	"context"
	"log/slog"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/cloud"
	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/web"
)

// workers is how workers are reached. Credentials, region and endpoint are the AWS SDK's own variables.
type workers struct {
	urls      map[string]string // SQS_QUEUE_URLS: wf2des=…,des2wf=…,code2wf=…, or SQS_QUEUE_URL for all three
	statusURL string            // STATUS_URL: where workers send their webhooks
}

func readWorkers(e *app.Env) workers {
	w := workers{urls: e.Map("SQS_QUEUE_URLS"), statusURL: e.RequiredURL("STATUS_URL")}
	routes := []string{"wf2des", "des2wf", "code2wf"}
	if one := e.URL("SQS_QUEUE_URL", ""); one != "" && w.urls == nil {
		w.urls = map[string]string{}
		for _, route := range routes {
			w.urls[route] = one
		}
	}
	for _, route := range routes {
		if w.urls[route] == "" {
			e.Refuse("SQS_QUEUE_URLS", "names no queue for "+route+"; give wf2des=…,des2wf=…,code2wf=…, or one SQS_QUEUE_URL for all")
		}
	}
	for route, address := range w.urls {
		if !slices.Contains(routes, route) {
			e.Refuse("SQS_QUEUE_URLS", "names a queue for something that is not wf2des, des2wf or code2wf")
		}
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			e.Refuse("SQS_QUEUE_URLS", "must give the URL of a queue, such as https://sqs.ap-northeast-1.amazonaws.com/123456789012/jobs")
		}
	}
	return w
}

func (w workers) queues(ctx context.Context, log *slog.Logger) (*jobs.Queues, error) {
	aws, err := cloud.Config(ctx, log)
	if err != nil {
		return nil, err
	}
	return &jobs.Queues{Client: sqs.NewFromConfig(aws), URLs: w.urls, StatusURL: w.statusURL, Prefix: artifacts.Prefix}, nil
}

// readLimits reads how many new runs one caller may ask for: CREATE_RATE a second on average (0: no limit), CREATE_BURST at once.
func readLimits(e *app.Env) *web.Limiter {
	return web.NewLimiter(e.Int("CREATE_RATE", 200, 0, 1_000_000), e.Int("CREATE_BURST", 2000, 1, 1_000_000))
}

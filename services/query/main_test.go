package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store/storetest"
	"framerun.dev/pkg/web"
)

// One failed start names everything that is wrong.
func TestConfigurationProblemsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), servicetest.Lookup(map[string]string{"RESULT_LINK_TTL": "169h", "S3_PATH_STYLE": "yes", "NATS_URL": "http://nats"}), io.Discard)
	if err == nil {
		t.Fatal("the service started")
	}
	for _, name := range []string{"LISTEN", "OPS_LISTEN", "DATABASE_URL", "NATS_URL", "COGNITO_ISSUER", "COGNITO_CLIENTS", "ARTIFACTS_BUCKET",
		"RESULT_LINK_TTL", "S3_PATH_STYLE"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named", name)
		}
	}
}

// The whole service answers without NATS. When it is told to stop, who waits is answered early and a stream ends, and it ends cleanly.
func TestRunStartsAndEndsCleanly(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "ap-northeast-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"} {
		t.Setenv(name, value)
	}
	q := &query{World: servicetest.New(t)}
	service := q.Start(t, run, q.Environment(t, map[string]string{"DATABASE_URL": storetest.Reader(t, q.World.URL), "ARTIFACTS_BUCKET": "bucket", "S3_PATH_STYLE": "true", "RESULT_LINK_TTL": "1m"}))
	q.Client = service.Client
	done, open := q.In(t, lifecycle.Code2WF, lifecycle.Completed), q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	if link := q.get(t, path(done)+"/result").JSON(t)["url"].(string); !strings.HasPrefix(link, "http://127.0.0.1:9/bucket/code2wf/"+done.ID) {
		t.Errorf("the link is %s", link)
	}
	stream := q.stream(t, open)
	stream.run(t, open, 1)
	waiting := q.ask(q.Request(t, "GET", path(open), q.Owner, "", "If-None-Match", web.ETag(open.ID, open.UpdatedAt), "Prefer", "wait=25"))
	servicetest.Eventually(t, "the request is in flight", func() bool {
		response, err := q.HTTP.Get(service.Ops + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), `in_flight{service="query"} 2`)
	})
	service.Stop()
	if reply := waiting.answer(t); reply.Status != 304 {
		t.Errorf("who waited got %d %s", reply.Status, reply.Body)
	}
	if waiting.took > 15*time.Second {
		t.Errorf("who waited was answered after %s", waiting.took)
	}
	stream.ends(t)
	if err := service.End(); err != nil {
		t.Errorf("a clean end: %v", err)
	}
}

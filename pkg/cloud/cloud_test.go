package cloud

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/smithy-go/logging"
)

// Catches configuration that is read from another place than every AWS tool reads it from, or that needs the network to be read.
func TestConfigComesFromTheEnvironment(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	c, err := Config(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Credentials.Retrieve(t.Context())
	if err != nil || c.Region != "eu-north-1" || found.AccessKeyID != "id" || found.SecretAccessKey != "secret" {
		t.Errorf("region %q, credentials of %q, %v", c.Region, found.AccessKeyID, err)
	}
}

// Catches the SDK's words that are lost, or written beside the service's own log.
func TestTheSDKSpeaksInTheServicesLog(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-north-1")
	var out bytes.Buffer
	c, err := Config(t.Context(), slog.New(slog.NewJSONHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Logger.Logf(logging.Debug, "not at this level")
	c.Logger.Logf(logging.Warn, "odd: %d", 42)
	if got := out.String(); !strings.Contains(got, `"level":"WARN","msg":"AWS SDK: odd: 42"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("the log holds %q", got)
	}
}

// Catches a configuration that cannot be read and passes for a good one.
func TestABadProfileIsAnError(t *testing.T) {
	t.Setenv("AWS_PROFILE", "there-is-none")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	if _, err := Config(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), "cloud: ") {
		t.Errorf("got %v", err)
	}
}

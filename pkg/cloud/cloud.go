// Package cloud is how the suite's services meet AWS: by the SDK's own configuration, with its words in the service's own log.
package cloud

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// Config reads region, credentials and endpoints from the places where every AWS tool looks: AWS_REGION, AWS_ACCESS_KEY_ID,
// AWS_ENDPOINT_URL_SQS and so on, profiles, and the roles of the machine. It asks nobody yet.
func Config(ctx context.Context, log *slog.Logger) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.LoggerFunc(
		func(class logging.Classification, format string, v ...any) {
			level := slog.LevelDebug
			if class == logging.Warn {
				level = slog.LevelWarn
			}
			log.Log(ctx, level, "AWS SDK: "+fmt.Sprintf(format, v...))
		})))
	if err != nil {
		return c, fmt.Errorf("cloud: AWS configuration: %w", err)
	}
	return c, nil
}

package fuzz

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"framerun.dev/deploy/local/stack"
)

// services asks each service whether something is left of the requests: one that is still being answered, or a counted 5xx.
func services(ctx context.Context, s *stack.Stack) (left []string, err error) {
	for name, service := range s.Address().Services {
		var found []string
		deadline := time.Now().Add(patience)
		for {
			if found, err = leftovers(ctx, service.Ops+"/metrics"); err != nil {
				return nil, err
			}
			if len(found) == 0 || time.Now().After(deadline) {
				break
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		for _, line := range found {
			left = append(left, fmt.Sprintf("service %s: %s", name, line))
		}
	}
	return left, nil
}

func leftovers(ctx context.Context, url string) (lines []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("fuzz: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fuzz: asking for metrics: %w", err)
	}
	defer res.Body.Close()
	scanner := bufio.NewScanner(res.Body)
	for scanner.Scan() {
		line := scanner.Text()
		if strings.HasPrefix(line, "framerun_http_requests_in_flight{") && !strings.HasSuffix(line, " 0") ||
			strings.HasPrefix(line, "framerun_http_requests_total{") && strings.Contains(line, `code="5`) {
			lines = append(lines, line)
		}
	}
	return lines, scanner.Err()
}

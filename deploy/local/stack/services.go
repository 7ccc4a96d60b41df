package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"framerun.dev/deploy/local/gateway"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/auth/issuer"
)

const (
	// PluginClient and APIClient are the clients of the user pool that may sign in.
	PluginClient = "local-plugin-client"
	APIClient    = "local-api-client"

	// workerDeadline is how long a worker may be silent: longer than a person needs who answers a job by hand (WORKER=none).
	workerDeadline = "15m"

	// readyWithin bounds the start of the services; they need a fraction of it.
	readyWithin = 20 * time.Second
	// drainWithin is a little longer than a service takes to drain.
	drainWithin = 12 * time.Second
)

// startServices starts all of them and waits until each says that it is ready.
func (s *Stack) startServices(ctx context.Context) error {
	a := &s.address
	a.Services = map[string]Service{}
	for _, name := range s.config.running() {
		a.Services[name] = s.ports.service(place(name))
	}
	a.Webhook = Webhook{URL: a.Services["status"].URL + "/v1/ai-status", Secret: webhookSecret()}
	s.onStop("the services", s.stopServices) // also those that were started before one failed to
	for _, name := range s.config.running() {
		if err := s.startService(name); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for _, name := range s.config.running() {
		if err := s.waitReady(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) startService(name string) error {
	log, err := s.logFile(name)
	if err != nil {
		return err
	}
	p := &process{name: name, path: filepath.Join(s.config.Bin, serviceOf(name)), env: s.environment(name), log: log, say: s.say}
	s.processes[name] = p
	return p.start()
}

// stopServices lets all drain at the same time.
func (s *Stack) stopServices() error {
	names := s.config.running()
	errs := make([]error, len(names))
	var stopping sync.WaitGroup
	for i, name := range names {
		if p := s.processes[name]; p != nil {
			stopping.Go(func() { errs[i] = p.stop(drainWithin) })
		}
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// environment is a process's whole configuration: nothing is inherited but what somebody may want to try on all services at once, so that the
// stack behaves alike on every machine.
func (s *Stack) environment(process string) []string {
	a, name, i := s.address, serviceOf(process), place(process)
	env := map[string]string{
		"LISTEN": s.ports.address(servicePorts + i), "OPS_LISTEN": s.ports.address(opsPorts + i),
		"DATABASE_URL": a.Postgres, "NATS_URL": a.NATS,
		"LOG_LEVEL": os.Getenv("LOG_LEVEL"), "GROUP_COMMIT": os.Getenv("GROUP_COMMIT"),
	}
	people := map[string]string{
		"COGNITO_ISSUER": a.Issuer, "COGNITO_CLIENTS": PluginClient + "=plugin," + APIClient + "=api",
		"ORGANIZATION_CLAIM": issuer.OrganizationClaim, "DEFAULT_ORGANIZATION_ID": fmt.Sprint(platform.OrganizationID),
	}
	cloud := map[string]string{
		"AWS_REGION": a.AWS.Region, "AWS_ACCESS_KEY_ID": a.AWS.AccessKeyID, "AWS_SECRET_ACCESS_KEY": a.AWS.SecretAccessKey,
		"AWS_ENDPOINT_URL_SQS": a.SQS, "AWS_ENDPOINT_URL_S3": a.S3, "AWS_EC2_METADATA_DISABLED": "true",
	}
	own := map[string]map[string]string{
		"intake": {"STATUS_URL": a.Webhook.URL,
			"SQS_QUEUE_URLS": "wf2des=" + a.Queues["wf2des"] + ",des2wf=" + a.Queues["des2wf"] + ",code2wf=" + a.Queues["code2wf"]},
		"status": {"WEBHOOK_SECRETS": a.Webhook.Secret, "SERVICE_ACCOUNT_SUB": platform.UserWorker, "DESIGN_REGISTRY_URL": a.Postgres,
			"PARSING_DEADLINE": workerDeadline, "ASSEMBLING_DEADLINE": workerDeadline, "PROCESSING_DEADLINE": workerDeadline,
			"SQS_DEAD_LETTER_URLS": strings.Join(slices.Sorted(maps.Values(a.DeadLetters)), ",")},
		"query": {"DATABASE_URL": s.reader, "ARTIFACTS_BUCKET": a.Bucket, "S3_PATH_STYLE": "true"},
	}
	if a.DocumentDB != nil {
		own["interaction"] = map[string]string{"DOCUMENTDB_URL": *a.DocumentDB}
		own["status"]["DOCUMENTDB_URL"] = *a.DocumentDB
	}
	parts := []map[string]string{env, own[name]}
	if name != "status" {
		parts = append(parts, people)
	}
	if name != "interaction" {
		parts = append(parts, cloud)
	}
	var out []string
	for _, part := range append(parts, s.config.Env[name], s.config.Env[process]) { // of a name that stands twice, the last one counts (os/exec)
		for key, value := range part {
			out = append(out, key+"="+value)
		}
	}
	return out
}

// waitReady asks readyz until it says yes.
func (s *Stack) waitReady(ctx context.Context, name string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address.Services[name].Ops+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stack: %s did not become ready; its log is %s", name, filepath.Join(s.logs(), name+".log"))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Stack) startGateway(context.Context) error {
	routes, err := os.ReadFile(s.config.Routes)
	if err != nil {
		return fmt.Errorf("stack: the route file: %w", err)
	}
	log, err := s.logger("gateway")
	if err != nil {
		return err
	}
	backends := map[string][]*url.URL{}
	for _, name := range s.config.running() {
		backend, err := url.Parse(s.address.Services[name].URL)
		if err != nil {
			return err
		}
		backends[serviceOf(name)] = append(backends[serviceOf(name)], backend)
	}
	g, err := gateway.New(gateway.Config{Routes: routes, Backends: backends, Logger: log})
	if err != nil {
		return err
	}
	s.address.Gateway = s.ports.url(gatewayPort)
	return s.serve(gatewayPort, "the gateway", g)
}

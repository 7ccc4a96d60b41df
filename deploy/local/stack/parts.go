package stack

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"framerun.dev/deploy/local/s3"
	"framerun.dev/deploy/local/sqs"
	"framerun.dev/migrations"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/auth/issuer"
	"framerun.dev/pkg/localpg"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	_ "github.com/lib/pq"
	natsserver "github.com/nats-io/nats-server/v2/server"
)

const bucket = "framerun-artifacts"

// startPostgres begins with an empty database each time: the queues live in memory, so an older run would wait for a job that is
// gone.
func (s *Stack) startPostgres(ctx context.Context) error {
	if url := s.config.DatabaseURL; url != "" {
		s.say("using the database that was given, for service query with the same rights as for the others")
		s.address.Postgres, s.reader = url, url
		return migrate(ctx, url)
	}
	server, err := localpg.Start(ctx, localpg.Config{Port: s.ports.Base + postgresPort, Durable: true,
		LogFile: filepath.Join(s.logs(), "postgres.log")})
	if err != nil {
		return err
	}
	s.onStop("PostgreSQL", server.Stop)
	s.address.Postgres = server.URL("postgres")
	s.reader = strings.Replace(s.address.Postgres, localpg.Superuser, readerRole, 1)
	return migrate(ctx, s.address.Postgres, `ALTER ROLE `+readerRole+` LOGIN`)
}

// readerRole is who service query signs in as (migrations/00008_reader_role.sql).
const readerRole = "framerun_reader"

func migrate(ctx context.Context, url string, after ...string) error {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, step := range []func(context.Context, *sql.DB) error{platform.Up, migrations.Up, platform.Seed} {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	for _, statement := range after {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) startNATS(context.Context) error {
	dir := filepath.Join(s.config.Dir, "nats")
	if err := os.RemoveAll(dir); err != nil { // of a stack that was killed; like the database, the feed begins empty
		return err
	}
	s.onStop("the NATS folder", func() error { return os.RemoveAll(dir) })
	server, err := natsserver.NewServer(&natsserver.Options{ServerName: "framerun-local", Host: "127.0.0.1", Port: s.ports.Base + natsPort,
		JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	server.Start()
	s.NATS = server
	s.onStop("NATS", func() error { s.NATS.Shutdown(); s.NATS.WaitForShutdown(); return nil })
	if !server.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("nats-server was not ready in time")
	}
	s.address.NATS = server.ClientURL()
	return nil
}

// startAWS starts SQS and S3. Their credentials are made up at each start.
func (s *Stack) startAWS(context.Context) error {
	a := &s.address
	a.AWS = AWS{Region: "us-east-1", AccessKeyID: "local" + random(8), SecretAccessKey: random(20)}
	a.SQS, a.S3, a.Bucket = s.ports.url(sqsPort), s.ports.url(s3Port), bucket
	s.SQS = sqs.New(sqs.Config{Endpoint: a.SQS, Region: a.AWS.Region})
	s.onStop("SQS", func() error { s.SQS.Close(); return nil })
	a.Queues, a.DeadLetters = map[string]string{}, map[string]string{}
	for _, name := range []string{"wf2des", "des2wf", "code2wf"} {
		var err error
		if a.Queues[name], a.DeadLetters[name], err = s.queue("framerun-" + name); err != nil {
			return err
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_framerun/accepted", s.accepted)
	mux.Handle("/", s.SQS)
	if err := s.serve(sqsPort, "the SQS port", mux); err != nil {
		return err
	}
	objects, err := s3.New(s3.Config{AccessKeyID: a.AWS.AccessKeyID, SecretAccessKey: a.AWS.SecretAccessKey, Region: a.AWS.Region,
		Buckets: []string{bucket}})
	if err != nil {
		return err
	}
	return s.serve(s3Port, "the S3 port", objects)
}

// queue makes a queue with a dead letter queue behind it, as production has them, and gives both URLs.
func (s *Stack) queue(name string) (url, dead string, err error) {
	if dead, err = s.SQS.CreateQueue(name+"-dlq", nil); err != nil {
		return "", "", err
	}
	url, err = s.SQS.CreateQueue(name, sqs.QueueAttributes{"VisibilityTimeout": "30",
		"RedrivePolicy": sqs.Redrive(s.SQS.QueueARN(name+"-dlq"), 5)})
	return url, dead, err
}

// acceptedMessage is what a queue has taken.
type acceptedMessage struct {
	Queue      string            `json:"queue"`
	Body       string            `json:"body"`
	Group      string            `json:"group"` // MessageGroupId
	Attributes map[string]string `json:"attributes"`
	At         time.Time         `json:"at"`
}

// accepted shows what the queues have taken for one run (or for all), so that a person can see a message without taking it from a
// worker.
func (s *Stack) accepted(w http.ResponseWriter, r *http.Request) {
	run, messages := r.URL.Query().Get("run"), []acceptedMessage{}
	for _, m := range s.SQS.Log() {
		if run != "" && !strings.Contains(m.Body, `"`+run+`"`) {
			continue
		}
		shown := acceptedMessage{Queue: m.Queue, Body: m.Body, Group: m.GroupID, Attributes: map[string]string{}, At: m.SentAt}
		for name, attribute := range m.Attributes {
			shown.Attributes[name] = attribute.StringValue
		}
		messages = append(messages, shown)
	}
	w.Header().Set("Content-Type", "application/json")
	json.MarshalWrite(w, messages, json.Deterministic(true))
}

func (s *Stack) startIssuer(context.Context) error {
	a := &s.address
	a.Issuer = s.ports.url(issuerPort)
	pool, err := issuer.New(issuer.Config{URL: a.Issuer})
	if err != nil {
		return err
	}
	s.issuer = pool
	for token, c := range map[*string]issuer.Claims{
		&a.Tokens.Plugin: {Subject: platform.UserPlugin, ClientID: PluginClient, OrganizationID: platform.OrganizationID},
		&a.Tokens.API:    {Subject: platform.UserAPI, ClientID: APIClient, OrganizationID: platform.OrganizationID},
		&a.Tokens.OtherOrganization: {Subject: platform.UserOtherOrganization, ClientID: PluginClient,
			OrganizationID: platform.OtherOrganizationID},
	} {
		c.Lifetime = 24 * time.Hour
		if *token, err = pool.Mint(c); err != nil {
			return err
		}
	}
	a.Seed = Seed{OrganizationID: platform.OrganizationID, ProjectID: platform.ProjectID, OtherProjectID: platform.OtherProjectID,
		OtherOrganizationProjectID: platform.OtherOrganizationProjectID, PageImportID: platform.PageImportID,
		UnfinishedPageImportID: platform.UnfinishedPageImportID, OtherProjectPageImportID: platform.OtherProjectPageImportID}
	return s.serve(issuerPort, "the token issuer", pool)
}

// Mint makes a token of the stack's user pool, for tests that need another than those of the address.
func (s *Stack) Mint(c issuer.Claims) (string, error) { return s.issuer.Mint(c) }

func (s *Stack) credentials() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(s.address.AWS.AccessKeyID, s.address.AWS.SecretAccessKey, "")
}

func (s *Stack) sqsClient() *awssqs.Client {
	return awssqs.New(awssqs.Options{Region: s.address.AWS.Region, BaseEndpoint: &s.address.SQS, Credentials: s.credentials()})
}

func (s *Stack) s3Client() *awss3.Client {
	return awss3.New(awss3.Options{Region: s.address.AWS.Region, BaseEndpoint: &s.address.S3, Credentials: s.credentials(), UsePathStyle: true})
}

func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	return l, nil
}

// random is n random bytes in hexadecimal.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// webhookSecret makes a Standard Webhooks secret.
func webhookSecret() string {
	b := make([]byte, 32)
	rand.Read(b)
	return "whsec_" + base64.StdEncoding.EncodeToString(b)
}

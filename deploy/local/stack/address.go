package stack

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Address is where everything of a running stack is found: the content of stack.json, for people's own tools and for tests.
type Address struct {
	Gateway     string             `json:"gateway"`
	Services    map[string]Service `json:"services"`
	Postgres    string             `json:"postgres"`
	NATS        string             `json:"nats"`
	SQS         string             `json:"sqs"`
	Queues      map[string]string  `json:"queues"`      // queue URL by wf2des, des2wf, code2wf
	DeadLetters map[string]string  `json:"deadLetters"` // queue URL by the same names: what no worker has done
	S3          string             `json:"s3"`
	Bucket      string             `json:"bucket"`
	DocumentDB  *string            `json:"documentdb"` // null: switched off
	Webhook     Webhook            `json:"webhook"`
	Issuer      string             `json:"issuer"`
	Tokens      Tokens             `json:"tokens"`
	AWS         AWS                `json:"aws"`
	Worker      string             `json:"worker"` // scripted or none
	Seed        Seed               `json:"seed"`
}

// Service is one service's two ports.
type Service struct {
	URL string `json:"url"`
	Ops string `json:"ops"`
}

// Webhook is how a worker tells the suite something.
type Webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret"` // whsec_…
}

// Tokens are access tokens that are good for a day.
type Tokens struct {
	Plugin            string `json:"plugin"`
	API               string `json:"api"`
	OtherOrganization string `json:"otherOrganization"`
}

// AWS are the credentials that the stand-ins know, for the SDK or the aws command line.
type AWS struct {
	Region          string `json:"region"`
	AccessKeyID     string `json:"accessKeyId"`
	SecretAccessKey string `json:"secretAccessKey"`
}

// Seed is what the platform's stand-in tables hold.
type Seed struct {
	OrganizationID             int64  `json:"organizationId"`
	ProjectID                  int64  `json:"projectId"`
	OtherProjectID             int64  `json:"otherProjectId"`
	OtherOrganizationProjectID int64  `json:"otherOrganizationProjectId"`
	PageImportID               string `json:"pageImportId"`
	UnfinishedPageImportID     string `json:"unfinishedPageImportId"`
	OtherProjectPageImportID   string `json:"otherProjectPageImportId"`
}

// AddressFile is where a running stack writes its address, in the folder of its state.
func AddressFile(dir string) string { return filepath.Join(dir, "stack.json") }

// ReadAddress reads the address of the stack whose state lies in dir. It reports false where none is running.
func ReadAddress(dir string) (Address, bool, error) {
	var a Address
	raw, err := os.ReadFile(AddressFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return a, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err != nil {
		return a, false, fmt.Errorf("stack: %s: %w", AddressFile(dir), err)
	}
	return a, true, nil
}

// write puts the address in place in one step, readable by its owner alone: it holds tokens.
func (a Address) write(dir string) error {
	raw, err := json.Marshal(a, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	partial := AddressFile(dir) + ".partial"
	if err := os.WriteFile(partial, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	return os.Rename(partial, AddressFile(dir))
}

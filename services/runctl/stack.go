package main

import (
	"encoding/json/v2"
	"errors"
	"os"
	"path/filepath"
)

// stack is what of a local suite's address file the commands need. Members that are not named here are somebody else's.
type stack struct {
	Postgres string            `json:"postgres"`
	NATS     string            `json:"nats"`
	SQS      string            `json:"sqs"`
	Queues   map[string]string `json:"queues"`
	Webhook  struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
	} `json:"webhook"`
	Issuer string            `json:"issuer"`
	Tokens map[string]string `json:"tokens"`
	AWS    struct {
		Region          string `json:"region"`
		AccessKeyID     string `json:"accessKeyId"`
		SecretAccessKey string `json:"secretAccessKey"`
	} `json:"aws"`
}

// stack reads the address file once; nil if there is none to be read. Where any address is given by a flag or the environment, the
// file is read only if it is named: half of a local suite and half of another one would be nobody's.
func (s *hand) stack() (*stack, error) {
	if s.sought {
		return s.local, nil
	}
	s.sought = true
	file := s.Stack
	if file == "" {
		if s.addressed() {
			return nil, nil
		}
		file = defaultStack()
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && s.Stack == "" {
		return nil, nil
	}
	if err != nil {
		return nil, usage("--stack: %v", err)
	}
	s.local = &stack{}
	if err := json.Unmarshal(raw, s.local); err != nil {
		return nil, usage("--stack: %s is not the address file of a local suite: %v", file, err)
	}
	return s.local, nil
}

func (g globals) addressed() bool {
	return g.DatabaseURL != "" || g.NATSURL != "" || len(g.QueueURLs) > 0 || g.WebhookURL != "" || len(g.WebhookSecrets) > 0 || g.Issuer != ""
}

// defaultStack is where `make up` writes the file: below the folder that one stands in, else beside this program's .bin.
func defaultStack() string {
	here := filepath.Join("deploy", "local", ".state", "stack.json")
	if _, err := os.Stat(here); err == nil {
		return here
	}
	self, err := os.Executable()
	if err != nil {
		return here
	}
	return filepath.Join(filepath.Dir(filepath.Dir(self)), here)
}

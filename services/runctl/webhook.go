package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
	"uuid"

	"framerun.dev/pkg/auth"
)

type webhookCommand struct {
	Verify verifyCommand `cmd:"" help:"Say which part of a signed webhook is wrong: id, timestamp, signature, secret or body."`
	Sign   signCommand   `cmd:"" help:"Make the headers that go with a body."`
	Send   sendCommand   `cmd:"" help:"Send a word to service status as a worker would."`
}

type signCommand struct {
	Body string `arg:"" optional:"" default:"-" help:"The file that holds the body; - is standard input."`
	ID   string `help:"The message's id; a new one without it. A message that is sent again keeps its id."`
	At   int64  `placeholder:"SECONDS" help:"The timestamp, in seconds since 1970; now without it."`
}

func (signCommand) Help() string {
	return `The signature is that of Standard Webhooks 1.0: v1, HMAC-SHA256 over id.timestamp.body, where the body counts byte for byte. The first secret signs.

Examples:

    runctl webhook sign body.json > headers.txt
    curl "$STATUS_URL" -H @headers.txt -H 'Content-Type: application/json' --data-binary @body.json`
}

func (c signCommand) Run(s *hand) error {
	signer, err := s.signer()
	if err != nil {
		return err
	}
	body, err := s.read(c.Body)
	if err != nil {
		return err
	}
	header := c.sign(signer, body)
	return s.show(map[string]any{"headers": flat(header)}, func(w io.Writer) {
		for _, name := range signed {
			fmt.Fprintf(w, "%s: %s\n", name, header.Get(name))
		}
	})
}

func (c signCommand) sign(signer *auth.Webhooks, body []byte) http.Header {
	id, at := c.ID, time.Now()
	if id == "" {
		id = "msg_" + uuid.NewV7().String()
	}
	if c.At != 0 {
		at = time.Unix(c.At, 0)
	}
	return signer.Sign(id, at, body)
}

// signed are the headers of Standard Webhooks 1.0.
var signed = []string{"webhook-id", "webhook-timestamp", "webhook-signature"}

func flat(header http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range signed {
		out[name] = header.Get(name)
	}
	return out
}

// bodyMost is how long a body is read at most: service status takes 256 KiB.
const bodyMost = 1 << 20

// read reads a file, or standard input for "-", byte for byte.
func (s *hand) read(file string) ([]byte, error) {
	in := s.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, usage("%v", err)
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, bodyMost+1))
	if err == nil && len(body) > bodyMost {
		err = usage("the body is longer than 1 MiB")
	}
	return body, err
}

type verifyCommand struct {
	Body      string `arg:"" optional:"" default:"-" help:"The file that holds the body as it was received; - is standard input."`
	Headers   string `placeholder:"FILE" help:"A file with the request's headers, one a line, as curl -v or a proxy's log shows them."`
	ID        string `name:"id" help:"The header webhook-id, instead of --headers."`
	Timestamp string `help:"The header webhook-timestamp."`
	Signature string `help:"The header webhook-signature."`
}

func (verifyCommand) Help() string {
	return `Service status says no more than 401 to whoever it does not know; this says which part is wrong. It knows the usual accidents: milliseconds, another signature version, hexadecimal, a key that was not decoded, a line break or white space that changed on the way. The exit code is 0 when the webhook is good and 4 when it is not.

Examples:

    runctl webhook verify body.json --headers headers.txt
    runctl webhook verify body.json --id msg_1 --timestamp 1764460000 --signature v1,g0hM9SsE…`
}

func (c verifyCommand) Run(s *hand) error {
	signer, err := s.signer()
	if err != nil {
		return err
	}
	header, err := c.header()
	if err != nil {
		return err
	}
	body, err := s.read(c.Body)
	if err != nil {
		return err
	}
	findings, good := signer.Explain(header, body), true
	for _, f := range findings {
		good = good && f.Good
	}
	err = s.show(map[string]any{"good": good, "findings": findings}, func(w io.Writer) {
		rows := make([][]string, len(findings))
		for i, f := range findings {
			rows[i] = []string{f.Part, map[bool]string{true: "good", false: "WRONG"}[f.Good], f.Says}
		}
		table(w, []string{"PART", "IS", "WHY"}, rows)
	})
	if err == nil && !good {
		err = refused("service status would answer 401 to this")
	}
	return err
}

// header collects the three headers. Repeated ones stay repeated: that is an error to be found.
func (c verifyCommand) header() (http.Header, error) {
	header := http.Header{}
	for i, value := range []string{c.ID, c.Timestamp, c.Signature} {
		if value != "" {
			header.Add(signed[i], value)
		}
	}
	if c.Headers == "" {
		return header, nil
	}
	raw, err := os.ReadFile(c.Headers)
	if err != nil {
		return nil, usage("%v", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimLeft(lines.Text(), "> "), ":")
		if ok {
			header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return header, lines.Err()
}

// post sends a signed body, and reads the answer.
func (s *hand) post(ctx context.Context, url string, header http.Header, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, usage("--webhook-url: %v", err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, errors.Join(errUnreachable, err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, bodyMost))
	if err != nil {
		return 0, nil, errors.Join(errUnreachable, err)
	}
	return res.StatusCode, said, nil
}

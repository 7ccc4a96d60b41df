package demo

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
)

// plugin asks the suite's one origin with its user's token, and knows nothing else of the suite.
type plugin struct {
	origin string
	token  string
	http   *http.Client // without a timeout: a waiting GET is bounded by its context
}

// answer is a whole answer, and what was asked.
type answer struct {
	asked  string
	status int
	header http.Header
	body   []byte
}

// ask sends body as JSON, nothing if it is nil, and reads the answer whole. Headers are given as name, value, name, value.
func (p plugin) ask(ctx context.Context, method, path string, body any, headers ...string) (answer, error) {
	resp, err := p.open(ctx, method, path, body, headers...)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: reading the answer: %w", method, path, err)
	}
	return answer{asked: method + " " + path, status: resp.StatusCode, header: resp.Header, body: raw}, nil
}

// open is ask for an answer that is read as it comes.
func (p plugin) open(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		sent = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.origin+path, sent)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	if sent != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return p.http.Do(req)
}

// read expects status and decodes the body. Any other status is a surprise, which shows the beginning of what came.
func (a answer) read(status int, into any) error {
	if a.status != status {
		return surprise(a.asked, fmt.Sprint(status), fmt.Sprintf("%d %.400s", a.status, a.body))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("%s: reading %.400s: %w", a.asked, a.body, err)
	}
	return nil
}

// problem is what of a problem document the stories look at.
type problem struct {
	Code       string `json:"code"`
	Detail     string `json:"detail"`
	ExistingID string `json:"existingId"`
	Errors     []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	} `json:"errors"`
}

// refused expects a problem document with status and code.
func (a answer) refused(status int, code string) (problem, error) {
	var p problem
	if err := a.read(status, &p); err != nil {
		return p, err
	}
	if media := a.header.Get("Content-Type"); p.Code != code || media != "application/problem+json" {
		return p, surprise(a.asked, "application/problem+json "+code, media+" "+p.Code)
	}
	return p, nil
}

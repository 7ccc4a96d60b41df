package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header names of Standard Webhooks 1.0.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

const (
	secretPrefix = "whsec_"
	tolerance    = 5 * time.Minute // Standard Webhooks 1.0: how far a timestamp may be from now, either way
)

// Webhooks verifies and makes the signatures of workers, as Standard Webhooks 1.0 defines them (symmetric, v1: HMAC-SHA256
// over id, timestamp and the raw body). It is safe for concurrent use.
type Webhooks struct {
	secrets [][]byte
	now     func() time.Time
}

// NewWebhooks reads the secrets: "whsec_" and 24 to 64 bytes in base64. All are accepted, which is how they are rotated; the
// first one signs. A service must not run without one, so none at all is an error, as is any that cannot be read.
func NewWebhooks(secrets []string, now func() time.Time) (*Webhooks, error) {
	if len(secrets) == 0 {
		return nil, errors.New("auth: no webhook secret, so nobody's signature could be verified")
	}
	w := &Webhooks{now: now}
	for i, text := range secrets {
		secret, err := parseSecret(text)
		if err != nil {
			return nil, fmt.Errorf("auth: webhook secret %d of %d: %w", i+1, len(secrets), err)
		}
		w.secrets = append(w.secrets, secret)
	}
	return w, nil
}

// parseSecret never repeats the secret in its errors.
func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return nil, errors.New("does not begin with whsec_")
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, errors.New("is not base64 after whsec_")
	}
	if len(secret) < 24 || len(secret) > 64 {
		return nil, fmt.Errorf("has %d bytes, must have 24 to 64", len(secret))
	}
	return secret, nil
}

// Verify says whether the body, byte for byte as it was received, was signed with one of the secrets within five minutes of
// now. If not, the error is an *UnauthenticatedError. A message that was seen before verifies again: whoever acts on it has
// to be idempotent.
func (w *Webhooks) Verify(header http.Header, body []byte) error {
	var values [3]string
	for i, name := range []string{headerID, headerTimestamp, headerSignature} {
		value, err := single(header, name)
		if err != nil {
			return err
		}
		values[i] = value
	}
	id, timestamp, signatures := values[0], values[1], values[2]
	if err := w.checkTime(timestamp); err != nil {
		return err
	}
	for _, secret := range w.secrets {
		want := []byte(sign(secret, id, timestamp, body))
		for given := range strings.SplitSeq(signatures, " ") {
			if hmac.Equal([]byte(given), want) {
				return nil
			}
		}
	}
	return unauthenticated("no v1 signature in %s is over this message by a known secret", headerSignature)
}

func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) > 1 {
		return "", unauthenticated("there is more than one %s header", name)
	}
	if len(values) == 0 || values[0] == "" {
		return "", unauthenticated("there is no %s header", name)
	}
	return values[0], nil
}

func (w *Webhooks) checkTime(timestamp string) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return unauthenticated("%s is not a number of seconds", headerTimestamp)
	}
	off := w.now().Sub(time.Unix(seconds, 0)) // Sub saturates: no timestamp is far enough away to come round again
	switch {
	case off > tolerance:
		return unauthenticated("%s is more than 5 minutes old", headerTimestamp)
	case off < -tolerance:
		return unauthenticated("%s is more than 5 minutes in the future", headerTimestamp)
	}
	return nil
}

// Sign gives the three headers that go with a body. The id names the message: sent again, it keeps its id.
func (w *Webhooks) Sign(id string, at time.Time, body []byte) http.Header {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	header := make(http.Header)
	header.Set(headerID, id)
	header.Set(headerTimestamp, timestamp)
	header.Set(headerSignature, sign(w.secrets[0], id, timestamp, body))
	return header
}

// sign takes the timestamp as it was written, so that what is verified is exactly what was sent.
func sign(secret []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

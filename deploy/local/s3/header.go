package s3

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// bodyLimit bounds an upload, in bytes: it is read into memory.
const bodyLimit = 64 << 20

// verifyHeader signs the request again from the headers that were signed, and
// holds the body against the hash among them. That the date among them is
// about now is looked at by gofakes3.
func (s *Server) verifyHeader(r *http.Request) error {
	c, err := headerClaim(r.Header)
	if err == nil {
		err = s.known(c)
	}
	if err == nil {
		err = c.covers(r.Header)
	}
	if err != nil {
		return err
	}
	hash := r.Header.Get("X-Amz-Content-Sha256")
	again := c.request(r)
	if err := s.signer.SignHTTP(r.Context(), s.credentials, again, hash, "s3", s.region, c.at); err != nil {
		return fmt.Errorf("s3: signing a request again: %w", err)
	}
	expected, err := headerClaim(again.Header)
	if err != nil {
		return fmt.Errorf("s3: reading a request signed again: %w", err)
	}
	if err := c.match(expected.signature, strings.Join(expected.headers, ";")); err != nil {
		return err
	}
	return checkBody(r, hash)
}

func headerClaim(h http.Header) (claim, error) {
	fields, ok := strings.CutPrefix(h.Get("Authorization"), algorithm+" ")
	if !ok {
		return claim{}, refuse(http.StatusBadRequest, "InvalidRequest", "The authorization mechanism you have provided is not supported. Please use "+algorithm+".")
	}
	var c claim
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			c.credential = value
		case "SignedHeaders":
			c.headers = strings.Split(value, ";")
		case "Signature":
			c.signature = value
		}
	}
	at, err := time.Parse(dateLayout, h.Get("X-Amz-Date"))
	if err != nil {
		return claim{}, denied("AWS authentication requires a valid Date or x-amz-date header")
	}
	c.at = at
	return c, nil
}

// checkBody reads the body, to be read once more by the objects. A body in
// signed chunks is refused: its frames would be stored as if they were data.
func checkBody(r *http.Request, hash string) error {
	switch {
	case hash == unsignedPayload:
		return nil
	case strings.HasPrefix(hash, "STREAMING-"):
		return refuse(http.StatusNotImplemented, "NotImplemented", "Chunked uploads are not had here: send a body of known length.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit+1))
	if err != nil {
		return refuse(http.StatusBadRequest, "IncompleteBody", "The request body ended too early.")
	}
	if len(body) > bodyLimit {
		return refuse(http.StatusBadRequest, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.")
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return refuse(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

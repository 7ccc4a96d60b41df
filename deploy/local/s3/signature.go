package s3

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	algorithm       = "AWS4-HMAC-SHA256"
	dateLayout      = "20060102T150405Z"
	unsignedPayload = "UNSIGNED-PAYLOAD"
)

// plain signs as S3 does: the path is escaped once, and what the client chose
// to send as a header is not moved into the query.
func plain(o *v4.SignerOptions) {
	o.DisableURIPathEscaping = true
	o.DisableHeaderHoisting = true
}

// claim is a signature and what it says it was made from.
type claim struct {
	credential string
	headers    []string
	signature  string
	at         time.Time
}

// verify is nil for a request signed with the known key, in its headers or as
// a presigned link, and otherwise what S3 would answer.
func (s *Server) verify(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "InvalidURI", "Couldn't parse the specified URI.")
	}
	switch {
	case query.Has("X-Amz-Algorithm"), query.Has("X-Amz-Signature"):
		return s.verifyLink(r, query)
	case r.Header.Get("Authorization") != "":
		return s.verifyHeader(r)
	}
	return denied("Access Denied")
}

// known checks the credential scope: key, day, region, service.
func (s *Server) known(c claim) error {
	key, scope, _ := strings.Cut(c.credential, "/")
	if key != s.credentials.AccessKeyID {
		return refuse(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
	}
	if want := c.at.Format("20060102") + "/" + s.region + "/s3/aws4_request"; scope != want {
		return refuse(http.StatusBadRequest, "AuthorizationHeaderMalformed", fmt.Sprintf("The credential scope %q is wrong; expecting %q.", scope, want))
	}
	return nil
}

// covers refuses headers that mean something to S3 and are not signed.
func (c claim) covers(h http.Header) error {
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") && !slices.Contains(c.headers, lower) {
			return denied("There were headers present in the request which were not signed")
		}
	}
	return nil
}

// request is what the client says it signed: r with no other headers.
func (c claim) request(r *http.Request) *http.Request {
	again := r.Clone(r.Context())
	again.URL.Host = r.Host
	again.Header = http.Header{}
	for _, name := range c.headers {
		name = http.CanonicalHeaderKey(name)
		if values, ok := r.Header[name]; ok {
			again.Header[name] = slices.Clone(values)
		}
	}
	if !slices.Contains(c.headers, "content-length") {
		again.ContentLength = 0
	}
	return again
}

// match compares with the signature made here, and the list of signed headers
// too: one that was promised and not sent would otherwise go unnoticed.
func (c claim) match(signature, headers string) error {
	same := subtle.ConstantTimeCompare([]byte(signature), []byte(c.signature)) == 1
	if !same || headers != strings.Join(c.headers, ";") {
		return refuse(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.")
	}
	return nil
}

package s3

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// skew is how far a client's clock may be ahead.
	skew = 15 * time.Minute
	// longest is the most seconds that a presigned link may live: a week.
	longest = 7 * 24 * 60 * 60
)

// verifyLink signs the link again without its signature. Everything else in
// the query, the expiry included, is signed.
func (s *Server) verifyLink(r *http.Request, query url.Values) error {
	c, lifetime, err := linkClaim(query)
	if err == nil {
		err = s.known(c)
	}
	if err == nil {
		err = c.covers(r.Header)
	}
	if err != nil {
		return err
	}
	query.Del("X-Amz-Signature")
	again := c.request(r)
	again.URL.RawQuery = query.Encode()
	signed, _, err := s.signer.PresignHTTP(r.Context(), s.credentials, again, unsignedPayload, "s3", s.region, c.at)
	if err != nil {
		return fmt.Errorf("s3: signing a link again: %w", err)
	}
	u, err := url.Parse(signed)
	if err != nil {
		return fmt.Errorf("s3: reading a link signed again: %w", err)
	}
	if err := c.match(u.Query().Get("X-Amz-Signature"), u.Query().Get("X-Amz-SignedHeaders")); err != nil {
		return err
	}
	switch now := s.now(); {
	case now.Before(c.at.Add(-skew)):
		return denied("Request is not valid yet")
	case now.After(c.at.Add(lifetime)):
		return denied("Request has expired")
	}
	return nil
}

// linkClaim also gives how long the link lives.
func linkClaim(query url.Values) (claim, time.Duration, error) {
	bad := func(reason string) (claim, time.Duration, error) {
		return claim{}, 0, refuse(http.StatusBadRequest, "AuthorizationQueryParametersError", reason)
	}
	for _, name := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"} {
		if len(query[name]) != 1 {
			return bad("Query-string authentication needs " + name + ", once.")
		}
	}
	if query.Get("X-Amz-Algorithm") != algorithm {
		return bad("X-Amz-Algorithm only supports " + algorithm + ".")
	}
	at, err := time.Parse(dateLayout, query.Get("X-Amz-Date"))
	if err != nil {
		return bad("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\".")
	}
	seconds, err := strconv.Atoi(query.Get("X-Amz-Expires"))
	if err != nil || seconds < 1 || seconds > longest {
		return bad("X-Amz-Expires must be a number of seconds from 1 to 604800.")
	}
	return claim{
		credential: query.Get("X-Amz-Credential"),
		headers:    strings.Split(query.Get("X-Amz-SignedHeaders"), ";"),
		signature:  query.Get("X-Amz-Signature"),
		at:         at,
	}, time.Duration(seconds) * time.Second, nil
}

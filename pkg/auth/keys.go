package auth

import (
	"context"
	"crypto/rsa"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
)

const (
	unknownPause = 5 * time.Minute // between two fetches that an unknown kid may cause
	firstPause   = time.Second     // between two tries while no set was ever loaded
	refreshAfter = time.Hour       // age at which a set is fetched again, so that a withdrawn key is noticed
	fetchTimeout = 5 * time.Second
	maxKeySet    = 1 << 20 // bytes
	minKeyBits   = 2048    // RFC 7518 section 3.3
)

// keys knows the pool's signing keys. A set that was loaded is used until a newer one was: the endpoint may be down for as
// long as it likes. Fetches are one at a time and never more than the pauses allow, whatever tokens strangers send.
type keys struct {
	ctx    context.Context // ends every fetch
	url    string
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	mu        sync.Mutex
	ring      *ring         // nil until a fetch succeeded
	failure   error         // of the last fetch while ring is nil
	flight    chan struct{} // closed when the fetch under way has ended; nil when there is none
	fetchedAt time.Time     // when a fetch last ended, well or not
	unknownAt time.Time     // when an unknown kid last caused one
}

// current gives the set in use, nil if none was ever loaded. An old set is renewed in the background.
func (k *keys) current() *ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring != nil && k.flight == nil && k.now().Sub(k.fetchedAt) >= refreshAfter {
		k.fetch()
	}
	return k.ring
}

// find gives the key that a kid names and the set that it is of. It fetches when it has to and may.
func (k *keys) find(ctx context.Context, id string) (*ring, *rsa.PublicKey, error) {
	for range 2 { // twice: a fetch that was joined may have begun before the key was published
		current := k.current()
		if key := current.key(id); key != nil {
			return current, key, nil
		}
		landed := k.ask()
		if landed == nil {
			break
		}
		select {
		case <-landed:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("auth: waiting for the signing keys: %w", ctx.Err())
		}
	}
	return k.settle(id)
}

// settle answers for a kid when there is nothing left to wait for.
func (k *keys) settle(id string) (*ring, *rsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring == nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeysUnavailable, k.failure)
	}
	key := k.ring.key(id)
	if key == nil {
		return nil, nil, unauthenticated("the token's kid is not a key of the user pool")
	}
	return k.ring, key, nil
}

// ask joins the fetch under way or, if a pause allows it, begins one. It gives nil when there is nothing to wait for.
func (k *keys) ask() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	switch {
	case k.flight != nil:
		return k.flight
	case k.ring == nil && now.Sub(k.fetchedAt) >= firstPause:
	case k.ring != nil && now.Sub(k.unknownAt) >= unknownPause:
		k.unknownAt = now
	default:
		return nil
	}
	k.fetch()
	return k.flight
}

// fetch begins a fetch. It belongs to nobody's request, so that a caller who hangs up does not take it from the others. The
// caller holds mu.
func (k *keys) fetch() {
	landed := make(chan struct{})
	k.flight = landed
	go func() {
		defer close(landed)
		fetched, err := k.download()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.flight, k.fetchedAt = nil, k.now()
		switch {
		case err == nil:
			k.ring, k.failure = fetched, nil
		case k.ring == nil: // whoever asks is told
			k.failure = err
		default: // nobody is told: the set in use goes on serving
			k.log.WarnContext(k.ctx, "user pool's key set not refreshed", "error", err)
		}
	}()
}

func (k *keys) download() (*ring, error) {
	ctx, cancel := context.WithTimeout(k.ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, fmt.Errorf("auth: asking for the key set: %w", err)
	}
	response, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("auth: fetching the key set: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("auth: fetching the key set: status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet))
	if err != nil {
		return nil, fmt.Errorf("auth: reading the key set: %w", err)
	}
	return parseKeySet(body)
}

// ring is one fetched key set. It never changes; a fetch makes a new one.
type ring struct {
	byID map[string]*rsa.PublicKey
}

// key gives nil for a kid that the set does not have, and for every kid while there is no set.
func (r *ring) key(id string) *rsa.PublicKey {
	if r == nil {
		return nil
	}
	return r.byID[id]
}

// parseKeySet reads a JWK Set (RFC 7517 section 5). Keys that are not for RS256 signatures are passed over; a set without any
// that is would lock everybody out and counts as a failed fetch.
func parseKeySet(body []byte) (*ring, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("auth: reading the key set: %w", err)
	}
	byID := make(map[string]*rsa.PublicKey)
	for _, raw := range set.Keys {
		if id, key := parseKey(raw); key != nil {
			byID[id] = key
		}
	}
	if len(byID) == 0 {
		return nil, errors.New("auth: the key set has no key for RS256 signatures")
	}
	return &ring{byID: byID}, nil
}

// parseKey gives the kid and the key of one JWK; nil if it is not for RS256 signatures.
func parseKey(raw jsontext.Value) (string, *rsa.PublicKey) {
	// The library's own checks are left out: they would follow an x5u over the network.
	parsed, err := jwkset.NewJWKFromRawJSON([]byte(raw), jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
	if err != nil {
		return "", nil
	}
	meta := parsed.Marshal()
	key, isRSA := parsed.Key().(*rsa.PublicKey)
	switch {
	case !isRSA || key.N.BitLen() < minKeyBits, meta.KID == "",
		meta.ALG != "" && meta.ALG != jwkset.AlgRS256,
		meta.USE != "" && meta.USE != jwkset.UseSig:
		return "", nil
	}
	return meta.KID, key
}

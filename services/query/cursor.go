package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"time"
	"uuid"

	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

// A cursor is the position of the last run shown and a digest of the list and the filters that it was shown under, in base64url. It is no
// secret and grants nothing: the tenant is always the caller's own.
const (
	digestLen = 8
	cursorLen = digestLen + 8 + 16
)

// listDigest tells whether two requests ask for the same list; the size of the pages does not matter.
func listDigest(path string, query url.Values) []byte {
	filters := url.Values{}
	for name, values := range query {
		if name != "cursor" && name != "limit" {
			filters[name] = values
		}
	}
	sum := sha256.Sum256([]byte(path + "?" + filters.Encode()))
	return sum[:digestLen]
}

func writeCursor(path string, query url.Values, last store.Position) string {
	id := uuid.MustParse(last.ID)
	raw := binary.BigEndian.AppendUint64(listDigest(path, query), uint64(last.CreatedAt.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(raw, id[:]...))
}

var notACursor = &web.MalformedError{Field: "cursor", Reason: "is not a cursor of this list; take nextCursor of an earlier page as it is"}

// readCursor returns the zero position where there is no cursor.
func readCursor(path string, query url.Values) (store.Position, error) {
	if !query.Has("cursor") {
		return store.Position{}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(query.Get("cursor"))
	if err != nil || len(raw) != cursorLen {
		return store.Position{}, notACursor
	}
	if string(raw[:digestLen]) != string(listDigest(path, query)) {
		return store.Position{}, &web.MalformedError{Field: "cursor", Reason: "belongs to another list or other filters; begin again without a cursor"}
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(raw[digestLen:]))).UTC()
	if !ordinary(at) {
		return store.Position{}, notACursor
	}
	return store.Position{CreatedAt: at, ID: uuid.UUID(raw[digestLen+8:]).String()}, nil
}

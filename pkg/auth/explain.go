package auth

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Finding is what Explain says of one part of a signed webhook.
type Finding struct {
	Part string `json:"part"` // id, timestamp, signature, secret or body
	Good bool   `json:"good"`
	Says string `json:"says"`
}

// Explain looks at a signed message part by part, for a person who has to find out why it is refused. It agrees with Verify: all
// findings are good exactly when Verify accepts. It repeats neither a secret nor the signature that would have been right.
func (w *Webhooks) Explain(header http.Header, body []byte) []Finding {
	id, timestamp := w.explainID(header), w.explainTime(header)
	given, err := single(header, headerSignature)
	if err != nil {
		return []Finding{id, timestamp, {"signature", false, reason(err)}}
	}
	m := message{header.Get(headerID), header.Get(headerTimestamp), body}
	for i, secret := range w.secrets {
		for one := range strings.SplitSeq(given, " ") {
			if hmac.Equal([]byte(one), []byte(sign(secret, m.id, m.timestamp, body))) {
				return []Finding{id, timestamp, {"signature", true, "there is one of version v1"},
					{"secret", true, fmt.Sprintf("it was made with secret %d of %d", i+1, len(w.secrets))}, {"body", true, "as it was signed"}}
			}
		}
	}
	return append([]Finding{id, timestamp}, w.explainMismatch(given, m)...)
}

// message is what a signature is over.
type message struct {
	id, timestamp string
	body          []byte
}

func reason(err error) string {
	if refused, ok := errors.AsType[*UnauthenticatedError](err); ok {
		return refused.Reason
	}
	return err.Error()
}

func (w *Webhooks) explainID(header http.Header) Finding {
	id, err := single(header, headerID)
	if err != nil {
		return Finding{"id", false, reason(err)}
	}
	return Finding{"id", true, id}
}

func (w *Webhooks) explainTime(header http.Header) Finding {
	text, err := single(header, headerTimestamp)
	if err == nil {
		err = w.checkTime(text)
	}
	seconds, bad := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && bad == nil && seconds > 1e11:
		return Finding{"timestamp", false, reason(err) + ": it looks like milliseconds, and must be seconds since 1970"}
	case err != nil && bad == nil:
		return Finding{"timestamp", false, reason(err) + ": it says " + time.Unix(seconds, 0).UTC().Format(time.RFC3339) + ", and here it is " +
			w.now().UTC().Format(time.RFC3339)}
	case err != nil:
		return Finding{"timestamp", false, reason(err)}
	}
	return Finding{"timestamp", true, w.now().Sub(time.Unix(seconds, 0)).Round(time.Second).String() + " old; 5m0s either way are allowed"}
}

// explainMismatch is for a message that no known secret has signed as it stands.
func (w *Webhooks) explainMismatch(given string, m message) []Finding {
	sums, form := readSignatures(given)
	if len(sums) == 0 {
		return []Finding{form}
	}
	for i, secret := range w.secrets {
		for _, key := range misreadings(secret) {
			for _, changed := range distortions(m) {
				sum := changed.sum(key.bytes)
				if !anyEqual(sums, sum) {
					continue
				}
				found := []Finding{form, {"secret", key.says == "", fmt.Sprintf("secret %d of %d%s", i+1, len(w.secrets), key.says)}}
				return append(found, Finding{"body", changed.says == "", cmp.Or(changed.says, "as it was signed")})
			}
		}
	}
	return []Finding{form, {"secret", false, fmt.Sprintf(
		"none of the %d secrets fits: the sender has another one, or the id, the timestamp or the body were changed after signing", len(w.secrets))}}
}

// readSignatures reads the sums of the v1 signatures, and says what is wrong with those that are none.
func readSignatures(given string) ([][]byte, Finding) {
	var sums [][]byte
	var wrong []string
	for one := range strings.SplitSeq(given, " ") {
		version, text, ok := strings.Cut(one, ",")
		sum, err := base64.StdEncoding.Strict().DecodeString(text)
		if fromHex, hexErr := hex.DecodeString(text); hexErr == nil && len(fromHex) == sha256.Size {
			sums, wrong = append(sums, fromHex), append(wrong, "one is written in hexadecimal and must be base64")
			continue
		}
		switch {
		case !ok:
			wrong = append(wrong, "one has no version before a comma, such as v1,…")
		case version != "v1":
			wrong = append(wrong, fmt.Sprintf("one is of version %q, and only v1 is known here", version))
		case err != nil || len(sum) != sha256.Size:
			wrong = append(wrong, "one is not 32 bytes in base64")
		default:
			sums = append(sums, sum)
		}
	}
	if len(wrong) > 0 {
		return sums, Finding{"signature", false, strings.Join(wrong, "; ")}
	}
	return sums, Finding{"signature", true, fmt.Sprintf("%d of version v1", len(sums))}
}

// misreading is a key that a sender may have used in place of the secret's bytes.
type misreading struct {
	bytes []byte
	says  string // "" for the right one
}

func misreadings(secret []byte) []misreading {
	text := base64.StdEncoding.EncodeToString(secret)
	return []misreading{
		{secret, ""},
		{[]byte(secretPrefix + text), ", but its whole text was the key: take away whsec_ and decode the rest as base64"},
		{[]byte(text), ", but its text was the key: decode what follows whsec_ as base64"},
	}
}

// distortion is what a message may have been when it was signed.
type distortion struct {
	content []byte
	says    string // "" for what arrived
}

func (d distortion) sum(key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(d.content)
	return mac.Sum(nil)
}

// distortions are the usual accidents between signing and sending.
func distortions(m message) []distortion {
	before := m.id + "." + m.timestamp + "."
	all := []distortion{{[]byte(before + string(m.body)), ""}}
	changed := func(body []byte, says string) {
		all = append(all, distortion{append([]byte(before), body...), "changed after signing: " + says})
	}
	changed(bytes.TrimSuffix(bytes.TrimSuffix(m.body, []byte("\n")), []byte("\r")), "a line break was added at its end")
	changed(bytes.TrimRight(m.body, "\r\n"), "line breaks were added at its end")
	changed(append(bytes.Clone(m.body), '\n'), "the line break at its end was taken away")
	changed(bytes.ReplaceAll(m.body, []byte("\r\n"), []byte("\n")), "its line breaks became CR LF")
	changed(bytes.ReplaceAll(m.body, []byte("\n"), []byte("\r\n")), "its line breaks became LF")
	changed(bytes.TrimPrefix(m.body, []byte("\ufeff")), "a byte order mark was put before it")
	if compact := jsontext.Value(bytes.Clone(m.body)); compact.Compact() == nil {
		changed(compact, "its JSON was written anew, with other white space")
	}
	return append(all,
		distortion{[]byte(m.timestamp + "." + string(m.body)), "signed without the id: the signature is over id.timestamp.body"},
		distortion{m.body, "signed alone: the signature is over id.timestamp.body"},
	)
}

func anyEqual(sums [][]byte, sum []byte) bool {
	for _, s := range sums {
		if hmac.Equal(s, sum) {
			return true
		}
	}
	return false
}

package auth

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Catches an explanation that blames the wrong part, and one that gives a secret or a good signature away.
func TestExplain(t *testing.T) {
	t.Parallel()
	mine, other := secretOf(32, 'a'), secretOf(32, 'b')
	w := mustWebhooks(t, exampleTime, other, mine)
	body := []byte("{\"event\": \"parsed\"}\n")
	signed := func(secret, id string, at time.Time, body []byte) http.Header {
		return mustWebhooks(t, exampleTime, secret).Sign(id, at, body)
	}
	good := signed(mine, exampleID, exampleTime, body)
	with := func(name string, values ...string) http.Header {
		h := maps.Clone(good)
		h.Del(name)
		for _, v := range values {
			h.Add(name, v)
		}
		return h
	}
	signature := good.Get(headerSignature)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
	if err != nil {
		t.Fatal(err)
	}
	by := func(key []byte, content string) http.Header {
		return with(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(distortion{content: []byte(content)}.sum(key)))
	}
	before := exampleID + ".1614265330."
	key := []byte(strings.Repeat("a", 32))
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   string // the bad parts, each with words that its explanation must hold
	}{
		"good":                 {good, string(body), ""},
		"two signatures":       {with(headerSignature, "v1,AAAA "+signature), string(body), ""},
		"no id":                {with(headerID), string(body), "id: there is no webhook-id header; secret: none of the 2"},
		"two ids":              {with(headerID, "a", "b"), string(body), "id: more than one"},
		"no timestamp":         {with(headerTimestamp), string(body), "timestamp: there is no"},
		"old":                  {signed(mine, exampleID, exampleTime.Add(-301*time.Second), body), string(body), "timestamp: more than 5 minutes old"},
		"early":                {signed(mine, exampleID, exampleTime.Add(301*time.Second), body), string(body), "timestamp: in the future"},
		"milliseconds":         {with(headerTimestamp, "1614265330000"), string(body), "timestamp: looks like milliseconds"},
		"words for a time":     {with(headerTimestamp, "now"), string(body), "timestamp: not a number"},
		"no signature":         {with(headerSignature), string(body), "signature: there is no webhook-signature header"},
		"another version":      {with(headerSignature, strings.Replace(signature, "v1", "v1a", 1)), string(body), `signature: version "v1a"`},
		"no version":           {with(headerSignature, signature[3:]), string(body), "signature: no version"},
		"hexadecimal":          {with(headerSignature, "v1,"+hex.EncodeToString(raw)), string(body), "signature: hexadecimal"},
		"not base64":           {with(headerSignature, "v1,%%"), string(body), "signature: not 32 bytes"},
		"another secret":       {signed(secretOf(32, 'c'), exampleID, exampleTime, body), string(body), "secret: none of the 2 secrets fits"},
		"another body":         {good, "{}", "secret: the body were changed"},
		"line break lost":      {good, string(body[:len(body)-1]), "body: was taken away"},
		"line break added":     {good, string(body) + "\r\n", "body: a line break was added"},
		"CR LF":                {good, strings.ReplaceAll(string(body), "\n", "\r\n"), "body: became CR LF"},
		"a byte order mark":    {good, "\ufeff" + string(body), "body: byte order mark"},
		"other white space":    {by(key, before+`{"event":"parsed"}`), string(body), "body: written anew"},
		"signed without id":    {by(key, "1614265330."+string(body)), string(body), "body: without the id"},
		"signed the body only": {by(key, string(body)), string(body), "body: signed alone"},
		"key as text":          {by([]byte(mine), before+string(body)), string(body), "secret: its whole text was the key"},
		"key not decoded":      {by([]byte(mine[6:]), before+string(body)), string(body), "secret: decode what follows"},
	} {
		findings := w.Explain(c.header, []byte(c.body))
		check(t, name, findings, c.want)
		for _, f := range findings {
			if strings.Contains(f.Says, mine[6:]) || strings.Contains(f.Says, signature[3:]) {
				t.Errorf("%s: the explanation gives something away: %s", name, f.Says)
			}
		}
	}
}

func check(t *testing.T, name string, findings []Finding, want string) {
	t.Helper()
	bad := map[string]string{}
	for _, f := range findings {
		if !f.Good {
			bad[f.Part] = f.Says
		}
	}
	for blame := range strings.SplitSeq(want, "; ") {
		part, words, _ := strings.Cut(blame, ": ")
		if part != "" && !strings.Contains(bad[part], words) {
			t.Errorf("%s: %s is said to be %q, want %q", name, part, bad[part], words)
		}
	}
	if (want == "") != (len(bad) == 0) {
		t.Errorf("%s: bad are %v", name, bad)
	}
}

// Catches an explanation that finds nothing wrong where Verify refuses, or something where it accepts.
func TestExplainAgreesWithVerify(t *testing.T) {
	t.Parallel()
	secrets := []string{secretOf(32, 'a'), secretOf(24, 'b'), secretOf(40, 'c')}
	w := mustWebhooks(t, exampleTime, secrets[0], secrets[1])
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		signer, err := NewWebhooks([]string{rapid.SampledFrom(secrets).Draw(t, "secret")}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(rapid.SampledFrom([]string{"", "{}", "{}\n", "{ }"}).Draw(t, "body"))
		at := exampleTime.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 299, -299, 301, -301}).Draw(t, "late")) * time.Second)
		header := signer.Sign("msg_1", at, body)
		switch rapid.IntRange(0, 8).Draw(t, "change") {
		case 0:
			header.Add(rapid.SampledFrom([]string{headerID, headerTimestamp, headerSignature}).Draw(t, "twice"), "x")
		case 1:
			header.Set(rapid.SampledFrom([]string{headerID, headerTimestamp, headerSignature}).Draw(t, "emptied"), "")
		case 2:
			header.Set(headerSignature, "v1,AAAA "+header.Get(headerSignature)+" v2,x")
		case 3:
			header.Set(headerSignature, " "+header.Get(headerSignature)+"  ")
		case 4:
			body = append(body, '\n')
		}
		refused := w.Verify(header, body)
		good := true
		for _, f := range w.Explain(header, body) {
			good = good && f.Good
		}
		if good != (refused == nil) {
			t.Fatalf("Verify says %v, Explain %+v", refused, w.Explain(header, body))
		}
		if good {
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("nothing was accepted: nothing is shown")
	}
}

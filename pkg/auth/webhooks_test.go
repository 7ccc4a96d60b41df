package auth

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The example of the Standard Webhooks libraries.
const (
	exampleSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	exampleBody      = `{"test": 2432232314}`
	exampleSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var exampleTime = time.Unix(1614265330, 0)

func secretOf(bytes int, fill byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(fill), bytes)))
}

func mustWebhooks(t *testing.T, now time.Time, secrets ...string) *Webhooks {
	t.Helper()
	w, err := NewWebhooks(secrets, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWebhookExample(t *testing.T) {
	w := mustWebhooks(t, exampleTime, exampleSecret)
	header := w.Sign(exampleID, exampleTime, []byte(exampleBody))
	for name, want := range map[string]string{
		"webhook-id": exampleID, "webhook-timestamp": "1614265330", "webhook-signature": exampleSignature,
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if err := w.Verify(header, []byte(exampleBody)); err != nil {
		t.Error(err)
	}
}

// The reference library signs what we verify, and verifies what we sign.
func TestWebhooksAgreeWithTheReference(t *testing.T) {
	now := time.Now()
	for i, body := range []string{"", "{}", exampleBody, "\x00\xff not JSON", strings.Repeat("あ", 10_000)} {
		secret, id := secretOf(24+10*i, byte('a'+i)), fmt.Sprintf("msg_%d", i)
		reference, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		w := mustWebhooks(t, now, secret)
		if err := reference.Verify([]byte(body), w.Sign(id, now, []byte(body))); err != nil {
			t.Errorf("body %d: the reference refuses our signature: %v", i, err)
		}
		signature, err := reference.Sign(id, now, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify(headerOf(id, fmt.Sprint(now.Unix()), signature), []byte(body)); err != nil {
			t.Errorf("body %d: we refuse the reference's signature: %v", i, err)
		}
	}
}

func headerOf(id, timestamp, signature string) http.Header {
	header := make(http.Header)
	for name, value := range map[string]string{
		"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature,
	} {
		if value != "" {
			header.Set(name, value)
		}
	}
	return header
}

func TestWebhookTimes(t *testing.T) {
	for name, c := range map[string]struct {
		off    time.Duration // of the timestamp from now
		reason string
	}{
		"now":                {0, ""},
		"299 s old":          {-299 * time.Second, ""},
		"300 s old":          {-300 * time.Second, ""},
		"301 s old":          {-301 * time.Second, "more than 5 minutes old"},
		"299 s ahead":        {299 * time.Second, ""},
		"300 s ahead":        {300 * time.Second, ""},
		"301 s ahead":        {301 * time.Second, "more than 5 minutes in the future"},
		"from the last year": {-365 * 24 * time.Hour, "more than 5 minutes old"},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustWebhooks(t, exampleTime, exampleSecret)
			err := w.Verify(w.Sign(exampleID, exampleTime.Add(c.off), []byte(exampleBody)), []byte(exampleBody))
			if c.reason == "" {
				if err != nil {
					t.Error(err)
				}
			} else if reason := mustRefuse(t, err); !strings.Contains(reason, c.reason) {
				t.Errorf("reason %q, want %q in it", reason, c.reason)
			}
		})
	}
}

func TestWebhookRotation(t *testing.T) {
	older, newer, strange := secretOf(32, 'o'), secretOf(32, 'n'), secretOf(32, 's')
	body := []byte(exampleBody)
	both := mustWebhooks(t, exampleTime, newer, older)
	for _, secret := range []string{older, newer} {
		if err := both.Verify(mustWebhooks(t, exampleTime, secret).Sign(exampleID, exampleTime, body), body); err != nil {
			t.Error(err)
		}
	}
	mustRefuse(t, both.Verify(mustWebhooks(t, exampleTime, strange).Sign(exampleID, exampleTime, body), body))
	if err := mustWebhooks(t, exampleTime, newer).Verify(both.Sign(exampleID, exampleTime, body), body); err != nil {
		t.Errorf("Sign does not use the first secret: %v", err)
	}
}

func TestWebhookSignatures(t *testing.T) {
	stamp := fmt.Sprint(exampleTime.Unix())
	_, digest, _ := strings.Cut(exampleSignature, ",")
	const unsigned = "no v1 signature"
	for name, c := range map[string]struct {
		header http.Header
		body   string
		reason string // empty: accepted
	}{
		"the example":               {headerOf(exampleID, stamp, exampleSignature), exampleBody, ""},
		"one of several":            {headerOf(exampleID, stamp, "v1,Zm9v v1a,YmFy "+exampleSignature), exampleBody, ""},
		"written anew":              {headerOf(exampleID, stamp, exampleSignature), `{"test":2432232314}`, unsigned},
		"a byte more":               {headerOf(exampleID, stamp, exampleSignature), exampleBody + "\n", unsigned},
		"no body":                   {headerOf(exampleID, stamp, exampleSignature), "", unsigned},
		"another id":                {headerOf("msg_other", stamp, exampleSignature), exampleBody, unsigned},
		"another time":              {headerOf(exampleID, "1614265331", exampleSignature), exampleBody, unsigned},
		"the time in another form":  {headerOf(exampleID, "+1614265330", exampleSignature), exampleBody, unsigned},
		"another version":           {headerOf(exampleID, stamp, "v2,"+digest), exampleBody, unsigned},
		"the asymmetric version":    {headerOf(exampleID, stamp, "v1a,"+digest), exampleBody, unsigned},
		"no version":                {headerOf(exampleID, stamp, digest), exampleBody, unsigned},
		"only the version":          {headerOf(exampleID, stamp, "v1,"), exampleBody, unsigned},
		"cut short":                 {headerOf(exampleID, stamp, exampleSignature[:20]), exampleBody, unsigned},
		"no id":                     {headerOf("", stamp, exampleSignature), exampleBody, "no webhook-id"},
		"no time":                   {headerOf(exampleID, "", exampleSignature), exampleBody, "no webhook-timestamp"},
		"no signature":              {headerOf(exampleID, stamp, ""), exampleBody, "no webhook-signature"},
		"nothing":                   {http.Header{}, exampleBody, "no webhook-id"},
		"a time with a fraction":    {headerOf(exampleID, stamp+".5", exampleSignature), exampleBody, "not a number of seconds"},
		"a time in words":           {headerOf(exampleID, "yesterday", exampleSignature), exampleBody, "not a number of seconds"},
		"a time beyond 64 bits":     {headerOf(exampleID, "9999999999999999999", exampleSignature), exampleBody, "not a number of seconds"},
		"the last time of 64 bits":  {headerOf(exampleID, "9223372036854775807", exampleSignature), exampleBody, "more than 5 minutes"},
		"the first time of 64 bits": {headerOf(exampleID, "-9223372036854775808", exampleSignature), exampleBody, "more than 5 minutes"},
		"a time in milliseconds":    {headerOf(exampleID, stamp+"000", exampleSignature), exampleBody, "in the future"},
		"two ids": {http.Header{"Webhook-Id": {exampleID, exampleID}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {exampleSignature}},
			exampleBody, "more than one webhook-id"},
	} {
		t.Run(name, func(t *testing.T) {
			err := mustWebhooks(t, exampleTime, exampleSecret).Verify(c.header, []byte(c.body))
			if c.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			reason := mustRefuse(t, err)
			if !strings.Contains(reason, c.reason) {
				t.Errorf("reason %q, want %q in it", reason, c.reason)
			}
			if strings.Contains(reason, digest) {
				t.Errorf("reason %q tells the right signature", reason)
			}
		})
	}
}

func TestWebhookSecrets(t *testing.T) {
	good := secretOf(32, 'g')
	for name, c := range map[string]struct {
		secrets []string
		problem string // empty: accepted
	}{
		"24 bytes":             {[]string{secretOf(24, 's')}, ""},
		"64 bytes":             {[]string{secretOf(64, 's')}, ""},
		"none":                 {nil, "no webhook secret"},
		"an empty one":         {[]string{""}, "secret 1 of 1: does not begin with whsec_"},
		"an empty one at last": {[]string{good, ""}, "secret 2 of 2"},
		"only the prefix":      {[]string{"whsec_"}, "has 0 bytes"},
		"23 bytes":             {[]string{secretOf(23, 's')}, "has 23 bytes"},
		"65 bytes":             {[]string{secretOf(65, 's')}, "has 65 bytes"},
		"no prefix":            {[]string{strings.TrimPrefix(good, "whsec_")}, "does not begin with whsec_"},
		"not base64":           {[]string{"whsec_hunter2!hunter2!hunter2!hunter2!"}, "not base64"},
		"two in one":           {[]string{good + " " + good}, "not base64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewWebhooks(c.secrets, time.Now)
			switch {
			case c.problem == "" && err != nil:
				t.Error(err)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("got %v, want %q in it", err, c.problem)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

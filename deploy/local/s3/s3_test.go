package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"framerun.dev/deploy/local/s3"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

// key has what result keys may have and what escaping gets wrong.
const key = "runs/0198/a b+c/結果=1&2.json"

// bench is one stand-in with one bucket, spoken to by the real SDK.
type bench struct {
	*testing.T
	ctx    context.Context
	base   string
	client *sdk.Client
	late   atomic.Int64 // nanoseconds by which the server's clock is ahead
}

func newBench(t *testing.T) *bench {
	t.Helper()
	listener := listen(t)
	b := &bench{T: t, ctx: t.Context(), base: "http://" + listener.Addr().String()}
	server, err := s3.New(s3.Config{
		AccessKeyID: "local", SecretAccessKey: "local-secret", Region: "eu-west-1", Buckets: []string{"artifacts"},
		Now: func() time.Time { return time.Now().Add(time.Duration(b.late.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	outer := &http.Server{Handler: server}
	served := make(chan error, 1)
	go func() { served <- outer.Serve(listener) }()
	t.Cleanup(func() {
		if err := outer.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving: %v", err)
		}
	})
	b.client = b.clientWith("local", "local-secret", "eu-west-1")
	return b
}

func (b *bench) clientWith(id, secret, region string) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: region, BaseEndpoint: &b.base, UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""),
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err == nil {
			return l
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return nil
}

func (b *bench) put(key, body string) {
	b.Helper()
	_, err := b.client.PutObject(b.ctx, &sdk.PutObjectInput{
		Bucket: aws.String("artifacts"), Key: &key, Body: strings.NewReader(body),
		ContentType: aws.String("application/json"), Metadata: map[string]string{"attempt": "1"},
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) link() string {
	b.Helper()
	signed, err := sdk.NewPresignClient(b.client).PresignGetObject(b.ctx, &sdk.GetObjectInput{
		Bucket: aws.String("artifacts"), Key: aws.String(key),
	}, sdk.WithPresignExpires(time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	return signed.URL
}

// fetch does what a browser would.
func (b *bench) fetch(method, link string, header http.Header) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.ctx, method, link, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header = header
	return b.do(r)
}

func (b *bench) do(r *http.Request) (*http.Response, string) {
	b.Helper()
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		b.Fatal(err)
	}
	return w, string(body)
}

func (b *bench) wantRefused(method, link string, status int, code, message string) {
	b.Helper()
	w, body := b.fetch(method, link, http.Header{})
	if w.StatusCode != status || !strings.Contains(body, "<Error><Code>"+code+"</Code><Message>"+message) {
		b.Errorf("got %d %s, want %d %s %s", w.StatusCode, body, status, code, message)
	}
	if got := w.Header.Get("Content-Type"); got != "application/xml" {
		b.Errorf("content type %q", got)
	}
	if got := w.Header.Get("Access-Control-Allow-Origin"); got != "*" {
		b.Errorf("a page cannot read the refusal: allowed origin %q", got)
	}
}

func (b *bench) wantCode(err error, code string) {
	b.Helper()
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || e.ErrorCode() != code {
		b.Errorf("got error %v, want code %s", err, code)
	}
}

// putSigned uploads with a payload hash that the SDK does not choose here.
func (b *bench) putSigned(hash string) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.ctx, http.MethodPut, b.base+"/artifacts/x", strings.NewReader("5\r\nhello\r\n0\r\n\r\n"))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("X-Amz-Content-Sha256", hash)
	key := aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local-secret"}
	if err := v4.NewSigner().SignHTTP(b.ctx, key, r, hash, "s3", "eu-west-1", time.Now()); err != nil {
		b.Fatal(err)
	}
	return b.do(r)
}

// TestConformance holds the stand-in to what the real SDK and browsers with
// its links rely on. Each check has a server of its own.
func TestConformance(t *testing.T) {
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(newBench(t))
		})
	}
}

var checks = map[string]func(*bench){
	"put, then get the same bytes, type and metadata": func(b *bench) {
		b.put(key, `{"name":"フレーム"}`)
		got, err := b.client.GetObject(b.ctx, &sdk.GetObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key)})
		if err != nil {
			b.Fatal(err)
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		if err != nil || string(body) != `{"name":"フレーム"}` {
			b.Errorf("got %q, %v", body, err)
		}
		if *got.ContentType != "application/json" || got.Metadata["attempt"] != "1" {
			b.Errorf("got type %q, metadata %v", *got.ContentType, got.Metadata)
		}
	},
	"head tells size, type and ETag": func(b *bench) {
		b.put(key, "hello")
		got, err := b.client.HeadObject(b.ctx, &sdk.HeadObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key)})
		if err != nil {
			b.Fatal(err)
		}
		if *got.ContentLength != 5 || *got.ContentType != "application/json" || *got.ETag != `"5d41402abc4b2a76b9719d911017c592"` {
			b.Errorf("got %d bytes of %s, ETag %s", *got.ContentLength, *got.ContentType, *got.ETag)
		}
	},
	"part of an object": func(b *bench) {
		b.put(key, "hello")
		got, err := b.client.GetObject(b.ctx, &sdk.GetObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key), Range: aws.String("bytes=1-2")})
		if err != nil {
			b.Fatal(err)
		}
		defer got.Body.Close()
		if body, err := io.ReadAll(got.Body); err != nil || string(body) != "el" {
			b.Errorf("got %q, %v", body, err)
		}
	},
	"an empty object": func(b *bench) {
		b.put(key, "")
		if w, body := b.fetch(http.MethodGet, b.link(), http.Header{}); w.StatusCode != http.StatusOK || body != "" {
			b.Errorf("got %d %q", w.StatusCode, body)
		}
	},
	"a large object": func(b *bench) {
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		b.put(key, string(want))
		if _, got := b.fetch(http.MethodGet, b.link(), http.Header{}); got != string(want) {
			b.Errorf("got %d other bytes, want %d", len(got), len(want))
		}
	},
	"put again replaces": func(b *bench) {
		b.put(key, "old")
		b.put(key, "new")
		if _, body := b.fetch(http.MethodGet, b.link(), http.Header{}); body != "new" {
			b.Errorf("got %q", body)
		}
	},
	"a deleted object is gone": func(b *bench) {
		b.put(key, "hello")
		if _, err := b.client.DeleteObject(b.ctx, &sdk.DeleteObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key)}); err != nil {
			b.Fatal(err)
		}
		_, err := b.client.HeadObject(b.ctx, &sdk.HeadObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key)})
		if _, ok := errors.AsType[*types.NotFound](err); !ok {
			b.Errorf("got %v", err)
		}
	},
	"list by prefix, page by page": func(b *bench) {
		for _, k := range []string{"a/1", "a/2", "a/3", "b/1"} {
			b.put(k, "x")
		}
		var got []string
		pages := sdk.NewListObjectsV2Paginator(b.client, &sdk.ListObjectsV2Input{Bucket: aws.String("artifacts"), Prefix: aws.String("a/"), MaxKeys: aws.Int32(2)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(b.ctx)
			if err != nil {
				b.Fatal(err)
			}
			for _, o := range page.Contents {
				got = append(got, *o.Key)
			}
		}
		if diff := cmp.Diff([]string{"a/1", "a/2", "a/3"}, got); diff != "" {
			b.Error(diff)
		}
	},
	"a missing key is NoSuchKey": func(b *bench) {
		_, err := b.client.GetObject(b.ctx, &sdk.GetObjectInput{Bucket: aws.String("artifacts"), Key: aws.String("nowhere")})
		if _, ok := errors.AsType[*types.NoSuchKey](err); !ok {
			b.Errorf("got %v", err)
		}
	},
	"a missing bucket is NoSuchBucket": func(b *bench) {
		_, err := b.client.PutObject(b.ctx, &sdk.PutObjectInput{Bucket: aws.String("nowhere"), Key: aws.String(key), Body: strings.NewReader("x")})
		b.wantCode(err, "NoSuchBucket")
	},
	"an unknown access key is refused": func(b *bench) {
		_, err := b.clientWith("stranger", "local-secret", "eu-west-1").ListBuckets(b.ctx, &sdk.ListBucketsInput{})
		b.wantCode(err, "InvalidAccessKeyId")
	},
	"a wrong secret is refused": func(b *bench) {
		_, err := b.clientWith("local", "guess", "eu-west-1").PutObject(b.ctx, &sdk.PutObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key), Body: strings.NewReader("x")})
		b.wantCode(err, "SignatureDoesNotMatch")
	},
	"a request for another region is refused": func(b *bench) {
		_, err := b.clientWith("local", "local-secret", "us-east-1").ListBuckets(b.ctx, &sdk.ListBucketsInput{})
		b.wantCode(err, "AuthorizationHeaderMalformed")
	},
	"an old signed request is refused": func(b *bench) {
		b.late.Store(int64(16 * time.Minute))
		_, err := b.client.ListBuckets(b.ctx, &sdk.ListBucketsInput{})
		b.wantCode(err, "RequestTimeTooSkewed")
	},
	"a body other than the signed one is refused and not stored": func(b *bench) {
		client := sdk.New(b.client.Options(), func(o *sdk.Options) { o.HTTPClient = swapBody{} })
		_, err := client.PutObject(b.ctx, &sdk.PutObjectInput{Bucket: aws.String("artifacts"), Key: aws.String(key), Body: strings.NewReader("good")})
		b.wantCode(err, "XAmzContentSHA256Mismatch")
		if w, _ := b.fetch(http.MethodGet, b.link(), http.Header{}); w.StatusCode != http.StatusNotFound {
			b.Errorf("then got %d", w.StatusCode)
		}
	},
	"a body may go unsigned": func(b *bench) {
		if w, body := b.putSigned("UNSIGNED-PAYLOAD"); w.StatusCode != http.StatusOK {
			b.Errorf("got %d %s", w.StatusCode, body)
		}
	},
	"a body in chunks is refused rather than stored with its frames": func(b *bench) {
		if w, body := b.putSigned("STREAMING-UNSIGNED-PAYLOAD-TRAILER"); w.StatusCode != http.StatusNotImplemented {
			b.Errorf("got %d %s", w.StatusCode, body)
		}
	},
	"an unsigned request is refused": func(b *bench) {
		b.put(key, "hello")
		link, _, _ := strings.Cut(b.link(), "?")
		b.wantRefused(http.MethodGet, link, http.StatusForbidden, "AccessDenied", "Access Denied")
		b.wantRefused(http.MethodPut, link, http.StatusForbidden, "AccessDenied", "Access Denied")
	},
	"a link works until it expires": func(b *bench) {
		b.put(key, "hello")
		link := b.link()
		b.late.Store(int64(50 * time.Second))
		w, body := b.fetch(http.MethodGet, link, http.Header{"Origin": {"null"}})
		if w.StatusCode != http.StatusOK || body != "hello" || w.Header.Get("Content-Type") != "application/json" {
			b.Errorf("got %d %q of %s", w.StatusCode, body, w.Header.Get("Content-Type"))
		}
		b.late.Store(int64(61 * time.Second))
		b.wantRefused(http.MethodGet, link, http.StatusForbidden, "AccessDenied", "Request has expired")
	},
	"a link from the future is refused": func(b *bench) {
		link := b.link()
		b.late.Store(-int64(16 * time.Minute))
		b.wantRefused(http.MethodGet, link, http.StatusForbidden, "AccessDenied", "Request is not valid yet")
	},
	"a link to another key is refused": func(b *bench) {
		b.put("runs/0199/secret", "x")
		link := b.link()
		_, query, _ := strings.Cut(link, "?")
		b.wantRefused(http.MethodGet, b.base+"/artifacts/runs/0199/secret?"+query, http.StatusForbidden, "SignatureDoesNotMatch", "")
	},
	"a link with a longer life is refused": func(b *bench) {
		link := strings.Replace(b.link(), "X-Amz-Expires=60", "X-Amz-Expires=600", 1)
		b.wantRefused(http.MethodGet, link, http.StatusForbidden, "SignatureDoesNotMatch", "")
	},
	"a link with more in it is refused": func(b *bench) {
		b.wantRefused(http.MethodGet, b.link()+"&response-content-type=text%2Fhtml", http.StatusForbidden, "SignatureDoesNotMatch", "")
	},
	"a link for more than a week is refused": func(b *bench) {
		link := strings.Replace(b.link(), "X-Amz-Expires=60", "X-Amz-Expires=604801", 1)
		b.wantRefused(http.MethodGet, link, http.StatusBadRequest, "AuthorizationQueryParametersError", "")
	},
	"a link without its signature is refused": func(b *bench) {
		link, _, _ := strings.Cut(b.link(), "&X-Amz-Signature=")
		b.wantRefused(http.MethodGet, link, http.StatusBadRequest, "AuthorizationQueryParametersError", "")
	},
	"a link with a header that was not signed is refused": func(b *bench) {
		b.put(key, "hello")
		w, _ := b.fetch(http.MethodGet, b.link(), http.Header{"X-Amz-Meta-Mine": {"1"}})
		if w.StatusCode != http.StatusForbidden {
			b.Errorf("got %d", w.StatusCode)
		}
	},
	"a link for reading does not write": func(b *bench) {
		b.put(key, "hello")
		link := b.link()
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
			b.wantRefused(method, link, http.StatusForbidden, "SignatureDoesNotMatch", "")
		}
		if w, _ := b.fetch(http.MethodHead, link, http.Header{}); w.StatusCode != http.StatusForbidden {
			b.Errorf("HEAD: got %d", w.StatusCode)
		}
		if _, body := b.fetch(http.MethodGet, link, http.Header{}); body != "hello" {
			b.Errorf("got %q", body)
		}
	},
	"a link for writing writes": func(b *bench) {
		signed, err := sdk.NewPresignClient(b.client).PresignPutObject(b.ctx, &sdk.PutObjectInput{
			Bucket: aws.String("artifacts"), Key: aws.String(key), ContentType: aws.String("text/plain"),
		})
		if err != nil {
			b.Fatal(err)
		}
		r, err := http.NewRequestWithContext(b.ctx, signed.Method, signed.URL, strings.NewReader("sent by link"))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = signed.SignedHeader
		w, _ := b.do(r)
		if _, body := b.fetch(http.MethodGet, b.link(), http.Header{}); w.StatusCode != http.StatusOK || body != "sent by link" {
			b.Errorf("got %d, then %q", w.StatusCode, body)
		}
	},
	"any page may read": func(b *bench) {
		b.put(key, "hello")
		w, _ := b.fetch(http.MethodGet, b.link(), http.Header{"Origin": {"null"}})
		if got := w.Header.Values("Access-Control-Allow-Origin"); !cmp.Equal(got, []string{"*"}) {
			b.Errorf("allowed origins %q", got)
		}
		if got := w.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, "ETag") {
			b.Errorf("exposed headers %q", got)
		}
	},
	"a preflight for reading needs no signature": func(b *bench) {
		w, _ := b.fetch(http.MethodOptions, b.base+"/artifacts/x", http.Header{
			"Origin": {"null"}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"range"},
		})
		got := []string{w.Status, w.Header.Get("Access-Control-Allow-Origin"), w.Header.Get("Access-Control-Allow-Methods"), w.Header.Get("Access-Control-Allow-Headers")}
		if diff := cmp.Diff([]string{"200 OK", "*", "GET, HEAD", "range"}, got); diff != "" {
			b.Error(diff)
		}
	},
	"a preflight for writing is refused": func(b *bench) {
		w, _ := b.fetch(http.MethodOptions, b.base+"/artifacts/x", http.Header{"Origin": {"null"}, "Access-Control-Request-Method": {"PUT"}})
		if w.StatusCode != http.StatusForbidden {
			b.Errorf("got %d", w.StatusCode)
		}
	},
}

// swapBody sends other bytes than those that were signed.
type swapBody struct{}

func (swapBody) Do(r *http.Request) (*http.Response, error) {
	r.Body = io.NopCloser(strings.NewReader("evil"))
	return http.DefaultClient.Do(r)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]s3.Config{
		"no key pair":    {Buckets: []string{"artifacts"}},
		"bad bucket":     {AccessKeyID: "a", SecretAccessKey: "b", Buckets: []string{"No Such Name"}},
		"one name twice": {AccessKeyID: "a", SecretAccessKey: "b", Buckets: []string{"artifacts", "artifacts"}},
	} {
		if _, err := s3.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

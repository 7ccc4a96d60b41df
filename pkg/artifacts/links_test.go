package artifacts

import (
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Catches a link that works for longer or shorter than is said, leads to another object, or carries the secret.
func TestLinkCarriesItsExpiry(t *testing.T) {
	t.Parallel()
	links := &Links{Bucket: "artifacts", Valid: 5 * time.Minute, Client: s3.New(s3.Options{
		Region: "ap-northeast-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "very-secret", ""),
		BaseEndpoint: aws.String("http://127.0.0.1:1"), UsePathStyle: true, // nobody is asked
	})}
	now := time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)
	key := prefix + "1/結果 a+b%2f?c#d.json"
	link, err := links.To(t.Context(), key, now)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	if u.Path != "/artifacts/"+key || u.Fragment != "" {
		t.Errorf("it leads to %q", u.Path)
	}
	q := u.Query()
	if q.Get("X-Amz-Expires") != "300" || !link.ExpiresAt.Equal(now.Add(5*time.Minute)) || q.Get("X-Amz-Signature") == "" {
		t.Errorf("it expires at %v and says %v", link.ExpiresAt, q)
	}
	if method := q.Get("x-id"); method != "GetObject" {
		t.Errorf("it is for %q", method)
	}
	for name, values := range q {
		for _, v := range values {
			if v == "very-secret" {
				t.Errorf("%s carries the secret", name)
			}
		}
	}
}

// Catches a service that answers with a link nobody could use when it has no credentials.
func TestNoLinkWithoutCredentials(t *testing.T) {
	t.Parallel()
	links := &Links{Bucket: "artifacts", Valid: time.Minute, Client: s3.New(s3.Options{Region: "ap-northeast-1", BaseEndpoint: aws.String("http://127.0.0.1:1")})}
	if link, err := links.To(t.Context(), prefix+"x", time.Now()); err == nil {
		t.Errorf("a link without a signature: %s", link.URL)
	}
}

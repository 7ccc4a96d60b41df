package app_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/web"
)

// orders is a service that takes bodies of up to 64 KiB.
func orders(t *testing.T) *service {
	t.Helper()
	rt := web.NewRouter()
	rt.Handle("GET", "/", func(*http.Request) (*web.Reply, error) { return &web.Reply{Body: "here"}, nil })
	rt.Handle("POST", "/", func(r *http.Request) (*web.Reply, error) {
		_, err := web.RawBody(r, web.ClientBody)
		return &web.Reply{Status: http.StatusNoContent}, err
	})
	return start(t, app.Config{Handler: web.Wrap(rt, web.Options{Service: "test", Logger: app.NewLogger(io.Discard, "test", 0), Metrics: app.NewRegistry()})})
}

// flood sends head and then piece again and again, up to ten gigabytes, until the server hangs up. It returns how much was sent, and
// what the server had said by then.
func flood(t *testing.T, s *service, head, piece string) (sent int64, said string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(conn).ReadString('\n')
		answer <- text
	}()
	again := []byte(piece)
	for text := []byte(head); sent < 10<<30; text = again {
		n, err := conn.Write(text)
		if sent += int64(n); err != nil {
			break
		}
	}
	return sent, <-answer
}

// What is endless is cut off early, costs next to no memory, and is no trouble to others.
func TestEndlessRequestsAreCutOff(t *testing.T) {
	s := orders(t)
	const chunk = 64 << 10
	body := "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var hostile sync.WaitGroup
	for name, c := range map[string]struct{ head, piece, says string }{
		"a body in chunks":     {body + "Transfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", chunk, strings.Repeat(" ", chunk)), "413"},
		"a body of 10 GiB":     {body + "Content-Length: 10737418240\r\n\r\n", strings.Repeat(" ", chunk), "413"},
		"an endless chunk":     {body + "Transfer-Encoding: chunked\r\n\r\n280000000\r\n", strings.Repeat(" ", chunk), "413"},
		"a chunk's extension":  {body + "Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", chunk), "400"},
		"a trailer":            {body + "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: " + strings.Repeat("x", chunk) + "\r\n", "400"},
		"one header":           {"GET / HTTP/1.1\r\nHost: x\r\nA: ", strings.Repeat("x", chunk), "431"},
		"headers":              {"GET / HTTP/1.1\r\nHost: x\r\n", "A: " + strings.Repeat("x", 1000) + "\r\n", "431"},
		"a request line":       {"GET /", strings.Repeat("x", chunk), "431"},
		"a query":              {"GET /?", strings.Repeat("x=1&", chunk/4), "431"},
		"a token":              {"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ", strings.Repeat(".", chunk), "431"},
		"a body of a GET":      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", chunk, strings.Repeat(" ", chunk)), "200"},
		"a body that is gzip":  {body + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", chunk, strings.Repeat("\x00", chunk)), "413"},
		"a preface of HTTP/2":  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", strings.Repeat("\x00", chunk), ""},
		"what is no HTTP text": {"\x16\x03\x01", strings.Repeat("\xff", chunk), ""},
	} {
		hostile.Go(func() {
			sent, said := flood(t, s, c.head, c.piece)
			if !strings.Contains(said, c.says) {
				t.Errorf("%s: the server said %q; want %s", name, said, c.says)
			}
			if sent > 16<<20 { // what the buffers of the kernel hold, and half a second of lingering
				t.Errorf("%s: %d bytes were taken before the server hung up", name, sent)
			}
			if status, body := get(s.url); status != 200 || body != `"here"` {
				t.Errorf("%s: another client got %d %s", name, status, body)
			}
		})
	}
	hostile.Wait()
	runtime.ReadMemStats(&after)
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 16<<20 {
		t.Errorf("a dozen floods cost %d bytes of memory", cost)
	}
}

// Hundreds of connections that ask for nothing, or for too much, keep nobody else waiting.
func TestOthersAreServedWhileManyMisbehave(t *testing.T) {
	s := orders(t)
	for range 500 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var misbehaving sync.WaitGroup
	for range 2 {
		misbehaving.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					flood(t, s, "GET / HTTP/1.1\r\nHost: x\r\nA: ", strings.Repeat("x", 1<<20))
				}
			}
		})
	}
	client := http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	for range 200 {
		start := time.Now()
		response, err := client.Get(s.url)
		if err != nil {
			t.Fatal(errors.Join(err, errors.New("an ordinary client is not served")))
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if took := time.Since(start); response.StatusCode != 200 || took > 2*time.Second {
			t.Errorf("an ordinary client got %d after %s", response.StatusCode, took)
		}
	}
	close(stop)
	misbehaving.Wait()
}

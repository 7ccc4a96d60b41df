package load

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve answers on a port below those that outgoing connections get.
func serve(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20000+rand.IntN(12000)))
		if err != nil {
			continue
		}
		server := &http.Server{Handler: h}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
		return l.Addr().String()
	}
	t.Fatal("no free port")
	return ""
}

// Each request arrives once and whole, over no more connections than wished; bad answers are counted, not timed.
func TestPlanAsksEverythingOnce(t *testing.T) {
	var connections sync.Map
	var mu sync.Mutex
	seen := map[string]int{}
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("body: %v, header: %v", err, r.Header)
		}
		connections.Store(r.RemoteAddr, true)
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path+" "+string(body)]++
		if strings.HasSuffix(string(body), "7") {
			http.Error(w, "an unlucky number", http.StatusTeapot)
		}
		io.WriteString(w, `{"number":`+string(body)+`}`)
	}))
	p := Plan{Address: address, Clients: 3, Count: 100, Status: 200, Holds: `"number":`, Request: func(i int) []byte {
		return Request("POST", "/a", http.Header{"Authorization": {"Bearer x"}}, []byte(strconv.Itoa(i)))
	}}
	s, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Count != 90 || s.Failed != 10 || !strings.HasPrefix(s.Failure, "418 an unlucky number") || s.P50 <= 0 || s.P99 < s.P50 || s.Elapsed < s.P99 {
		t.Errorf("%+v", s)
	}
	for i := range p.Count {
		if n := seen["/a "+strconv.Itoa(i)]; n != 1 {
			t.Errorf("request %d arrived %d times", i, n)
		}
	}
	used := 0
	connections.Range(func(any, any) bool { used++; return true })
	if used > p.Clients {
		t.Errorf("%d connections, want at most %d", used, p.Clients)
	}
}

// An answer is read to its end however its length is told, or the next one on the connection would be taken for its rest.
func TestClientReadsAnswersWhole(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		case "/chunked":
			for part := range strings.SplitSeq(long, "5") {
				io.WriteString(w, part)
				http.NewResponseController(w).Flush()
			}
		case "/length":
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
			io.WriteString(w, long)
		}
	}))
	c, err := Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Until(time.Now().Add(10 * time.Second))
	for range 2 {
		for _, want := range []struct {
			path   string
			status int
			body   string
		}{
			{"/304", 304, ""}, {"/chunked", 200, strings.ReplaceAll(long, "5", "")}, {"/empty", 200, ""}, {"/length", 200, long},
		} {
			status, body, err := c.Do(Request("GET", want.path, nil, nil))
			if err != nil || status != want.status || string(body) != want.body {
				t.Fatalf("%s: %d with %d bytes, %v; want %d with %d", want.path, status, len(body), err, want.status, len(want.body))
			}
		}
	}
}

// A server that goes away is an error and no good result.
func TestPlanTellsOfABrokenConnection(t *testing.T) {
	var asked atomic.Int64
	address := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) > 5 {
			panic(http.ErrAbortHandler)
		}
	}))
	p := Plan{Address: address, Clients: 2, Count: 100, Status: 200, Request: func(int) []byte { return Request("GET", "/", nil, nil) }}
	if s, err := p.Run(t.Context()); err == nil {
		t.Errorf("no error: %+v", s)
	}
}

func TestOfTakesPercentiles(t *testing.T) {
	took := make([]time.Duration, 200)
	for i := range took {
		took[len(took)-1-i] = time.Duration(i+1) * time.Millisecond
	}
	s := Of(took, 4*time.Second)
	if s.Count != 200 || s.P50 != 100*time.Millisecond || s.P99 != 198*time.Millisecond || s.Rate() != 50 {
		t.Errorf("%+v, %v a second", s, s.Rate())
	}
	if s := Of(nil, time.Second); s.P99 != 0 || s.Rate() != 0 {
		t.Errorf("of nothing: %+v", s)
	}
}

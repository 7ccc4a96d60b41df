package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"framerun.dev/pkg/app"
)

// The process under test is this test binary, started again with addresses in its environment.
const childListen, childOps = "FRAMERUN_TEST_LISTEN", "FRAMERUN_TEST_OPS"

func TestMain(m *testing.M) {
	if os.Getenv(childListen) == "" {
		os.Exit(m.Run())
	}
	if err := serveAsChild(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

const (
	pieces = 20
	piece  = 1000 // bytes
)

// serveAsChild answers slowly, in pieces, so that a process that ends carelessly ends in the middle of many answers.
func serveAsChild() error {
	mux := http.NewServeMux()
	mux.HandleFunc("/pieces", func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for range pieces {
			<-tick.C
			_, _ = io.WriteString(w, strings.Repeat("x", piece))
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-app.Draining(r.Context()):
			_, _ = io.WriteString(w, "early")
		case <-time.After(25 * time.Second):
		}
	})
	return app.Run(context.Background(), app.Config{
		Name: "child", Listen: os.Getenv(childListen), OpsListen: os.Getenv(childOps), DrainDelay: 300 * time.Millisecond,
		Handler: mux, Health: app.NewHealth(), Metrics: app.NewRegistry(), Logger: app.NewLogger(io.Discard, "child", 0),
	})
}

// load counts what happened to many requests.
type load struct{ whole, truncated, lost atomic.Int64 }

// run asks for pieces until the server takes no more connections. A connection that the kernel had accepted and the server had
// not is lost with the listener; a drain delay is there so that balancers have stopped sending by then.
func (l *load) run(url string) {
	client := http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	for {
		resp, err := client.Get(url)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case err != nil:
			l.lost.Add(1)
			continue
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || n != pieces*piece {
			l.truncated.Add(1)
		} else {
			l.whole.Add(1)
		}
	}
}

func TestTerminationUnderLoadTruncatesNothing(t *testing.T) {
	listen, ops := freeAddress(t), freeAddress(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childListen+"="+listen, childOps+"="+ops)
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	var exit error
	go func() { exit = child.Wait(); close(gone) }()
	eventually(t, "the child answers", func() bool { status, _ := get("http://" + ops + "/livez"); return status == 200 })

	var l load
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() { l.run("http://" + listen + "/pieces") })
	}
	waited := make(chan string, 1)
	go func() { _, body := get("http://" + listen + "/wait"); waited <- body }()
	eventually(t, "a hundred answers", func() bool { return l.whole.Load() > 100 })

	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told := time.Now()
	eventually(t, "readyz says no while requests are still taken", func() bool {
		status, _ := get("http://" + ops + "/readyz")
		return status == http.StatusServiceUnavailable
	})
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the child did not end")
	}
	clients.Wait()

	if exit != nil {
		t.Errorf("the child's end was not clean: %v", exit)
	}
	if body := <-waited; body != "early" {
		t.Errorf("the waiting request was told %q", body)
	}
	if took := time.Since(told); took > 3*time.Second {
		t.Errorf("the end took %s", took)
	}
	if l.truncated.Load() > 0 {
		t.Errorf("%d of %d answers were truncated", l.truncated.Load(), l.whole.Load())
	}
	if clients := int64(16); l.lost.Load() > clients {
		t.Errorf("%d requests were lost at the end, more than one a client", l.lost.Load())
	}
	if _, err := http.Get("http://" + listen); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port is still open: %v", err)
	}
}

package localpg

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// parentOf names the folder in which this binary, run by TestKillOfTheParent, starts a server and waits for its end.
const parentOf = "LOCALPG_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentOf); dir != "" {
		beParent(dir)
		return
	}
	m.Run()
}

func beParent(dir string) {
	s, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("started")
	<-s.Done()
}

// No PostgreSQL may outlive a program that was killed: it would keep the port and the data from the next one.
func TestKillOfTheParent(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOf+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer parent.Process.Kill()
	if said, _ := bufio.NewReader(out).ReadString('\n'); said != "started\n" {
		t.Fatalf("the parent said %q", said)
	}
	if n := livingIn(t, dir); n < 2 {
		t.Fatalf("%d processes of the server found: this test would not see the left-over ones", n)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()

	// The next start may come at once: it has to wait for the dying server, not to trip over it.
	next := begin(t, Config{Dir: dir})
	if err := next.Stop(); err != nil {
		t.Fatal(err)
	}
	until(t, "the killed parent's server is gone", func() bool { return livingIn(t, dir) == 0 })
}

// livingIn counts the processes that work below a folder.
func livingIn(t *testing.T, dir string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir+"/") {
			n++
		}
	}
	return n
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-look.C:
		}
	}
}

package relay

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// doomed names the variable that makes this test binary a process which stores runs in the database at the address given, is handed their
// jobs, and is killed by its parent before it has sent any.
const doomed = "FRAMERUN_RELAY_DOOMED"

// Catches a job that is lost, or waits for long, when the process that was handed it is killed between the commit and the sending.
func TestKilledWithParcelsInHand(t *testing.T) {
	if address := os.Getenv(doomed); address != "" {
		holdUntilKilled(t, address)
		os.Exit(1) // it must not go on as if it were the parent
	}
	t.Parallel()
	w := open(t)
	ids := w.killed(t)
	for _, e := range w.outbox(t, "jobs") {
		if e.State != "pending" || e.Tries != 1 || e.Wait > Lease.Seconds() {
			t.Errorf("left behind: %+v", e)
		}
	}
	var taken basket
	start := time.Now()
	run(t, w.jobs(&taken))
	eventually(t, "the jobs have left", func() bool { return len(taken.all()) >= len(ids) })
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("after the next relay began, it took %v", took)
	}
	if got := strings.Join(taken.all(), " "); got != strings.Join(ids, " ") {
		t.Errorf("sent %s, want %v", got, ids)
	}
}

// killed runs a doomed process, kills it when it has parcels in hand, and names their runs.
func (w *world) killed(t *testing.T) (ids []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWithParcelsInHand$")
	child.Env = append(os.Environ(), doomed+"="+w.url)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the process ended by itself and said %q", said)
	}
	return strings.Fields(said)
}

// holdUntilKilled says which jobs its lane was handed, and keeps them. A parent that is gone takes this process along.
func holdUntilKilled(t *testing.T, address string) {
	s, err := store.Open(address, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Store: s}
	fresh := s.FreshJobs("code2wf", Lease)
	want := w.create(t, 5)
	lane := w.jobs(sender[lifecycle.Job](func(context.Context, []lifecycle.Job) []error {
		fmt.Println(strings.Join(want, " "))
		<-time.After(time.Minute)
		os.Exit(1)
		return nil
	}))
	lane.Fresh = fresh
	lane.Run(t.Context())
}

package pgbench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// at is a transaction that ends so many milliseconds after the beginning.
func at(client, number, end, took int) transaction {
	return transaction{client, number, time.Duration(took) * time.Millisecond, time.Unix(1000, 0).Add(time.Duration(end) * time.Millisecond)}
}

// Two clients: the first transactions of each are slow, then one takes 10 ms and the other 20. What lies before both are warm and after the
// first has finished is left out.
func TestSteadyLeavesTheSlowBeginningOut(t *testing.T) {
	var log []transaction
	for n := range warm {
		log = append(log, at(0, n, 500+n, 500), at(1, n, 1000+n, 1000))
	}
	for k := 1; k <= 20; k++ {
		log = append(log, at(0, warm+k-1, 1002+10*k, 10), at(1, warm+k-1, 1002+20*k, 20))
	}
	s := steady(log, 2) // 200 ms, with 20 and 10 transactions in them
	if got := s.Rate(); s.Count != len(log) || got < 149 || got > 151 || s.P50 != 10*time.Millisecond || s.P99 != 20*time.Millisecond {
		t.Errorf("%d transactions, %v a second, %v, %v; want all, 150, 10ms, 20ms", s.Count, got, s.P50, s.P99)
	}
}

func TestSteadyOfAShortRun(t *testing.T) {
	s := steady([]transaction{at(0, 0, 100, 100), at(0, 1, 200, 100), at(1, 0, 250, 250)}, 2)
	if s.Count != 3 || s.Rate() != 12 || s.P99 != 250*time.Millisecond {
		t.Errorf("%+v, %v a second", s, s.Rate())
	}
	if s := steady(nil, 2); s.Count != 0 || s.Rate() != 0 {
		t.Errorf("of nothing: %+v", s)
	}
}

func TestReadLog(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"log.77": "0 0 1500 0 1796000000 250000\n0 1 300 0 1796000000 250300\n", "log.77.1": "1 0 9 0 1796000001 5\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := readLog(dir)
	if err != nil || len(log) != 3 {
		t.Fatalf("%v, %v; want three transactions of both threads", log, err)
	}
	if want := (transaction{0, 1, 300 * time.Microsecond, time.Unix(1796000000, 250300000)}); log[1] != want {
		t.Errorf("%+v, want %+v", log[1], want)
	}
	if err := os.WriteFile(filepath.Join(dir, "log.78"), []byte("0 0 failed 0 1796000000 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readLog(dir); err == nil || !strings.Contains(err.Error(), "failed") {
		t.Errorf("a failed transaction passes: %v", err)
	}
}

func TestReportMustTellOfAllTransactions(t *testing.T) {
	r := Run{Clients: 4, Count: 10} // three for each
	for report, good := range map[string]bool{
		"number of transactions actually processed: 12/12\n": true,
		"number of transactions actually processed: 11/12\n": false,
		"tps = 100\n": false,
	} {
		if _, err := r.processed(report); (err == nil) != good {
			t.Errorf("%q: %v", report, err)
		}
	}
}

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// report writes Markdown as it goes, so that a measuring that is cut short has shown what it had.
type report struct{ out io.Writer }

func (r report) title(text string) { fmt.Fprintf(r.out, "\n### %s\n\n", text) }

func (r report) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

func (r report) row(cells ...string) { fmt.Fprintf(r.out, "| %s |\n", strings.Join(cells, " | ")) }

func (r report) head(cells ...string) {
	r.row(cells...)
	r.row(strings.Split(strings.Repeat("---:,", len(cells)-1)+"---:", ",")...)
}

// contests begins a table of contests; label is what its first column tells.
func (r report) contests(label string) {
	r.head(label, "a second", "p50 ms", "p99 ms", "RSS MB", "against", "a second", "p50 ms", "p99 ms", "ratio")
}

// contest adds a contest, a row for each baseline.
func (r report) contest(label string, all []standing) {
	ours := []string{label, "**" + rate(all[0].rate) + "**", millis(all[0].p50), millis(all[0].p99), fmt.Sprint(all[0].memory >> 20)}
	ours[1] += failures(all[0])
	if len(all) == 1 {
		r.row(append(ours, "", "", "", "", "")...)
	}
	for _, it := range all[1:] {
		r.row(append(ours, it.name, rate(it.rate), millis(it.p50), millis(it.p99), ratio(all[0].rate, it.rate))...)
		ours = []string{"", "", "", "", ""}
	}
}

// waiting begins the table of waiting requests, waited adds a row.
func (r report) waiting() {
	r.title(fmt.Sprintf("Waiting (Prefer: wait=%d): from the answer to the change until the waiting request is answered", waitFor))
	r.head("waiting", "KB each", "one change wakes all: p50 ms", "p99 ms", "not woken",
		fmt.Sprintf("each its own run, %d changes a second: p50 ms", changeRate), "p99 ms", "not woken")
}

func (r report) waited(w waited) {
	r.row(rate(float64(w.count)), fmt.Sprintf("%.1f", float64(w.each)/1024),
		millis(w.together.P50), millis(w.together.P99), fmt.Sprint(w.together.Failed),
		millis(w.apart.P50), millis(w.apart.P99), fmt.Sprint(w.apart.Failed))
}

// rate keeps three digits.
func rate(perSecond float64) string {
	switch {
	case perSecond >= 1_000_000:
		return fmt.Sprintf("%d,%03d,000", int(perSecond)/1_000_000, int(perSecond)/1000%1000)
	case perSecond >= 1000:
		return fmt.Sprintf("%d,%03d", int(perSecond)/1000, int(perSecond)%1000/10*10)
	case perSecond >= 100:
		return fmt.Sprintf("%.0f", perSecond)
	}
	return fmt.Sprintf("%.1f", perSecond)
}

// failures is empty if there were none.
func failures(s standing) string {
	if s.failed == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d failed)", s.failed)
}

// millis is empty for a time that is not known.
func millis(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000)
}

func ratio(ours, theirs float64) string {
	if theirs == 0 {
		return ""
	}
	return fmt.Sprintf("**%.2f ×**", ours/theirs)
}

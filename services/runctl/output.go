package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// show prints v as JSON, or calls table to print it for people.
func (s *hand) show(v any, table func(w io.Writer)) error {
	if s.Output == "json" {
		raw, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
		if err == nil {
			_, err = fmt.Fprintf(s.out, "%s\n", raw)
		}
		return err
	}
	table(s.out)
	return nil
}

// line prints v as one line of JSON.
func (s *hand) line(v any) error {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		_, err = fmt.Fprintf(s.out, "%s\n", raw)
	}
	return err
}

// table lays rows out in columns under a head. Cells hold what others wrote, so nothing in them may move the cursor.
func table(w io.Writer, head []string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			row[i] = plain(cell)
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	t.Flush()
}

// plain makes a text harmless for a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return ' '
		}
		return r
	}, text)
}

// clip shortens a text to n characters.
func clip(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// stamp is a time as people read it; timestamp as scripts do.
func stamp(t time.Time) string     { return t.UTC().Format("2006-01-02 15:04:05Z") }
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// long says a duration in its two largest units: 3d4h, 2h5m, 40s.
func long(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.String()
}

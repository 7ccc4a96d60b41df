package server

import (
	"log/slog"
	"testing"

	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/lifecycle"
)

func TestX(t *testing.T) {
	s, err := Start("127.0.0.1:0", t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil { t.Fatal(err) }
	defer s.Close()
	d, err := resultdoc.Open(s.URL())
	if err != nil { t.Fatal(err) }
	t.Log(d.Ping(t.Context()))
	t.Log(d.Write(t.Context(), resultdoc.Document{RunID:"a", Attempt: 2, Confidence: &resultdoc.Confidence{FlagCount: 3}, Score: new(0.5)}))
	n, err := d.Numbers(t.Context(), lifecycle.Ref{ID:"a"}, 2)
	t.Log(n, err)
	for _, at := range []int{1,2,3} {
	t.Log(at, d.Send(t.Context(), []lifecycle.Announcement{{Event: lifecycle.Event{Run: lifecycle.Ref{ID:"a"}, What: lifecycle.WasConfirmed, Attempt: at}}}))
	}
	t.Log(d.Send(t.Context(), []lifecycle.Announcement{{Event: lifecycle.Event{Run: lifecycle.Ref{ID:"a"}, What: lifecycle.WasConfirmed, Attempt: 2}}}))
	t.Log(d.Send(t.Context(), []lifecycle.Announcement{{Event: lifecycle.Event{Run: lifecycle.Ref{ID:"a"}, What: lifecycle.WasRejected, Attempt: 2}}}))
	t.Log(d.Write(t.Context(), resultdoc.Document{RunID:"a", Attempt: 1}))
	t.Log(d.Write(t.Context(), resultdoc.Document{RunID:"a", Attempt: 3}))
}

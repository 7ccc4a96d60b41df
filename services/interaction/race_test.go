package main

import (
	"slices"
	"sync"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// request is one of many at once.
type request struct{ method, suffix, body string }

var (
	confirming = request{"POST", "/confirm", `{"decision":"confirm","attempt":1}`}
	rejecting  = request{"POST", "/confirm", `{"decision":"reject","attempt":1}`}
	cancelling = request{"POST", "/cancel", ``}
	placing    = request{"POST", "/placement", ``}
	deleting   = request{"DELETE", "", ``}
)

func times(n int, r request) []request { return slices.Repeat([]request{r}, n) }

// together sends all requests about run at the same moment, half of them as somebody else.
func (in *interaction) together(t *testing.T, run lifecycle.Run, all []request) []servicetest.Reply {
	t.Helper()
	replies, errs := make([]servicetest.Reply, len(all)), make([]error, len(all))
	start := make(chan struct{})
	var asking sync.WaitGroup
	for i, each := range all {
		as := []servicetest.Principal{in.Owner, in.Colleague}[i%2]
		r := in.Request(t, each.method, servicetest.Path(run, 1)+each.suffix, as, each.body)
		asking.Go(func() {
			<-start
			replies[i], errs[i] = in.Try(r)
		})
	}
	close(start)
	asking.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return replies
}

// Whoever comes first has decided. The same decision is then 200, another one is refused and told the state; the timeline, the outbox
// and the hints know of one step.
func TestRacesHaveOneWinner(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, c := range []struct {
		name   string
		from   lifecycle.State
		all    []request
		rounds int
		ends   map[lifecycle.State]int // how many of the requests are answered 200 if the run comes to be so
	}{
		{"confirm × 50", lifecycle.AwaitingConfirm, times(50, confirming), 2, map[lifecycle.State]int{lifecycle.Assembling: 50}},
		{"confirm × reject", lifecycle.AwaitingConfirm, slices.Concat(times(3, confirming), times(3, rejecting)), 15,
			map[lifecycle.State]int{lifecycle.Assembling: 3, lifecycle.Rejected: 3}},
		{"reject × cancel", lifecycle.AwaitingConfirm, slices.Concat(times(2, rejecting), times(2, cancelling)), 15,
			map[lifecycle.State]int{lifecycle.Rejected: 2, lifecycle.Cancelled: 2}},
		{"cancel × 20", lifecycle.Parsing, times(20, cancelling), 2, map[lifecycle.State]int{lifecycle.Cancelled: 20}},
		{"placement × 2", lifecycle.Completed, times(2, placing), 15, map[lifecycle.State]int{lifecycle.Completed: 2}},
		{"delete × 20", lifecycle.Completed, times(20, deleting), 2, map[lifecycle.State]int{lifecycle.Completed: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range c.rounds {
				run := in.In(t, lifecycle.WF2Des, c.from)
				lines, letters, heard := len(in.Timeline(t, run.Ref)), len(in.Outbox(t, run.Ref)), len(in.heard())
				replies := in.together(t, run, c.all)
				now, err := in.Store.RunOfAnyTenant(t.Context(), run.Ref)
				if err != nil {
					t.Fatal(err)
				}
				good := 0
				for _, reply := range replies {
					if reply.Status == 200 {
						good++
						continue
					}
					in.tells(t, reply.Refused(t, 409, "state_conflict"), now)
				}
				if want, possible := c.ends[now.State]; !possible || good != want {
					t.Errorf("the run is %s and %d requests were answered 200; want %v", now.State, good, c.ends)
				}
				told := 1 // the public event
				if now.State == lifecycle.Assembling {
					told = 2
				}
				if got := len(in.Timeline(t, run.Ref)) - lines; got != 1 {
					t.Errorf("%d steps are in the timeline", got)
				}
				if got := len(in.Outbox(t, run.Ref)) - letters; got != told {
					t.Errorf("%d messages are in the outbox; want %d", got, told)
				}
				if got := len(in.heard()) - heard; got != 1 {
					t.Errorf("others were told %d times", got)
				}
			}
		})
	}
}

// A confirm and a cancel can both win, but only in this order.
func TestConfirmAgainstCancel(t *testing.T) {
	t.Parallel()
	in := open(t)
	for range 20 {
		run := in.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
		replies := in.together(t, run, []request{confirming, cancelling})
		now, err := in.Store.RunOfAnyTenant(t.Context(), run.Ref)
		if err != nil || now.State != lifecycle.Cancelled || replies[1].Status != 200 {
			t.Fatalf("the run is %s (%v), cancel was answered %d", now.State, err, replies[1].Status)
		}
		var what []string
		for _, line := range in.Timeline(t, run.Ref)[2:] {
			what = append(what, line.What)
		}
		want := []string{"confirmed", "cancelled"}
		if replies[0].Status != 200 {
			in.tells(t, replies[0].Refused(t, 409, "state_conflict"), now)
			want = want[1:]
		}
		if !slices.Equal(what, want) {
			t.Errorf("confirm was answered %d, and the timeline says %v", replies[0].Status, what)
		}
	}
}

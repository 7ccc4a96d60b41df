package stack

import (
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
)

// Catches two processes on one port, and ports beyond the window that a stack is given.
func TestPlacesAreApart(t *testing.T) {
	t.Parallel()
	all := Config{Twice: Names}.running()
	if !slices.Equal(all[:len(Names)], Names) || len(all) != 2*len(Names) || !slices.Contains(all, "query-2") {
		t.Fatalf("the processes are %v", all)
	}
	taken := map[int]string{}
	for _, name := range all {
		for _, port := range []int{servicePorts + place(name), opsPorts + place(name)} {
			if taken[port] != "" || port >= portsInAll {
				t.Errorf("%s is at %d, beside %q", name, port, taken[port])
			}
			taken[port] = name
		}
	}
}

// A port of a second process that is taken is told before anything starts, and only to a stack that needs it.
func TestPortsOfSecondProcessesAreChecked(t *testing.T) {
	t.Parallel()
	p, l := window(t)
	defer l.Close()
	if err := p.check(Names); err != nil {
		t.Errorf("a stack without second processes: %v", err)
	}
	err := p.check(Config{Twice: []string{"query"}}.running())
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("a stack with a second query: %v", err)
	}
}

// window is a row of free ports, but for one that second processes need and that is taken.
func window(t *testing.T) (Ports, net.Listener) {
	t.Helper()
	for range 100 {
		p := Ports{Base: 20000 + rand.IntN(12000)}
		l, err := net.Listen("tcp", p.address(opsPorts+place("query-2")))
		if err != nil {
			continue
		}
		if p.check(Names) == nil {
			return p, l
		}
		l.Close()
	}
	t.Fatalf("no %d free ports in a row", portsInAll)
	return Ports{}, nil
}

func TestOnlyServicesRunTwice(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Config{Dir: t.TempDir(), Twice: []string{"query-2"}}); err == nil || !strings.Contains(err.Error(), `"query-2"`) {
		t.Errorf("got %v", err)
	}
}

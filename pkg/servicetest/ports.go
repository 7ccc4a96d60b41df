package servicetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Listen opens a loopback port below those that outgoing connections take, and above those among which whole stacks look for theirs: a
// stack has many to start one after the other, and must not lose one of them meanwhile.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 31100+rand.IntN(1600))); err == nil {
			return l
		}
	}
	t.Fatal("servicetest: no free port between 31100 and 32700")
	return nil
}

// FreeAddress is a loopback address on which nobody listens at the moment.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l := Listen(t)
	defer l.Close()
	return l.Addr().String()
}

package e2e

import (
	"testing"

	"framerun.dev/deploy/local/stack"
)

// TestFaults takes parts away from one stack, one after the other. No worker runs there: the tests speak for it, so that they decide
// what happens when.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{Worker: "none"})
	for _, fault := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"SIGTERM lets what is in flight end", termination},
		{"intake killed between the row and the queue", killedBeforeTheJobLeft},
		{"SQS down", queueDown},
		{"a message that SQS never takes", poison},
		{"a worker that says everything twice", toldTwice},
		{"the public feed", publicFeed},
		{"NATS down", natsDown},
	} {
		t.Run(fault.name, func(t *testing.T) { fault.test(t, s) })
	}
}

// Package e2e is for knowing that the suite works as it is shipped: its tests build the real programs, run them as processes on a real
// PostgreSQL and a real nats-server, go in through the gateway, and take parts away while it works.
package e2e

module framerun.dev/migrations

go 1.27.3

require (
	github.com/lib/pq v1.12.3
	github.com/pressly/goose/v3 v3.30.0
)

require (
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
)

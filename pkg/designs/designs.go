// Package designs is for the platform's design registry: a wireframe that was turned into a design has to be found there (seed: the
// result lands in the registry through the completion, in the component context).
//
// The registry belongs to the platform and may be another database than the suite's. What is written to it stands in columns.go.
package designs

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// Registry lands completed runs in the registry. It is a sender of the relay, and safe for concurrent use.
type Registry struct {
	DB *sql.DB // connections to the registry's database that do not wait for ever
}

// Ping asks the registry's database for a sign of life.
func (r *Registry) Ping(ctx context.Context) error {
	if err := r.DB.PingContext(ctx); err != nil {
		return fmt.Errorf("designs: ping: %w", err)
	}
	return nil
}

// Send lands runs and returns one error for each. A run lands once, however often it is sent: what stands in the registry stays as it
// is. lifecycle.ErrUndeliverable: the registry refuses this design for good, for example because it does not know the project.
func (r *Registry) Send(ctx context.Context, landings []lifecycle.Landing) []error {
	errs := make([]error, len(landings))
	err := r.land(ctx, landings)
	if len(landings) > 1 && refused(err) { // so that only the guilty one stays behind
		for i := range landings {
			errs[i] = r.Send(ctx, landings[i:i+1])[0]
		}
		return errs
	}
	if refused(err) {
		err = errors.Join(lifecycle.ErrUndeliverable, err)
	}
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// land writes all of them or none, in one statement.
func (r *Registry) land(ctx context.Context, landings []lifecycle.Landing) error {
	rows := make([]row, len(landings))
	for i, l := range landings {
		rows[i] = rowOf(l)
	}
	body, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("designs: land: %w", err)
	}
	if _, err := r.DB.ExecContext(ctx, insertDesigns, string(body)); err != nil {
		return fmt.Errorf("designs: land: %w", err)
	}
	return nil
}

// refused recognises what the registry made of the values themselves: data it cannot hold, a reference to nothing. Anything else, a
// missing table or right included, can be mended there while the run waits.
func refused(err error) bool {
	said, ok := errors.AsType[*pq.Error](err)
	return ok && (said.Code.Class() == "22" || said.Code.Class() == "23")
}

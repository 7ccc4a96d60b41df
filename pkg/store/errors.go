package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// failed wraps an error of a statement that certainly changed nothing, and says whether another try is worth it.
func failed(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if passing(ctx, err) {
		return fmt.Errorf("store: %s: %w: %w", doing, lifecycle.ErrUnavailable, err)
	}
	return fmt.Errorf("store: %s: %w", doing, err)
}

// uncertain wraps an error of a COMMIT, or of a statement that commits by itself. PostgreSQL's own refusal means that nothing
// changed; a broken connection or a deadline means that nobody knows.
func uncertain(ctx context.Context, doing string, err error) error {
	if refusedByServer(err) || ctx.Err() == nil && !passing(ctx, err) {
		return failed(ctx, doing, err)
	}
	return unknown(doing, err)
}

func unknown(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s: %w: %w", doing, lifecycle.ErrOutcomeUnknown, err)
}

// refusedByServer recognises an ERROR of the server, which aborts the transaction. A FATAL ends the session, perhaps after the commit.
func refusedByServer(err error) bool {
	refused, ok := errors.AsType[*pq.Error](err)
	return ok && !refused.Fatal()
}

// passing recognises what goes away by itself: deadlines, broken connections, a server that restarts or fails over, locks.
// The context is asked first, for lib/pq reports a deadline as query_canceled.
func passing(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	var refused *pq.Error
	if errors.As(err, &refused) {
		switch refused.Code.Class() {
		case "08", // connection exception
			"40", // serialization failure, deadlock
			"53", // too many connections, out of memory or disk
			"57", // shutdown, starting up, cancelled by a timeout
			"58": // input or output error of the server's system
			return true
		}
		return refused.Code == "55P03" || // a lock not to be had
			refused.Code == "25006" || refused.Code == "0A000" // read-only after a failover; a standby so refuses lib/pq's BEGIN READ WRITE
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

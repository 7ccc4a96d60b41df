// Command migrate brings the database that DATABASE_URL names up to date. With -platform it first creates the
// stand-ins for the platform's tables, for local use.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"framerun.dev/migrations"
	"framerun.dev/migrations/platform"
	_ "github.com/lib/pq" // the driver "postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv("DATABASE_URL"), os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "migrate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, address string, out io.Writer) error {
	flags := flag.NewFlagSet("migrate", flag.ContinueOnError)
	flags.SetOutput(out)
	standIns := flags.Bool("platform", false, "create stand-ins for the platform's tables first (never in production)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("nothing is expected after the flags, but there is %q", flags.Arg(0))
	}
	db, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer db.Close()
	if *standIns {
		if err := step(ctx, out, db, "platform", platform.Up, platform.Version); err != nil {
			return err
		}
	}
	if err := requirePlatform(ctx, db); err != nil {
		return err
	}
	return step(ctx, out, db, "suite", migrations.Up, migrations.Version)
}

// requirePlatform refuses a database that has no platform, before half of the suite's tables are in it.
func requirePlatform(ctx context.Context, db *sql.DB) error {
	var there bool
	row := db.QueryRowContext(ctx, `SELECT bool_and(to_regclass(name) IS NOT NULL)
		FROM unnest(ARRAY['organization', 'project', '"user"', 'page_import']) AS name`)
	if err := row.Scan(&there); err != nil {
		return fmt.Errorf("looking for the platform's tables: %w", err)
	}
	if !there {
		return errors.New("the platform's tables are not there: " +
			"this is not the platform's database, or for local use make the stand-ins first: make migrate PLATFORM=yes")
	}
	return nil
}

// connect makes sure that there is a server, so that a wrong address is not reported as a broken migration.
func connect(ctx context.Context, address string) (*sql.DB, error) {
	if address == "" {
		return nil, errors.New("DATABASE_URL is not set: it names the database to migrate, " +
			"as postgres://user:password@host:port/database?sslmode=require")
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		// The cause would print the address, and with it the password.
		return nil, errors.New("DATABASE_URL must be a URL that begins with postgres://; a special character in the password has to be percent-encoded")
	}
	db, err := sql.Open("postgres", address)
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reaching the database: %w", err), db.Close())
	}
	return db, nil
}

type (
	up      func(context.Context, *sql.DB) error
	version func(context.Context, *sql.DB) (int64, error)
)

// step applies one set of migrations and prints where it stood and where it stands.
func step(ctx context.Context, out io.Writer, db *sql.DB, name string, up up, version version) error {
	before, err := version(ctx, db)
	if err != nil {
		return err
	}
	if err := up(ctx, db); err != nil {
		return err
	}
	after, err := version(ctx, db)
	if err != nil {
		return err
	}
	if before == after {
		_, err = fmt.Fprintf(out, "%s: version %d, nothing to do\n", name, after)
	} else {
		_, err = fmt.Fprintf(out, "%s: version %d, was %d\n", name, after, before)
	}
	return err
}

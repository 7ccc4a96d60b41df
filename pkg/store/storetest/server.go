package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	"framerun.dev/migrations"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/localpg"
	_ "github.com/lib/pq" // the driver "postgres"
)

// pristine is the template to which nobody can connect and that nobody has changed.
const pristine = "template0"

// server is a PostgreSQL with a migrated and seeded template in it.
type server struct {
	url    func(database string) string
	stop   func() error
	admin  *sql.DB
	prefix string // of the names of the databases made here: several test binaries may share a server
	made   atomic.Int64
	reader url.Userinfo // who may only read, in all of them
}

// open uses the server that address names, or starts one.
func open(ctx context.Context, address string) (*server, error) {
	s, err := reach(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	if err := s.fillTemplate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("storetest: making the template: %w", err), s.close(ctx))
	}
	return s, nil
}

func reach(ctx context.Context, address string) (*server, error) {
	s := &server{prefix: "framerun_test_" + strings.ToLower(rand.Text()[:8]) + "_"}
	if address != "" {
		return s, s.use(address)
	}
	// Steady plans and no visitor in the databases being cloned; room for many tests with pools of their own.
	local, err := localpg.Start(ctx, localpg.Config{
		Settings: map[string]string{"autovacuum": "off", "max_connections": "400"},
	})
	if err != nil {
		return nil, err
	}
	s.url, s.stop = local.URL, local.Stop
	s.admin, err = sql.Open("postgres", s.url("postgres"))
	return s, err
}

// use makes s work on a server that is there already.
func (s *server) use(address string) error {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" {
		// The cause would print the address, and with it the password.
		return errors.New("DATABASE_URL is not of the form postgres://user:password@host:port/database?sslmode=disable")
	}
	s.url = func(database string) string {
		u := *base
		u.Path = "/" + database
		return u.String()
	}
	s.stop = func() error { return nil }
	s.admin, err = sql.Open("postgres", address)
	return err
}

func (s *server) template() string {
	return s.prefix + "template"
}

func (s *server) fillTemplate(ctx context.Context) error {
	if err := s.create(ctx, s.template(), pristine); err != nil {
		return err
	}
	db, err := sql.Open("postgres", s.url(s.template()))
	if err != nil {
		return err
	}
	defer db.Close() // a database with somebody in it cannot be cloned
	for _, step := range []func(context.Context, *sql.DB) error{platform.Up, migrations.Up, platform.Seed} {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	return s.makeReader(ctx)
}

// makeReader makes a role that can sign in and has the rights of framerun_reader (migrations/00008_reader_role.sql).
func (s *server) makeReader(ctx context.Context) error {
	name, password := s.prefix+"reader", rand.Text()
	_, err := s.admin.ExecContext(ctx, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s' IN ROLE framerun_reader`, name, password))
	s.reader = *url.UserPassword(name, password)
	return err
}

// asReader is the same database for somebody who may only read.
func (s *server) asReader(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // it was made by this package
	}
	u.User = &s.reader
	return u.String()
}

// clone makes a copy of the template and names it.
func (s *server) clone(ctx context.Context) (string, error) {
	name := s.nextName()
	return name, s.create(ctx, name, s.template())
}

// blank makes a database with nothing in it and names it.
func (s *server) blank(ctx context.Context) (string, error) {
	name := s.nextName()
	return name, s.create(ctx, name, pristine)
}

func (s *server) nextName() string {
	return fmt.Sprint(s.prefix, s.made.Add(1))
}

func (s *server) create(ctx context.Context, name, from string) error {
	if _, err := s.admin.ExecContext(ctx, `CREATE DATABASE "`+name+`" TEMPLATE "`+from+`"`); err != nil {
		return fmt.Errorf("storetest: creating a database: %w", err)
	}
	return nil
}

// drop removes a database even while a test's leftovers are still connected.
func (s *server) drop(ctx context.Context, name string) error {
	if _, err := s.admin.ExecContext(ctx, `DROP DATABASE IF EXISTS "`+name+`" WITH (FORCE)`); err != nil {
		return fmt.Errorf("storetest: dropping a database: %w", err)
	}
	return nil
}

func (s *server) close(ctx context.Context) error {
	err := s.drop(ctx, s.template())
	_, gone := s.admin.ExecContext(ctx, `DROP ROLE IF EXISTS `+s.prefix+`reader`)
	return errors.Join(err, gone, s.admin.Close(), s.stop())
}

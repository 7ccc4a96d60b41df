// Package store keeps the truth: it is the only package that knows SQL, the seeds' digits and SQLSTATEs.
//
// Two functions write runs. Create makes a row; Apply locks it, has lifecycle.Decide say what the command means, and stores
// exactly that. Each writes the row, its timeline and its outbox in one transaction, so that nothing is told to anybody that
// is not so, and nothing that is so is forgotten. What happens outside (SQS, NATS, the result document, the design registry) is
// told by pkg/relay, from the outbox.
package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Store reads and writes runs in one PostgreSQL database. It is safe for concurrent use.
type Store struct {
	db       *sqlx.DB
	patience time.Duration // for one call, waiting for a connection included
	effects  Effects
	fresh    fresh
	alone    int      // see group
	prepared sync.Map // query text → *sqlx.Stmt: an unprepared lib/pq query costs 2.6 times a prepared one
	rare     rare     // the same for queries of which there are very many

	creates map[lifecycle.Kind]*group[Creation, lifecycle.Run]
	applies map[lifecycle.Kind]*group[lifecycle.Command, Applied]
	reads   map[lifecycle.Kind]*group[wish, lifecycle.Run]
}

// Options bound what the store asks of PostgreSQL, and say what it writes beside the runs. Zero values mean the defaults named here.
type Options struct {
	Effects          Effects       // none
	Pool             int           // open connections; 12
	StatementTimeout time.Duration // for one statement, lock waits included; 4 s
	Alone            bool          // every command in a transaction of its own, to see what sharing one is worth
}

// Open returns a store for the database at dsn, a postgres:// URL. It does not connect yet: a server that is down shows in
// Ping and in each call as lifecycle.ErrUnavailable, and is used again as soon as it is back.
func Open(dsn string, o Options) (*Store, error) {
	o.fill()
	db, err := Connect(dsn, o)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, patience: o.StatementTimeout + time.Second/2, effects: o.Effects, fresh: fresh{jobs: map[string]*handover[lifecycle.Job]{}}}
	if o.Alone {
		s.alone = o.Pool
	}
	s.gather()
	return s, nil
}

func (o *Options) fill() {
	if o.Pool == 0 {
		o.Pool = 12
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 4 * time.Second
	}
}

// Connect returns a pool of connections to the database at dsn, a postgres:// URL, none of which waits for ever for an answer. It
// does not connect yet.
func Connect(dsn string, o Options) (*sqlx.DB, error) {
	o.fill()
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("store: the database address must look like postgres://user:password@host:5432/name?sslmode=require")
	}
	q := u.Query()
	timeout := strconv.FormatInt(o.StatementTimeout.Milliseconds(), 10)
	for name, value := range map[string]string{
		"connect_timeout": "3", "statement_timeout": timeout, "idle_in_transaction_session_timeout": timeout,
		// A row that somebody holds fails its own command soon enough for others of its batch to be tried again.
		"lock_timeout": strconv.FormatInt(o.StatementTimeout.Milliseconds()/4, 10),
		"timezone":     "UTC",
		// Every statement has its index and one plan. Without the second setting a plan made while a table was small would go on
		// reading all of it when it has grown.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off",
		// Statements are short. What a guess makes look long would be compiled each time, for a hundred milliseconds.
		"jit": "off",
	} {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	connector, err := pq.NewConnector(u.String())
	if err != nil {
		return nil, fmt.Errorf("store: the database address is not usable")
	}
	connector.Dialer(dialer{silence: o.StatementTimeout + 300*time.Millisecond}) // the server answers, or is late, before that
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	db.SetMaxOpenConns(o.Pool)
	db.SetMaxIdleConns(o.Pool)
	db.SetConnMaxLifetime(30 * time.Minute)
	return db, nil
}

// gather sets up the groups in which runs are stored, changed and read together, one for each kind.
func (s *Store) gather() {
	s.creates = map[lifecycle.Kind]*group[Creation, lifecycle.Run]{}
	s.applies = map[lifecycle.Kind]*group[lifecycle.Command, Applied]{}
	s.reads = map[lifecycle.Kind]*group[wish, lifecycle.Run]{}
	for _, kind := range lifecycle.Kinds {
		s.creates[kind] = &group[Creation, lifecycle.Run]{
			carry:    func(ctx context.Context, batch []Creation) []answer[lifecycle.Run] { return s.insert(ctx, kind, batch) },
			key:      func(c Creation) string { return c.Run.ID },
			patience: s.patience, alone: s.alone,
		}
		s.applies[kind] = &group[lifecycle.Command, Applied]{
			carry: func(ctx context.Context, batch []lifecycle.Command) []answer[Applied] {
				return s.apply(ctx, kind, batch)
			},
			key:      func(cmd lifecycle.Command) string { return cmd.Run.ID },
			patience: s.patience, alone: s.alone,
		}
		s.reads[kind] = &group[wish, lifecycle.Run]{
			carry:    func(ctx context.Context, batch []wish) []answer[lifecycle.Run] { return s.readAll(ctx, kind, batch) },
			patience: s.patience, alone: s.alone,
		}
	}
}

// Close gives the connections back.
func (s *Store) Close() error { return s.db.Close() }

// Ping asks PostgreSQL for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	return failed(ctx, "ping", s.db.PingContext(ctx))
}

// Pool is the connection pool, for metrics alone.
func (s *Store) Pool() *sql.DB { return s.db.DB }

// stmt prepares query once and returns it ever after.
func (s *Store) stmt(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if st, ok := s.prepared.Load(query); ok {
		return st.(*sqlx.Stmt), nil
	}
	st, err := s.db.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, taken := s.prepared.LoadOrStore(query, st); taken {
		st.Close()
		return first.(*sqlx.Stmt), nil
	}
	return st, nil
}

// prepare makes sure that the statements exist before a transaction holds a connection: preparing takes one of its own.
func (s *Store) prepare(ctx context.Context, queries ...string) error {
	for _, query := range queries {
		if _, err := s.stmt(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// one reads one row into dest.
func (s *Store) one(ctx context.Context, dest any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.GetContext(ctx, dest, args...)
}

// many reads all rows into the slice dest.
func (s *Store) many(ctx context.Context, dest any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.SelectContext(ctx, dest, args...)
}

// exec runs a statement that returns nothing.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

// oneIn is one inside a transaction.
func (s *Store) oneIn(ctx context.Context, tx *sqlx.Tx, dest any, query string, args ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return tx.StmtxContext(ctx, st).GetContext(ctx, dest, args...)
}

// manyIn is many inside a transaction.
func (s *Store) manyIn(ctx context.Context, tx *sqlx.Tx, dest any, query string, args ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return tx.StmtxContext(ctx, st).SelectContext(ctx, dest, args...)
}

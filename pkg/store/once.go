package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
)

// Key is a caller's Idempotency-Key. It belongs to the caller and the organization of the creation that it comes with.
type Key struct {
	Text        string
	Fingerprint []byte // of the request: the same key with another one is refused
}

// CreateOnce is Create for a caller who may ask again without knowing what became of the first time: within a day the same key leads
// to the same run, and replayed says so. Key and run are stored in one transaction, so that either stands when the other does.
//
// Errors, beside those of Create: lifecycle.ErrKeyReused (the key came with another request), lifecycle.ErrKeyInFlight (the first
// request with it is still under way), lifecycle.ErrNotFound also when the key's run has been deleted. A creation that failed leaves
// its key free.
func (s *Store) CreateOnce(ctx context.Context, c Creation, key Key) (run lifecycle.Run, replayed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	run, err = s.unlessInTheWay(ctx, c.Run, func() (lifecycle.Run, error) {
		for {
			earlier, err := s.madeWith(ctx, c, key)
			if replayed = earlier != nil; replayed {
				return s.Run(ctx, *earlier, c.Run.Tenant)
			}
			if err != nil {
				return lifecycle.Run{}, err
			}
			if made, err := s.createOnce(ctx, c, key); !errors.Is(err, errMadeMeanwhile) {
				return made, err
			}
		}
	})
	return run, replayed, err
}

// errMadeMeanwhile: another request with the key was quicker by a moment.
var errMadeMeanwhile = errors.New("store: made meanwhile")

// createOnce makes the run unless the key is taken. Only who holds the key's lock looks and makes, so that two never make.
func (s *Store) createOnce(ctx context.Context, c Creation, key Key) (run lifecycle.Run, err error) {
	if err := s.prepare(ctx, tryKey, keyTaken, insertOne[c.Run.Kind], keepKey); err != nil {
		return run, failed(ctx, "create once", err)
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return run, failed(ctx, "create once", err)
	}
	defer tx.Rollback() // after a commit this does nothing

	var free, made bool
	owner := strconv.FormatInt(c.Run.OrganizationID, 10) + "\n" + c.By.Name + "\n" + key.Text
	if err := s.oneIn(ctx, tx, &free, tryKey, owner); err != nil {
		return run, failed(ctx, "take a key", err)
	}
	if !free {
		return run, lifecycle.ErrKeyInFlight
	}
	if err := s.oneIn(ctx, tx, &made, keyTaken, c.Run.OrganizationID, c.By.Name, key.Text); err != nil {
		return run, failed(ctx, "look a key up", err)
	}
	if made {
		return run, errMadeMeanwhile
	}
	began := time.Now()
	d, born, err := s.insertWithKey(ctx, tx, c, key)
	if err != nil {
		return run, err
	}
	if err := uncertain(ctx, "create once", tx.Commit()); err != nil {
		return run, err
	}
	s.handOver(began, d, born)
	return d.Next, nil
}

// madeWith finds the run that an earlier request with the key has made; nil if there was none.
func (s *Store) madeWith(ctx context.Context, c Creation, key Key) (*lifecycle.Ref, error) {
	var used struct {
		Kind        lifecycle.Kind `db:"kind"`
		RunID       string         `db:"run_id"`
		Fingerprint []byte         `db:"fingerprint"`
	}
	err := s.one(ctx, &used, selectKey, c.Run.OrganizationID, c.By.Name, key.Text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, failed(ctx, "look a key up", err)
	case !bytes.Equal(used.Fingerprint, key.Fingerprint):
		return nil, lifecycle.ErrKeyReused
	}
	return &lifecycle.Ref{Kind: used.Kind, ID: used.RunID}, nil
}

func (s *Store) insertWithKey(ctx context.Context, tx *sqlx.Tx, c Creation, key Key) (lifecycle.Decision, born, error) {
	d := lifecycle.Begin(c.Run, c.By, c.Traceparent)
	var got inserted
	if err := s.oneIn(ctx, tx, &got, insertOne[c.Run.Kind], s.newRowOf(d, 0).values(c.Run.Kind)...); err != nil {
		return d, born{}, failed(ctx, "create once", err)
	}
	if err := got.stamp(&d); err != nil {
		return d, born{}, err
	}
	var kept bool
	err := s.oneIn(ctx, tx, &kept, keepKey, c.Run.OrganizationID, c.By.Name, key.Text, key.Fingerprint, c.Run.Kind, c.Run.ID)
	return d, got.born, failed(ctx, "keep a key", err)
}

// keyKept is how long a key stands.
const keyKept = `interval '24 hours'`

const (
	tryKey    = `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`
	selectKey = `SELECT kind, run_id, fingerprint FROM idempotency_key
WHERE organization_id = $1 AND caller = $2 AND key = $3 AND created_at > now() - ` + keyKept
	keyTaken = `SELECT EXISTS (` + selectKey + `)`
	// A key that is past its time is free again, whether it has been cleared away or not.
	keepKey = `INSERT INTO idempotency_key (organization_id, caller, key, fingerprint, kind, run_id) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (organization_id, caller, key) DO UPDATE SET fingerprint = excluded.fingerprint, kind = excluded.kind,
	run_id = excluded.run_id, created_at = excluded.created_at
RETURNING true`
)

// ForgetKeys clears away up to limit keys that are past their time, and says how many there were.
func (s *Store) ForgetKeys(ctx context.Context, limit int) (int, error) {
	var forgotten int
	err := s.one(ctx, &forgotten, `WITH old AS (DELETE FROM idempotency_key WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM idempotency_key WHERE created_at <= now() - `+keyKept+` LIMIT $1)) AND created_at <= now() - `+keyKept+` RETURNING 1)
SELECT count(*) FROM old`, limit)
	return forgotten, failed(ctx, "forget keys", err)
}

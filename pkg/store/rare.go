package store

import (
	"context"
	"sync"

	"github.com/jmoiron/sqlx"
)

// rareMost is how many rare queries stay prepared.
const rareMost = 64

// rare holds prepared statements for queries that are put together from what callers ask for: there are thousands, of which few are
// asked often, and PostgreSQL would remember each of them in every connection for ever.
type rare struct {
	mu    sync.Mutex
	texts map[string]*rareStatement
}

type rareStatement struct {
	*sqlx.Stmt
	users int
	gone  bool // not in texts any more: its last user closes it
}

// seldom is many for a rare query.
func (s *Store) seldom(ctx context.Context, dest any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	st, err := s.rare.take(ctx, s.db, query)
	if err != nil {
		return err
	}
	defer s.rare.giveBack(st)
	return st.SelectContext(ctx, dest, args...)
}

// take finds the statement, or makes it and lets another one go.
func (r *rare) take(ctx context.Context, db *sqlx.DB, query string) (*rareStatement, error) {
	if st := r.known(query, nil); st != nil {
		return st, nil
	}
	made, err := db.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return r.known(query, made), nil
}

// known gives the statement to one more user. Where it is not known, made is kept, unless it is nil.
func (r *rare) known(query string, made *sqlx.Stmt) *rareStatement {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.texts[query]
	switch {
	case st != nil && made != nil: // two made it at the same time
		made.Close()
	case st == nil && made == nil:
		return nil
	case st == nil:
		r.makeRoom()
		st = &rareStatement{Stmt: made}
		r.texts[query] = st
	}
	st.users++
	return st
}

// makeRoom lets go of any statement when there are too many; r.mu is held.
func (r *rare) makeRoom() {
	if r.texts == nil {
		r.texts = map[string]*rareStatement{}
	}
	for text, st := range r.texts {
		if len(r.texts) < rareMost {
			return
		}
		delete(r.texts, text)
		if st.gone = true; st.users == 0 {
			st.Close()
		}
	}
}

func (r *rare) giveBack(st *rareStatement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st.users--; st.users == 0 && st.gone {
		st.Close()
	}
}

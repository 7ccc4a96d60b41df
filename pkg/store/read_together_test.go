package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// Many who read at once share queries, and each is given their own run or their own refusal.
func TestReadsShareQueries(t *testing.T) {
	t.Parallel()
	w := openTogether(t)
	var runs []lifecycle.Run
	for range 40 {
		runs = append(runs, w.create(t, w.creation(lifecycle.WF2Des)))
	}
	stranger := lifecycle.Tenant{OrganizationID: tenant.OrganizationID, ProjectID: tenant.ProjectID + 1}
	var readers sync.WaitGroup
	for i := range 400 {
		readers.Go(func() {
			want, as := runs[i%len(runs)], tenant
			if i%5 == 0 {
				as = stranger
			}
			got, err := w.Run(t.Context(), want.Ref, as)
			if as == stranger && !errors.Is(err, lifecycle.ErrNotFound) || as == tenant && (err != nil || got.ID != want.ID || got.WFNodeID != want.WFNodeID) {
				t.Errorf("run %s as %v: %s, %v", want.ID, as, got.ID, err)
			}
		})
	}
	readers.Wait()
}

// Reads that PostgreSQL does not answer in time end with an error, each of them. Catches a read that ends with nothing and no error, as
// if the run were empty.
func TestReadsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	w := openWith(t, store.Options{StatementTimeout: time.Second})
	run := w.create(t, w.creation(lifecycle.WF2Des))
	tx := w.sql.MustBegin()
	defer tx.Rollback()
	tx.MustExec(`LOCK TABLE wf2des IN ACCESS EXCLUSIVE MODE`)
	var readers sync.WaitGroup
	for range 60 {
		readers.Go(func() {
			if got, err := w.Run(context.Background(), run.Ref, tenant); !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("got %q, %v; want ErrUnavailable", got.ID, err)
			}
		})
	}
	readers.Wait()
}

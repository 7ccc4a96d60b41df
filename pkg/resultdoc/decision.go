package resultdoc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// waitMost is how long a decision waits for a document that does not come. A worker writes it before it says "parsed", so one that is
// missing a day later will not come.
const waitMost = 24 * time.Hour

// Send writes decisions into their documents, in their order, and returns one error for each: it is a sender of the relay. Telling a
// decision again changes nothing.
//
// A document that is not there yet, or is of an older attempt, is lifecycle.ErrTooEarly for a day, then lifecycle.ErrUndeliverable. A
// document of a newer attempt is lifecycle.ErrOutdated: its worker knows nothing of this decision. One that holds the opposite
// decision is lifecycle.ErrUndeliverable. None of them is changed.
func (d *Documents) Send(ctx context.Context, decisions []lifecycle.Announcement) []error {
	errs := make([]error, len(decisions))
	for i, a := range decisions {
		errs[i] = d.decide(ctx, a.Event)
		if down(errs[i]) { // the others would wait for the same in vain
			for j := i + 1; j < len(errs); j++ {
				errs[j] = errs[i]
			}
			break
		}
	}
	return errs
}

// down tells a store that cannot be reached from one that has answered.
func down(err error) bool {
	answered := errors.Is(err, lifecycle.ErrTooEarly) || errors.Is(err, lifecycle.ErrOutdated) || errors.Is(err, lifecycle.ErrUndeliverable)
	_, refused := errors.AsType[mongo.ServerError](err)
	return err != nil && !answered && !refused
}

// decide writes one decision where the document is of its attempt and holds none.
func (d *Documents) decide(ctx context.Context, e lifecycle.Event) error {
	path, opposite, err := paths(e.What)
	if err != nil {
		return err
	}
	result, err := d.all.UpdateOne(ctx,
		bson.D{{Key: "_id", Value: e.Run.ID}, {Key: attemptPath, Value: e.Attempt}, absent(path), absent(opposite)},
		bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: Decision{By: e.By.Name, At: e.At.UTC()}}}}})
	switch {
	case unwritable(err):
		return fmt.Errorf("resultdoc: the document has no room for a decision: %w: %w", lifecycle.ErrUndeliverable, err)
	case err != nil:
		return fmt.Errorf("resultdoc: write a decision: %w", err)
	case result.MatchedCount == 1:
		return nil
	}
	return d.explain(ctx, e)
}

func paths(what lifecycle.What) (path, opposite string, err error) {
	switch what {
	case lifecycle.WasConfirmed:
		return confirmedPath, rejectedPath, nil
	case lifecycle.WasRejected:
		return rejectedPath, confirmedPath, nil
	}
	return "", "", fmt.Errorf("resultdoc: %q is no decision: %w", what, lifecycle.ErrUndeliverable)
}

func absent(path string) bson.E {
	return bson.E{Key: path, Value: bson.D{{Key: "$exists", Value: false}}}
}

// unwritable recognises a document whose parse member is no object: MongoDB's PathNotViable and its kin.
func unwritable(err error) bool {
	refused, ok := errors.AsType[mongo.ServerError](err)
	return ok && (refused.HasErrorCode(28) || refused.HasErrorCode(2) || refused.HasErrorCode(14))
}

// explain says why a decision found no document to be written into.
func (d *Documents) explain(ctx context.Context, e lifecycle.Event) error {
	found, err := d.find(ctx, e.Run.ID)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return early(e, "there is no document of this run yet")
	}
	if err != nil {
		return fmt.Errorf("resultdoc: read the document: %w", err)
	}
	attempt, ok := number(found, attemptPath)
	switch {
	case !ok:
		return fmt.Errorf("resultdoc: the document names no attempt: %w", lifecycle.ErrUndeliverable)
	case attempt < int64(e.Attempt):
		return early(e, fmt.Sprintf("the document is of attempt %d still, and the decision of attempt %d", attempt, e.Attempt))
	case attempt > int64(e.Attempt):
		return fmt.Errorf("resultdoc: the document is of attempt %d already, and the decision of attempt %d: %w", attempt, e.Attempt, lifecycle.ErrOutdated)
	}
	return sameDecision(found, e.What)
}

// sameDecision is nil for a document that holds the decision already. Who made it, and when, stays as it stands there: the plugin may
// have noted a rejection itself (seed).
func sameDecision(found bson.Raw, what lifecycle.What) error {
	confirmed, rejected := has(found, "confirmed"), has(found, "rejected")
	switch {
	case confirmed && rejected:
		return fmt.Errorf("resultdoc: the document holds both decisions: %w", lifecycle.ErrUndeliverable)
	case confirmed && what == lifecycle.WasRejected, rejected && what == lifecycle.WasConfirmed:
		return fmt.Errorf("resultdoc: the document holds the opposite decision: %w", lifecycle.ErrUndeliverable)
	case !confirmed && !rejected: // it came between the two looks
		return fmt.Errorf("resultdoc: the document has just been made: %w", lifecycle.ErrTooEarly)
	}
	return nil
}

// early lets a decision wait, but not for ever.
func early(e lifecycle.Event, why string) error {
	if time.Since(e.At) > waitMost {
		return fmt.Errorf("resultdoc: %s, and it has not come in %s: %w", why, waitMost, lifecycle.ErrUndeliverable)
	}
	return fmt.Errorf("resultdoc: %s: %w", why, lifecycle.ErrTooEarly)
}

func has(found bson.Raw, decision string) bool {
	_, err := found.LookupErr("parse", decision)
	return err == nil
}

func (d *Documents) find(ctx context.Context, id string) (bson.Raw, error) {
	return d.all.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Raw()
}

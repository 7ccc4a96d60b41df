package resultdoc

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// ErrSuperseded: the document is of a newer attempt; nobody wants what this worker has found any more.
var ErrSuperseded = errors.New("the result document is of a newer attempt")

// Write is a worker's side: it makes the document, or brings it up to date. A document of the same attempt keeps what is not named in
// doc, the decision above all; one of an older attempt is replaced as a whole; one of a newer attempt is ErrSuperseded. Writing the same
// again changes nothing.
func (d *Documents) Write(ctx context.Context, doc Document) error {
	doc.Parse.Confirmed, doc.Parse.Rejected = nil, nil // the suite's to say
	for range 8 {
		done, err := d.write(ctx, doc)
		if err != nil {
			return fmt.Errorf("resultdoc: write the document: %w", err)
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("resultdoc: write the document of attempt %d: %w", doc.Attempt, ErrSuperseded)
}

// write tries the three ways once. It reports false if the document has changed in between, or is of a newer attempt.
func (d *Documents) write(ctx context.Context, doc Document) (done bool, err error) {
	id := bson.E{Key: "_id", Value: doc.RunID}
	updated, err := d.all.UpdateOne(ctx, bson.D{id, {Key: attemptPath, Value: doc.Attempt}}, bson.D{{Key: "$set", Value: doc.members()}})
	if err != nil || updated.MatchedCount == 1 {
		return err == nil, err
	}
	older := bson.D{{Key: "$lt", Value: doc.Attempt}}
	replaced, err := d.all.ReplaceOne(ctx, bson.D{id, {Key: attemptPath, Value: older}}, doc)
	if err != nil || replaced.MatchedCount == 1 {
		return err == nil, err
	}
	_, err = d.all.InsertOne(ctx, doc)
	if mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	return err == nil, err
}

// members are what doc says, each by its path, so that setting them leaves their neighbours alone.
func (doc Document) members() bson.D {
	set := bson.D{{Key: "request.placement_target", Value: doc.Request.PlacementTarget}}
	if doc.Parse.Components != nil {
		set = append(set, bson.E{Key: "parse.components", Value: doc.Parse.Components})
	}
	if doc.Confidence != nil {
		set = append(set, bson.E{Key: "confidence.flag_count", Value: doc.Confidence.FlagCount})
	}
	if doc.Score != nil {
		set = append(set, bson.E{Key: "score", Value: *doc.Score})
	}
	if doc.ScoreVersion != nil {
		set = append(set, bson.E{Key: "score_version", Value: *doc.ScoreVersion})
	}
	return set
}

package resultdoc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"framerun.dev/pkg/lifecycle"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Numbers are what the row copies from the document when a run is completed (seed). Nil is what the document does not say, or says in
// a way that the row cannot hold.
type Numbers struct {
	FlagCount    *int
	Score        *lifecycle.Score
	ScoreVersion *string // nil without a score
}

// Numbers reads what the document of this attempt says; nothing if there is none.
func (d *Documents) Numbers(ctx context.Context, run lifecycle.Ref, attempt int) (Numbers, error) {
	found, err := d.all.FindOne(ctx, bson.D{{Key: "_id", Value: run.ID}, {Key: attemptPath, Value: attempt}}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return Numbers{}, nil
	}
	if err != nil {
		return Numbers{}, fmt.Errorf("resultdoc: read numbers: %w", err)
	}
	return numbersOf(found), nil
}

func numbersOf(found bson.Raw) (n Numbers) {
	if flags, ok := number(found, "confidence", "flag_count"); ok && flags >= 0 && flags <= math.MaxInt32 {
		n.FlagCount = new(int(flags))
	}
	value, err := found.LookupErr("score")
	if err != nil {
		return n
	}
	if score, ok := lifecycle.NewScore(fraction(value)); ok {
		n.Score, n.ScoreVersion = &score, version(found)
	}
	return n
}

// fraction reads a number of any type; NaN is what is none.
func fraction(value bson.RawValue) float64 {
	if d, ok := value.Decimal128OK(); ok {
		if f, err := strconv.ParseFloat(d.String(), 64); err == nil {
			return f
		}
	}
	if f, ok := value.AsFloat64OK(); ok {
		return f
	}
	return math.NaN()
}

// version is the score's version if it fits the row's column.
func version(found bson.Raw) *string {
	value, err := found.LookupErr("score_version")
	if err != nil {
		return nil
	}
	text, ok := value.StringValueOK()
	if !ok || text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > 32 {
		return nil
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return nil
		}
	}
	return &text
}

// number reads a whole number, in whatever type a worker's language has stored it.
func number(found bson.Raw, path ...string) (int64, bool) {
	value, err := found.LookupErr(path...)
	if err != nil {
		return 0, false
	}
	if f, ok := value.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return value.AsInt64OK()
}

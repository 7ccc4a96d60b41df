package resultdoc

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Catches a number that is none and gets into the row, where JSON could not print it. DocumentDB holds such numbers; the server that the
// other tests use does not.
func TestWhatIsNoNumberIsMissing(t *testing.T) {
	t.Parallel()
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1) - 1e-9} {
		raw, err := bson.Marshal(bson.D{{Key: "confidence", Value: bson.D{{Key: "flag_count", Value: odd}}}, {Key: "score", Value: odd}})
		if err != nil {
			t.Fatal(err)
		}
		if got := numbersOf(raw); got != (Numbers{}) {
			t.Errorf("%v: %+v", odd, got)
		}
	}
}

// Catches an exact number that is missed for its type.
func TestDecimalsAreNumbers(t *testing.T) {
	t.Parallel()
	half, err := bson.ParseDecimal128("0.5")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bson.Marshal(bson.D{{Key: "score", Value: half}})
	if err != nil {
		t.Fatal(err)
	}
	if got := numbersOf(raw).Score; got == nil || *got != 5000 {
		t.Errorf("0.5 is read as %v", got)
	}
}

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// decide runs the whole service, confirms a run and rejects another one, and gives what readyz says of the document store.
func decide(t *testing.T, w *servicetest.World, documents string) (runs []lifecycle.Run, readyz string) {
	t.Helper()
	s := w.Start(t, run, w.Environment(t, map[string]string{"DOCUMENTDB_URL": documents}))
	quickest := time.Hour
	for _, decision := range []string{"confirm", "reject"} {
		run := w.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
		for press := range 2 { // the designer presses twice
			began := time.Now()
			reply := s.Send(t, "POST", servicetest.Path(run, 1)+"/confirm", w.Owner, `{"decision":"`+decision+`","attempt":1}`)
			if reply.Status != http.StatusOK {
				t.Errorf("%s: %d %s", decision, reply.Status, reply.Body)
			}
			if press == 0 {
				quickest = min(quickest, time.Since(began))
			}
		}
		runs = append(runs, run)
	}
	if quickest >= time.Second { // whoever waited for the store would wait each time until it is given up
		t.Errorf("the quickest answer took %s", quickest)
	}
	response, err := http.Get(s.Ops + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("readyz: %s, %v", response.Status, err)
	}
	return runs, string(raw)
}

// told are a run's entries for the result document.
func told(t *testing.T, w *servicetest.World, run lifecycle.Run) (letters []servicetest.Letter) {
	t.Helper()
	for _, l := range w.Outbox(t, run.Ref) {
		if l.Destination == "documents" {
			letters = append(letters, l)
		}
	}
	return letters
}

// Catches a document store that holds up the designer or makes the service unready, and a decision that is not kept for it, or kept twice.
func TestDocumentStoreIsAway(t *testing.T) {
	t.Parallel()
	silent := servicetest.Listen(t) // takes connections and says nothing
	defer silent.Close()
	for name, address := range map[string]string{"down": servicetest.FreeAddress(t), "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := servicetest.New(t)
			runs, readyz := decide(t, w, "mongodb://"+address+"/framerun?directConnection=true")
			if !strings.Contains(readyz, `"name":"documentdb","ok":false`) {
				t.Errorf("readyz says %s", readyz)
			}
			for _, run := range runs {
				if letters := told(t, w, run); len(letters) != 1 || letters[0].State != "pending" || *letters[0].Seq != 3 || letters[0].Attempt != 1 {
					t.Errorf("kept for the document: %+v", letters)
				}
			}
			servicetest.Eventually(t, "the cause is kept for the operator", func() bool {
				var waiting int
				err := w.SQL.Get(&waiting, `SELECT count(*) FROM outbox WHERE destination = 'documents' AND last_error LIKE 'resultdoc: %'`)
				return err == nil && waiting == 2
			})
		})
	}
}

// Catches an effect that is written although nobody would carry it.
func TestDocumentStoreIsOff(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	runs, readyz := decide(t, w, "")
	if !strings.Contains(readyz, `"name":"documentdb","ok":true,"critical":false,"off":true`) {
		t.Errorf("readyz says %s", readyz)
	}
	for _, run := range runs {
		if letters := told(t, w, run); len(letters) > 0 {
			t.Errorf("%d effects are written", len(letters))
		}
	}
}

package store_test

import (
	"slices"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// The seeds' type codes, by the words of lifecycle. Catches any digit that means another word.
var digits = map[string]map[string]string{
	"wf2des_status":          {"processing": "0", "completed": "1", "failed": "2", "rejected": "3", "cancelled": "4"},
	"wf2des_phase":           {"parse": "0", "awaiting_confirm": "1", "assemble": "2"},
	"wf2des_auto_confirm":    {"false": "0", "true": "1"},
	"wf2des_trigger_surface": {"api": "0", "plugin": "1"},
	"wf2des_feedback_status": {"fixed": "0", "adopted": "1"},
	"wf2des_edge":            {"wf2des": "0", "des2wf": "1"},
}

// Catches a digit that the database knows and the seeds' type codes here do not, or the reverse.
func TestDigitsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	w := open(t)
	for enum, words := range digits {
		var want []string
		for _, d := range words {
			want = append(want, d)
		}
		slices.Sort(want)
		got := value[string](t, w, `SELECT array_to_string(enum_range(NULL::`+enum+`), ' ')`)
		if got != strings.Join(want, " ") {
			t.Errorf("%s holds %s, want %v", enum, got, want)
		}
	}
}

// Catches a word that is written as one digit and read as another, for every state of both kinds and every other word.
func TestEveryWordIsStoredAsItsDigit(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, state := range lifecycle.States {
		for _, kind := range lifecycle.Kinds {
			if !slices.Contains(statesOf[kind], state) {
				continue
			}
			run := w.in(t, state, w.creation(kind))
			status := value[string](t, w, `SELECT status FROM `+string(kind)+` WHERE id = $1`, run.ID)
			if status != digits["wf2des_status"][string(state.Status())] {
				t.Errorf("%s: status is %q", state, status)
			}
			if kind == lifecycle.Code2WF {
				continue
			}
			phase := value[*string](t, w, `SELECT phase FROM wf2des WHERE id = $1`, run.ID)
			want, open := digits["wf2des_phase"][string(state.Phase())]
			if open != (phase != nil) || open && *phase != want {
				t.Errorf("%s: phase is %v, want %q", state, phase, want)
			}
		}
	}
	for _, c := range []struct {
		column, enum, word string
		change             func(*lifecycle.Run)
	}{
		{"edge", "wf2des_edge", "wf2des", func(r *lifecycle.Run) { r.Edge = lifecycle.EdgeWF2Des }},
		{"edge", "wf2des_edge", "des2wf", func(r *lifecycle.Run) { r.Edge = lifecycle.EdgeDes2WF }},
		{"trigger_surface", "wf2des_trigger_surface", "api", func(r *lifecycle.Run) { r.TriggerSurface = lifecycle.API }},
		{"trigger_surface", "wf2des_trigger_surface", "plugin", func(r *lifecycle.Run) { r.TriggerSurface = lifecycle.Plugin }},
		{"auto_confirm", "wf2des_auto_confirm", "false", func(r *lifecycle.Run) { r.AutoConfirm = false }},
		{"auto_confirm", "wf2des_auto_confirm", "true", func(r *lifecycle.Run) { r.AutoConfirm = true }},
	} {
		asked := w.creation(lifecycle.WF2Des)
		c.change(&asked.Run)
		run := w.create(t, asked)
		if got := value[string](t, w, `SELECT `+c.column+` FROM wf2des WHERE id = $1`, run.ID); got != digits[c.enum][c.word] {
			t.Errorf("%s %s is stored as %q", c.column, c.word, got)
		}
		if diff := cmp.Diff(run, w.read(t, run.Ref)); diff != "" {
			t.Errorf("%s %s (-stored +read):\n%s", c.column, c.word, diff)
		}
	}
	for _, f := range []lifecycle.FeedbackStatus{lifecycle.Fixed, lifecycle.Adopted} {
		cmd := command(lifecycle.Rate, w.in(t, lifecycle.Completed, w.creation(lifecycle.WF2Des)))
		cmd.Feedback = f
		run := w.apply(t, cmd).Run
		got := value[string](t, w, `SELECT feedback_status FROM wf2des WHERE id = $1`, run.ID)
		if read := w.read(t, run.Ref).Feedback; got != digits["wf2des_feedback_status"][string(f)] || read == nil || *read != f {
			t.Errorf("feedback %s is stored as %q and read as %v", f, got, read)
		}
	}
}

var statesOf = map[lifecycle.Kind][]lifecycle.State{
	lifecycle.WF2Des: {
		lifecycle.Parsing, lifecycle.AwaitingConfirm, lifecycle.Assembling,
		lifecycle.Completed, lifecycle.Failed, lifecycle.Rejected, lifecycle.Cancelled,
	},
	lifecycle.Code2WF: {lifecycle.Processing, lifecycle.Completed, lifecycle.Failed},
}

// Catches a digit of a newer database that is taken for some known word, or for no run at all.
func TestUnknownDigitsAreErrors(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, c := range []struct{ enum, change string }{
		{"wf2des_status", `status = '9'`},
		{"wf2des_phase", `status = '0', phase = '9', result_url = NULL`},
		{"wf2des_auto_confirm", `auto_confirm = '9'`},
		{"wf2des_trigger_surface", `trigger_surface = '9'`},
		{"wf2des_feedback_status", `feedback_status = '9'`},
		{"wf2des_edge", `edge = '9'`},
	} {
		run := w.in(t, lifecycle.Completed, w.creation(lifecycle.WF2Des))
		w.exec(t, `ALTER TYPE `+c.enum+` ADD VALUE '9'`)
		w.exec(t, `UPDATE wf2des SET `+c.change+` WHERE id = $1`, run.ID)
		w.unchanged(t, c.change, func() {
			_, alone := w.RunOfAnyTenant(t.Context(), run.Ref)
			_, listed := w.List(t.Context(), run.Kind, tenant, store.Filter{}, store.Position{}, 100)
			_, applied := w.Apply(t.Context(), command(lifecycle.Place, run))
			for way, err := range map[string]error{"read alone": alone, "listed": listed, "applied to": applied} {
				if err == nil || !strings.Contains(err.Error(), `"9"`) {
					t.Errorf("%s, %s: %v, want an error that names the code", c.change, way, err)
				}
			}
		})
		w.exec(t, `DELETE FROM wf2des WHERE id = $1`, run.ID)
	}
}

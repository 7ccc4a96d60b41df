package main

import (
	"bytes"
	"encoding/json/jsontext"
	"io"
	"math"
	"strings"
	"unicode"
	"uuid"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/safetext"
	"framerun.dev/pkg/web"
)

// event is what a worker tells.
type event string

const (
	parsed    event = "parsed"
	completed event = "completed"
	failed    event = "failed"
	progress  event = "progress"
)

// body is the webhook's JSON. Members are the seed's column names.
type body struct {
	JobID        *string  `json:"job_id"`     // wf2des.id; exactly one of the two ids is given
	Code2WFID    *string  `json:"code2wf_id"` // code2wf.id
	Attempt      *int64   `json:"attempt"`
	Event        *string  `json:"event"`
	ResultURL    *string  `json:"result_url"` // S3 key
	FlagCount    *int64   `json:"flag_count"`
	Score        *float64 `json:"score"`
	ScoreVersion *string  `json:"score_version"`
	Manifest     *struct {
		ErrorCode    words `json:"error_code"`
		ErrorMessage words `json:"error_message"`
	} `json:"manifest"`
	Progress *struct {
		Percent *float64 `json:"percent"`
		Message *string  `json:"message"`
	} `json:"progress"`
}

// word is a worker's word, read and checked.
type word struct {
	run     lifecycle.Ref
	attempt int
	event   event
	result  lifecycle.Result
	message string   // failed: why, progress: what goes on; always fit for the client
	percent *float64 // progress: 0..100
}

// readWord reads the body of a webhook. A failed event is never refused for its texts: they are mended and the run ends.
// Errors: *web.MalformedError, *lifecycle.InvalidError.
func readWord(raw []byte) (word, error) {
	b, err := web.Decode[body](raw)
	if err != nil {
		var ok bool
		if b, ok = decodeFailure(raw); !ok {
			return word{}, err
		}
	}
	return b.word()
}

// decodeFailure reads a failed event whose texts cannot be read as they stand: broken Unicode, raw control characters, escapes that do
// not exist. Everything else about it is as strict as ever.
func decodeFailure(raw []byte) (body, bool) {
	var mended bytes.Buffer
	tokens := jsontext.NewDecoder(bytes.NewReader(mend(raw)), jsontext.AllowInvalidUTF8(true))
	out := jsontext.NewEncoder(&mended, jsontext.AllowInvalidUTF8(true))
	for {
		token, err := tokens.ReadToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return body{}, false
		}
		if token.Kind() == '"' {
			token = jsontext.String(token.String()) // broken characters have become U+FFFD
		}
		if out.WriteToken(token) != nil {
			return body{}, false
		}
	}
	b, err := web.Decode[body](bytes.TrimSpace(mended.Bytes()))
	return b, err == nil && b.Event != nil && event(*b.Event) == failed
}

// mend makes control characters blanks, and a backslash that begins no escape a backslash.
func mend(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c < ' ':
			out = append(out, ' ')
		case c == '\\' && i+1 < len(raw) && bytes.IndexByte([]byte(`"\/bfnrtu`), raw[i+1]) >= 0:
			out = append(out, c, raw[i+1])
			i++
		case c == '\\':
			out = append(out, `\\`...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// words are a text of a failure. Whatever else stands in its place is read as no text, for no failure is refused for its words.
type words string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *words) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	value, err := from.ReadValue()
	if err != nil || value.Kind() != '"' {
		return err
	}
	text, err := jsontext.AppendUnquote(nil, value)
	*w = words(text)
	return err
}

func (b body) word() (word, error) {
	var f web.Fields
	w := word{
		run:     b.ref(&f),
		attempt: int(f.Number("/attempt", b.Attempt, 1, math.MaxInt32)),
		event:   web.Word(&f, "/event", b.Event, "", parsed, completed, failed, progress),
	}
	switch w.event {
	case completed:
		w.result = b.result(&f, w.run)
	case failed:
		w.message, w.result.Key = b.failure(w.run)
	case progress:
		w.message, w.percent = b.report(&f)
	}
	return w, f.Err()
}

func (b body) ref(f *web.Fields) lifecycle.Ref {
	ref, field, id := lifecycle.Ref{Kind: lifecycle.WF2Des}, "/job_id", b.JobID
	if b.JobID == nil && b.Code2WFID != nil {
		ref.Kind, field, id = lifecycle.Code2WF, "/code2wf_id", b.Code2WFID
	}
	switch {
	case id == nil:
		f.Refuse("/job_id", "is required for a wf2des run; a code2wf run is named by code2wf_id")
		return ref
	case b.JobID != nil && b.Code2WFID != nil:
		f.Refuse("/code2wf_id", "must not stand beside job_id: a word is about one run")
		return ref
	}
	if u, err := uuid.Parse(*id); err != nil || u.String() != *id {
		f.Refuse(field, "must be the run's id as the job gave it: a UUID in lower case")
		return ref
	}
	ref.ID = *id
	return ref
}

// result is what a completed event must bring: a key under the run's own prefix. Numbers are optional.
func (b body) result(f *web.Fields, run lifecycle.Ref) lifecycle.Result {
	r := lifecycle.Result{Key: b.ResultURL, ScoreVersion: b.ScoreVersion}
	if b.ResultURL == nil {
		f.Refuse("/result_url", "is required when a run is completed: the S3 key of the result")
	} else if why := artifacts.CheckKey(run, *b.ResultURL); why != "" {
		f.Refuse("/result_url", why)
	}
	if b.FlagCount != nil {
		r.FlagCount = new(int(f.Number("/flag_count", b.FlagCount, 0, math.MaxInt32)))
	}
	if b.Score != nil {
		score, ok := lifecycle.NewScore(*b.Score)
		if !ok {
			f.Refuse("/score", "must lie between 0 and 1")
		}
		r.Score = &score
	}
	if strings.ContainsFunc(f.Text("/score_version", b.ScoreVersion, false, 32), unicode.IsControl) {
		f.Refuse("/score_version", "must not hold control characters")
	}
	return r
}

// failure is why a run failed, and the artifact that shows it if the worker named a proper one.
func (b body) failure(run lifecycle.Ref) (message string, key *string) {
	if b.ResultURL != nil && artifacts.CheckKey(run, *b.ResultURL) == "" {
		key = b.ResultURL
	}
	if b.Manifest == nil {
		return failureMessage("", ""), key
	}
	return failureMessage(string(b.Manifest.ErrorCode), string(b.Manifest.ErrorMessage)), key
}

// report is how far the worker is.
func (b body) report(f *web.Fields) (message string, percent *float64) {
	if b.Progress == nil || b.Progress.Percent == nil && b.Progress.Message == nil {
		f.Refuse("/progress", "is required: an object with percent (0 to 100), message or both")
		return "", nil
	}
	if p := b.Progress.Percent; p != nil && !(*p >= 0 && *p <= 100) {
		f.Refuse("/progress/percent", "must lie between 0 and 100")
	}
	message, _ = safetext.Clean(orEmpty(b.Progress.Message), events.MaxMessage)
	return message, b.Progress.Percent
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

package fuzz

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// document is a JSON object of an answer. What is missing or of another type is noted as a problem and reads as zero.
type document struct {
	members  map[string]jsontext.Value
	problems *[]string
}

// read takes exactly one JSON object, strictly: no member twice, nothing behind it, valid UTF-8.
func read(body []byte, problems *[]string) document {
	d := document{problems: problems}
	if err := json.Unmarshal(body, &d.members); err != nil || d.members == nil {
		d.say("the body is no JSON object: %v", err)
	}
	return d
}

func (d document) say(format string, args ...any) {
	*d.problems = append(*d.problems, fmt.Sprintf(format, args...))
}

// only checks that the members are exactly these; names that end with a question mark may be missing.
func (d document) only(names ...string) {
	known := map[string]bool{}
	for _, name := range names {
		plain, optional := strings.CutSuffix(name, "?")
		known[plain] = true
		if _, ok := d.members[plain]; !ok && !optional {
			d.say("the member %s is missing", plain)
		}
	}
	for name := range d.members {
		if !known[name] {
			d.say("there is a member %q that nobody knows", name)
		}
	}
}

func (d document) null(name string) bool {
	value, ok := d.members[name]
	return !ok || string(value) == "null"
}

func (d document) text(name string) string {
	var text string
	if value, ok := d.members[name]; ok && string(value) != "null" {
		if err := json.Unmarshal(value, &text); err != nil {
			d.say("%s is not a string: %v", name, err)
		}
	}
	return text
}

// word is a text that must be one of words.
func (d document) word(name string, words ...string) string {
	text := d.text(name)
	if !slices.Contains(words, text) {
		d.say("%s is %q, none of %q", name, text, words)
	}
	return text
}

func (d document) number(name string, low, high float64) float64 {
	var n float64
	if d.null(name) {
		return 0
	}
	if err := json.Unmarshal(d.members[name], &n); err != nil || !(n >= low && n <= high) {
		d.say("%s is %s, not a number between %v and %v", name, d.members[name], low, high)
	}
	return n
}

func (d document) yes(name string) bool {
	var yes bool
	if err := json.Unmarshal(d.members[name], &yes); err != nil {
		d.say("%s is %s, neither true nor false", name, d.members[name])
	}
	return yes
}

func (d document) list(name string) []jsontext.Value {
	var list []jsontext.Value
	if err := json.Unmarshal(d.members[name], &list); err != nil || list == nil {
		d.say("%s is no array", name)
	}
	return list
}

func (d document) texts(name string) []string {
	var list []string
	if err := json.Unmarshal(d.members[name], &list); err != nil || list == nil {
		d.say("%s is no array of strings", name)
	}
	return list
}

var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// time is a time with all six digits, in UTC.
func (d document) time(name string) time.Time {
	text := d.text(name)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !timeForm.MatchString(text) {
		d.say("%s is %q, not a time in UTC with six digits", name, text)
	}
	return t
}

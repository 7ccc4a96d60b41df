package web

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// maxEcho bounds, in bytes, how much of a caller's own text a refusal repeats.
const maxEcho = 100

// malformed tells a caller in plain words what encoding/json/v2 found wrong, and where.
func malformed(err error) *MalformedError {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &MalformedError{Field: pointer(e.JSONPointer), Reason: syntaxReason(e)}
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return &MalformedError{Field: pointer(e.JSONPointer), Reason: meaningReason(e)}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &MalformedError{Reason: "the JSON text ends too early"}
	}
	return &MalformedError{Reason: "the body is not a JSON object that can be read"}
}

// pointer drops what a caller made too long to repeat: it then names what holds the place.
func pointer(p jsontext.Pointer) string {
	for len(p) > maxEcho {
		p = p.Parent()
	}
	return string(p)
}

func syntaxReason(e *jsontext.SyntacticError) string {
	switch {
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		return "this member stands more than once"
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return "the JSON text ends too early"
	}
	return fmt.Sprintf("not valid JSON at byte %d: %s", e.ByteOffset, clip(e.Err.Error()))
}

func meaningReason(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return unknownMember(e.JSONPointer.LastToken(), members(e.GoType))
	case errors.Is(e.Err, strconv.ErrRange):
		return "this number is out of range"
	case e.Err == nil || errors.Is(e.Err, strconv.ErrSyntax):
		return "expected " + typeWord(e.GoType) + ", got " + valueWord(e)
	}
	return clip(e.Err.Error())
}

func unknownMember(name string, allowed []string) string {
	said := "unknown member " + strconv.Quote(clip(name))
	for _, right := range allowed {
		if strings.EqualFold(plain(name), plain(right)) {
			return said + "; did you mean " + strconv.Quote(right) + "? Case matters"
		}
	}
	if len(allowed) == 0 {
		return said + "; no members are allowed here"
	}
	return said + "; allowed are " + strings.Join(allowed, ", ")
}

// plain drops what the spelling conventions of names differ in.
func plain(name string) string { return strings.NewReplacer("_", "", "-", "").Replace(name) }

// members lists the JSON names of a struct's fields.
func members(t reflect.Type) []string {
	var names []string
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func typeWord(t reflect.Type) string {
	switch {
	case t == nil:
		return "another type"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr:
		return "a whole number"
	case t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32:
		return "a number"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "an array"
	}
	return "an object"
}

// valueWord is what stood there instead: for a number its text, since 1.5 where a whole number belongs is a number too.
func valueWord(e *json.SemanticError) string {
	if e.JSONKind == jsontext.KindNumber && len(e.JSONValue) > 0 {
		return clip(string(e.JSONValue))
	}
	return kindWord(e.JSONKind)
}

func kindWord(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return "something else"
}

// clip shortens text that may hold a caller's own words.
func clip(text string) string {
	if len(text) <= maxEcho {
		return text
	}
	return strings.ToValidUTF8(text[:maxEcho], "") + "…"
}

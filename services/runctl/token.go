package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
)

type tokenCommand struct {
	Show    tokenShowCommand    `cmd:"" help:"Print a token of the local suite, to sign in with."`
	Explain tokenExplainCommand `cmd:"" help:"Say what is in a token and whether it would be accepted, without printing it."`
}

type tokenShowCommand struct {
	Name string `arg:"" optional:"" enum:"plugin,api,otherOrganization" default:"plugin" help:"plugin, api or otherOrganization."`
}

func (tokenShowCommand) Help() string {
	return `The tokens of a local suite stand in its stack.json and are good for a day.

Examples:

    curl -H "Authorization: Bearer $(runctl token show)" http://127.0.0.1:18000/v1/projects/1/wf2des`
}

func (c tokenShowCommand) Run(s *hand) error {
	local, err := s.stack()
	if err != nil {
		return err
	}
	if local == nil || local.Tokens[c.Name] == "" {
		return usage("only a local suite gives tokens away: start one with `make up`, or name its file with --stack")
	}
	return s.show(map[string]string{"name": c.Name, "token": local.Tokens[c.Name]}, func(w io.Writer) { fmt.Fprintln(w, local.Tokens[c.Name]) })
}

type tokenExplainCommand struct{}

func (tokenExplainCommand) Help() string {
	return `The token is read from standard input, so that it stands neither in the list of processes nor in the shell's history. Its signature is checked when the user pool is known (--issuer, or a local suite). The exit code is 0 when it would be accepted and 4 when it would not. Which client ids may sign in is the services' own setting and is not looked at.

Examples:

    runctl token show | runctl token explain
    pbpaste | runctl token explain --issuer https://cognito-idp.ap-northeast-1.amazonaws.com/ap-northeast-1_EXAMPLE`
}

// explained is what is in a token.
type explained struct {
	Accepted bool                      `json:"accepted"`
	Checked  bool                      `json:"signatureChecked"`
	Says     string                    `json:"says"`
	Claims   map[string]jsontext.Value `json:"claims"`
}

func (tokenExplainCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	raw, err := s.read("-")
	if err != nil {
		return err
	}
	token := strings.TrimPrefix(string(bytes.TrimSpace(raw)), "Bearer ")
	e := explained{}
	if e.Claims, err = claims(token); err != nil {
		return err
	}
	issuer, err := s.pick(s.Issuer, "the user pool", "--issuer (COGNITO_ISSUER)", func(l *stack) string { return l.Issuer })
	if err == nil {
		e.Checked = true
		err = judge(ctx, issuer, token, e.Claims)
	} else if is[*usageError](err) {
		err = undecided(e.Claims, time.Now())
	}
	if err = e.settle(err, issuer); err != nil {
		return err
	}
	if err := s.show(e, e.tell); err != nil {
		return err
	}
	if strings.HasPrefix(e.Says, "refused") {
		return refused("the services would answer 401 to this token")
	}
	return nil
}

// settle writes the judgement down. What is no judgement is an error.
func (e *explained) settle(judged error, issuer string) error {
	refusal, isRefusal := errors.AsType[*auth.UnauthenticatedError](judged)
	switch {
	case isRefusal:
		e.Says = "refused: " + refusal.Reason
	case judged != nil:
		return judged
	case e.Checked:
		e.Accepted, e.Says = true, "good: signed by a key of "+issuer
	default:
		e.Says = "nothing is wrong with what it says; the signature was not checked, for no user pool is known (--issuer)"
	}
	return nil
}

// claims reads what the token says, which may be untrue.
func claims(token string) (map[string]jsontext.Value, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, usage("what stands on standard input is no token: three parts joined by dots")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, usage("the middle part of the token is not base64url")
	}
	var c map[string]jsontext.Value
	if err := json.Unmarshal(text, &c); err != nil || c == nil {
		return nil, usage("the middle part of the token is not a JSON object")
	}
	return c, nil
}

// judge asks the suite's own judgement, with whatever client the token names.
func judge(ctx context.Context, issuer, token string, c map[string]jsontext.Value) error {
	tokens, err := auth.NewTokens(ctx, auth.TokensConfig{Issuer: issuer, DefaultOrganizationID: 1,
		Clients: map[string]lifecycle.Surface{cmp.Or(textOf(c["client_id"]), "none"): lifecycle.Plugin}})
	if err != nil {
		return usage("--issuer: %v", err)
	}
	_, err = tokens.Person((&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}).WithContext(ctx))
	return err
}

// undecided finds what is wrong with a token whose signature cannot be checked.
func undecided(c map[string]jsontext.Value, now time.Time) error {
	until, ok := timeOf(c["exp"])
	switch {
	case !ok:
		return &auth.UnauthenticatedError{Reason: "the token has no exp"}
	case now.After(until):
		return &auth.UnauthenticatedError{Reason: "the token has expired"}
	case textOf(c["token_use"]) != "access":
		return &auth.UnauthenticatedError{Reason: "the token is not an access token"}
	}
	return nil
}

func textOf(v jsontext.Value) string {
	var text string
	_ = json.Unmarshal(v, &text) // "" for what is no string
	return text
}

func timeOf(v jsontext.Value) (time.Time, bool) {
	var seconds int64
	err := json.Unmarshal(v, &seconds)
	return time.Unix(seconds, 0), err == nil
}

func (e explained) tell(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(e.Claims)) {
		value := plain(string(e.Claims[name]))
		if at, ok := timeOf(e.Claims[name]); ok && slices.Contains([]string{"exp", "iat", "nbf", "auth_time"}, name) {
			value = stamp(at) + ", " + ago(time.Since(at))
		}
		fmt.Fprintf(t, "%s\t%s\n", plain(name), value)
	}
	t.Flush()
	fmt.Fprintln(w, "\n"+e.Says)
}

func ago(d time.Duration) string {
	if d < 0 {
		return "in " + long(-d)
	}
	return long(d) + " ago"
}

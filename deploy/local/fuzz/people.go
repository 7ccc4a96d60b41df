package fuzz

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"framerun.dev/deploy/local/stack"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/auth/issuer"
)

// tenant is one project, and the tokens that may ask for it.
type tenant struct {
	organization, project int64
	tokens                []string
	pageImport            string
}

// people are who one worker may be: a subject of its own, so that every row can be put down to the worker that caused it.
type people struct {
	subject string
	tenants []tenant
	bad     []badAuth // what must not get in
	worker  *auth.Webhooks
	forger  *auth.Webhooks // with a secret that nobody knows
}

// badAuth are Authorization headers that must be turned away with the status.
type badAuth struct {
	headers []string
	status  int
}

func newPeople(ctx context.Context, s *stack.Stack, db *sql.DB, number int) (*people, error) {
	p := &people{subject: fmt.Sprintf("fuzz-%d", number)}
	_, err := db.ExecContext(ctx, `INSERT INTO "user" (cognito_sub) VALUES ($1) ON CONFLICT DO NOTHING`, p.subject)
	if err != nil {
		return nil, fmt.Errorf("fuzz: making the user %s known: %w", p.subject, err)
	}
	m := mint{stack: s, subject: p.subject}
	own, foreign := platform.OrganizationID, platform.OtherOrganizationID
	both := []string{m.token(stack.PluginClient, own, 24*time.Hour), m.token(stack.APIClient, own, 24*time.Hour)}
	p.tenants = []tenant{
		{own, platform.ProjectID, both, platform.PageImportID},
		{own, platform.OtherProjectID, both, platform.OtherProjectPageImportID},
		{foreign, platform.OtherOrganizationProjectID, []string{m.token(stack.PluginClient, foreign, 24*time.Hour)},
			platform.OtherOrganizationPageImportID},
	}
	p.bad = m.bad(both[0])
	if p.worker, err = auth.NewWebhooks([]string{s.Address().Webhook.Secret}, time.Now); err == nil {
		p.forger, err = auth.NewWebhooks([]string{"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))}, time.Now)
	}
	if m.err != nil {
		return nil, m.err
	}
	return p, err
}

// names puts words in the place of tokens, which are worth nothing once the suite has stopped.
func (p *people) names() *strings.Replacer {
	return strings.NewReplacer(p.tenants[0].tokens[0], "{plugin}", p.tenants[0].tokens[1], "{api}", p.tenants[2].tokens[0], "{foreign}")
}

// mint makes tokens and remembers the first error.
type mint struct {
	stack   *stack.Stack
	subject string
	err     error
}

func (m *mint) token(client string, organization int64, life time.Duration) string {
	return m.claims(issuer.Claims{Subject: m.subject, ClientID: client, OrganizationID: organization, Lifetime: life})
}

func (m *mint) claims(c issuer.Claims) string {
	token, err := m.stack.Mint(c)
	if err != nil && m.err == nil {
		m.err = err
	}
	return token
}

// bad is the corpus of tokens and headers that let nobody in. good is a token that would.
func (m *mint) bad(good string) []badAuth {
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	stranger := m.claims(issuer.Claims{Subject: "nobody-" + m.subject, ClientID: stack.PluginClient, OrganizationID: 1})
	var bad []badAuth
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Basic dXNlcjpwdw==", good, "Bearer" + good, "Bearer\t" + good, "Token " + good,
		"Bearer " + good + " " + good, "Bearer " + good + ",", "Bearer " + good + ".", "Bearer " + good[:len(good)-2],
		"Bearer " + none + "." + parts[1] + ".", "Bearer " + none + "." + parts[1] + "." + parts[2],
		"Bearer " + parts[0] + "." + parts[2] + "." + parts[1], "Bearer .", "Bearer ..", "Bearer " + strings.Repeat(".", 3000),
		"Bearer " + strings.Repeat("A", 9000), "Bearer \x80\xff", "Bearer é.é.é", "Bearer null", "Bearer e30.e30.e30",
		"Bearer " + m.token(stack.PluginClient, 1, -time.Minute), "Bearer " + m.token("another-client", 1, 24*time.Hour),
		"Bearer " + m.token("", 1, 24*time.Hour), "Bearer " + m.token(stack.PluginClient, -1, 24*time.Hour),
		"Bearer " + m.claims(issuer.Claims{Subject: m.subject, ClientID: stack.PluginClient, TokenUse: "id"}),
		"Bearer " + m.claims(issuer.Claims{Subject: "", ClientID: stack.PluginClient}),
		"Bearer " + m.claims(issuer.Claims{Subject: "a\nb\x00c", ClientID: stack.PluginClient}),
		"Bearer " + m.claims(issuer.Claims{Subject: strings.Repeat("s", 256), ClientID: stack.PluginClient}),
	} {
		bad = append(bad, badAuth{[]string{header}, 401})
	}
	return append(bad, badAuth{nil, 401}, badAuth{[]string{"Bearer " + good, "Bearer " + good}, 401}, badAuth{[]string{"Bearer " + stranger}, 403})
}

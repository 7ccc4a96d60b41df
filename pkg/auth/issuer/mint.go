package issuer

import (
	"cmp"
	"encoding/json/v2"
	"fmt"
	"strconv"
	"time"
	"uuid"
)

// OrganizationClaim is the claim that a token's organization is in, spelled as Cognito spells a custom attribute.
const OrganizationClaim = "custom:organization_id"

// Claims says what a token shall say. It is not checked: a token that has to be refused can be minted as well.
type Claims struct {
	Subject        string
	ClientID       string
	TokenUse       string        // empty: "access"; "id" makes an id token, whose client is in aud, as Cognito does it
	OrganizationID int64         // 0: the token names no organization
	Lifetime       time.Duration // from now; 0: an hour, as Cognito's default; negative: expired since
}

// Mint makes a signed token in the compact form.
func (i *Issuer) Mint(c Claims) (string, error) {
	i.mu.Lock()
	key := i.keys[0]
	i.mu.Unlock()
	header, err := json.Marshal(map[string]string{"alg": "RS256", "kid": key.id})
	if err != nil {
		return "", fmt.Errorf("issuer: writing the header: %w", err)
	}
	claims, err := json.Marshal(i.members(c), json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("issuer: writing the claims: %w", err)
	}
	return key.sign(header, claims)
}

func (i *Issuer) members(c Claims) map[string]any {
	now := i.now()
	expiry := now.Add(cmp.Or(c.Lifetime, time.Hour))
	issued := now
	if expiry.Before(issued) { // no token expires before it was made
		issued = expiry.Add(-time.Hour)
	}
	members := map[string]any{
		"iss": i.url, "sub": c.Subject, "token_use": cmp.Or(c.TokenUse, "access"),
		"iat": issued.Unix(), "auth_time": issued.Unix(), "exp": expiry.Unix(),
		"jti": uuid.New().String(), "origin_jti": uuid.New().String(),
	}
	if c.TokenUse == "id" {
		members["aud"], members["cognito:username"] = c.ClientID, c.Subject
	} else {
		members["client_id"], members["username"] = c.ClientID, c.Subject
		members["scope"] = "aws.cognito.signin.user.admin"
	}
	if c.OrganizationID != 0 {
		members[OrganizationClaim] = strconv.FormatInt(c.OrganizationID, 10)
	}
	return members
}

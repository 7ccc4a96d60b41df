package auth

import (
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
)

func TestGoodTokens(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	now := p.now().Unix()
	person := Person{Subject: subject, ClientID: "plugin-client", Surface: lifecycle.Plugin, OrganizationID: 1}
	ofOrganization := func(id int64) Person {
		other := person
		other.OrganizationID = id
		return other
	}
	api := person
	api.ClientID, api.Surface = "api-client", lifecycle.API
	spaced := person
	spaced.Subject = "~ user 1 ~"

	for name, c := range map[string]struct {
		authorization string
		want          Person
	}{
		"as Cognito makes them":        {"Bearer " + p.token(nil), person},
		"the API's client":             {"Bearer " + p.token(members{"client_id": "api-client"}), api},
		"scheme in lower case":         {"bearer " + p.token(nil), person},
		"scheme in odd case":           {"bEARER " + p.token(nil), person},
		"two spaces":                   {"Bearer  " + p.token(nil), person},
		"expired 29 seconds ago":       {"Bearer " + p.token(members{"exp": now - 29}), person},
		"exp with a fraction":          {"Bearer " + p.token(members{"exp": float64(now) - 29.5}), person},
		"nbf 29 seconds ahead":         {"Bearer " + p.token(members{"nbf": now + 29}), person},
		"iat 29 seconds ahead":         {"Bearer " + p.token(members{"iat": now + 29}), person},
		"no iat":                       {"Bearer " + p.token(members{"iat": nil}), person},
		"typ, as other pools write it": {"Bearer " + p.headed(members{"typ": "at+jwt"}), person},
		"printable sub":                {"Bearer " + p.token(members{"sub": "~ user 1 ~"}), spaced},
		"organization as a number":     {"Bearer " + p.token(members{"custom:organization_id": 42}), ofOrganization(42)},
		"organization as a string":     {"Bearer " + p.token(members{"custom:organization_id": "42"}), ofOrganization(42)},
		"largest organization": {"Bearer " + p.token(members{"custom:organization_id": "9223372036854775807"}),
			ofOrganization(9223372036854775807)},
		"claim of another spelling": {"Bearer " + p.token(members{"Custom:Organization_ID": 42}), person},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from memory
				got, err := tokens.Person(request(c.authorization))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestBadTokens(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	now := p.now().Unix()
	good := p.token(nil)
	parts := strings.Split(good, ".")
	raw := func(header, claims string) string { return sign256(firstKey(), header, claims) }
	double := func(object, member string) string { return strings.Replace(object, "{", "{"+member+",", 1) }
	const alg, base64url, three = "alg is not RS256", "is not base64url", "three parts"

	for name, c := range map[string]struct {
		request *http.Request
		reason  string
	}{
		// The header field.
		"none at all":            {request(), "no Authorization header"},
		"two of them":            {request("Bearer "+good, "Bearer "+good), "more than one Authorization header"},
		"two, one of them bad":   {request("Basic eDp5", "Bearer "+good), "more than one Authorization header"},
		"empty":                  {request(""), "not Bearer"},
		"only the scheme":        {request("Bearer"), "no token"},
		"scheme and spaces":      {request("Bearer   "), "no token"},
		"no scheme":              {request(good), "not Bearer"},
		"Basic":                  {request("Basic eDp5"), "not Bearer"},
		"scheme glued":           {request("Bearer:" + good), "not Bearer"},
		"scheme after a space":   {request(" Bearer " + good), "not Bearer"},
		"two tokens, one line":   {request("Bearer " + good + ", Bearer " + good), "more than one token"},
		"line break in it":       {bearing(good[:40] + "\r\n" + good[40:]), "more than one token"},
		"in the query":           {httptest.NewRequest(http.MethodGet, "/?access_token="+good, nil), "no Authorization header"},
		"a megabyte of dots":     {bearing(strings.Repeat(".", 1<<20)), "longer than 8 KiB"},
		"8 KiB and a byte":       {bearing(strings.Repeat("a", 8<<10+1)), "longer than 8 KiB"},
		"8 KiB of dots":          {bearing(strings.Repeat(".", 8<<10)), three},
		"two dots":               {bearing(".."), "header is not a JSON object"},
		"two parts":              {bearing(parts[0] + "." + parts[1]), three},
		"four parts":             {bearing(good + "." + parts[2]), three},
		"encrypted: five parts":  {bearing("a.b.c.d.e"), three},
		"padding":                {bearing(parts[0] + "." + parts[1] + "." + parts[2] + "=="), base64url},
		"the other base64":       {bearing(parts[0] + "." + parts[1] + ".+/+/"), base64url},
		"bits that nobody sets":  {bearing(parts[0] + "." + parts[1] + "." + parts[2][:341] + "B"), base64url},
		"header is no JSON":      {bearing(raw(`{"alg":"RS256"`, p.claims(nil))), "header is not a JSON object"},
		"header is null":         {bearing(raw(`null`, p.claims(nil))), "header is not a JSON object"},
		"header and more":        {bearing(raw(p.header(nil)+"{}", p.claims(nil))), "header is not a JSON object"},
		"claims are null":        {bearing(raw(p.header(nil), `null`)), "payload is not a JSON object"},
		"claims are an array":    {bearing(raw(p.header(nil), `["sub"]`)), "payload is not a JSON object"},
		"broken UTF-8 in claims": {bearing(raw(p.header(nil), "{\"sub\":\"\xff\"}")), "payload is not a JSON object"},

		// The algorithm.
		"alg none":                   {bearing(encode([]byte(`{"alg":"none","kid":"first"}`)) + "." + parts[1] + "."), alg},
		"alg none, signed":           {bearing(p.headed(members{"alg": "none"})), alg},
		"alg None":                   {bearing(encode([]byte(`{"alg":"None","kid":"first"}`)) + "." + parts[1] + "."), alg},
		"alg nOnE":                   {bearing(encode([]byte(`{"alg":"nOnE","kid":"first"}`)) + "." + parts[1] + "."), alg},
		"alg NONE":                   {bearing(encode([]byte(`{"alg":"NONE","kid":"first"}`)) + "." + parts[1] + "."), alg},
		"alg with a space":           {bearing(p.headed(members{"alg": "RS256 "})), alg},
		"alg in lower case":          {bearing(p.headed(members{"alg": "rs256"})), alg},
		"alg empty":                  {bearing(p.headed(members{"alg": ""})), alg},
		"alg missing":                {bearing(p.headed(members{"alg": nil})), alg},
		"alg a number":               {bearing(p.headed(members{"alg": 256})), alg},
		"alg a list":                 {bearing(p.headed(members{"alg": []string{"RS256"}})), alg},
		"HS256 with the public key":  {bearing(p.confused()), alg},
		"RS512, rightly signed":      {bearing(p.signed512()), alg},
		"PS256":                      {bearing(p.headed(members{"alg": "PS256"})), alg},
		"RS256 said, RS512 signed":   {bearing(p.headerless512()), "signature does not fit"},
		"signed by another key":      {bearing(sign256(secondKey(), p.header(nil), p.claims(nil))), "signature does not fit"},
		"no signature":               {bearing(parts[0] + "." + parts[1] + "."), "signature does not fit"},
		"half a signature":           {bearing(parts[0] + "." + parts[1] + "." + encode([]byte("half"))), "signature does not fit"},
		"another token's signature":  {bearing(parts[0] + "." + encode([]byte(p.claims(members{"sub": "x"}))) + "." + parts[2]), "signature does not fit"},
		"alg twice, the first right": {bearing(raw(`{"alg":"RS256","alg":"none","kid":"first"}`, p.claims(nil))), "header names a member twice"},

		// The key.
		"kid missing":      {bearing(p.headed(members{"kid": nil})), "no kid"},
		"kid empty":        {bearing(p.headed(members{"kid": ""})), "kid is empty"},
		"kid a number":     {bearing(p.headed(members{"kid": 1})), "kid is not a string"},
		"kid unknown":      {bearing(p.headed(members{"kid": "third"})), "not a key of the user pool"},
		"kid in odd case":  {bearing(p.headed(members{"kid": "FIRST"})), "not a key of the user pool"},
		"kid like a path":  {bearing(p.headed(members{"kid": "../../../../dev/null"})), "not a key of the user pool"},
		"kid like SQL":     {bearing(p.headed(members{"kid": "' OR 1=1 --"})), "not a key of the user pool"},
		"kid of 256 bytes": {bearing(p.headed(members{"kid": strings.Repeat("k", 256)})), "not a key of the user pool"},
		"kid of 257 bytes": {bearing(p.headed(members{"kid": strings.Repeat("k", 257)})), "longer than 256 bytes"},
		"kid twice":        {bearing(raw(double(p.header(nil), `"kid":"first"`), p.claims(nil))), "header names a member twice"},
		"jku":              {bearing(p.headed(members{"jku": "https://evil.example/jwks.json"})), "has a jku"},
		"jku null":         {bearing(raw(double(p.header(nil), `"jku":null`), p.claims(nil))), "has a jku"},
		"jwk":              {bearing(sign256(secondKey(), p.header(members{"jwk": jwk("first", secondKey())}), p.claims(nil))), "has a jwk"},
		"x5u":              {bearing(p.headed(members{"x5u": "https://evil.example/cert.pem"})), "has a x5u"},
		"x5c":              {bearing(p.headed(members{"x5c": []string{"MIIB"}})), "has a x5c"},
		"crit":             {bearing(p.headed(members{"crit": []string{"b64"}, "b64": false})), "has a crit"},

		// The times.
		"exp missing":           {bearing(p.token(members{"exp": nil})), "no exp"},
		"exp null":              {bearing(raw(p.header(nil), double(p.claims(members{"exp": nil}), `"exp":null`))), "exp is not a number"},
		"exp a string":          {bearing(p.token(members{"exp": "99999999999"})), "exp is not a number"},
		"exp negative":          {bearing(p.token(members{"exp": -1})), "exp is not a time"},
		"exp beyond all years":  {bearing(p.token(members{"exp": 1e18})), "exp is not a time"},
		"exp beyond a float":    {bearing(raw(p.header(nil), double(p.claims(members{"exp": nil}), `"exp":1e999`))), "exp is not a time"},
		"expired 30 s ago":      {bearing(p.token(members{"exp": now - 30})), "has expired"},
		"expired 31 s ago":      {bearing(p.token(members{"exp": now - 31})), "has expired"},
		"expired long ago":      {bearing(p.token(members{"exp": 0})), "has expired"},
		"nbf 31 s ahead":        {bearing(p.token(members{"nbf": now + 31})), "nbf is in the future"},
		"nbf a string":          {bearing(p.token(members{"nbf": "0"})), "nbf is not a number"},
		"iat 31 s ahead":        {bearing(p.token(members{"iat": now + 31})), "iat is in the future"},
		"iat an object":         {bearing(p.token(members{"iat": members{}})), "iat is not a number"},
		"exp twice, later last": {bearing(raw(p.header(nil), double(p.claims(nil), `"exp":1`))), "payload names a member twice"},

		// Who made it, for what, for whom.
		"iss missing":              {bearing(p.token(members{"iss": nil})), "no iss"},
		"iss with a slash":         {bearing(p.token(members{"iss": issuer + "/"})), "another issuer"},
		"iss of another pool":      {bearing(p.token(members{"iss": issuer + "2"})), "another issuer"},
		"iss in capitals":          {bearing(p.token(members{"iss": strings.ToUpper(issuer)})), "another issuer"},
		"iss a list":               {bearing(p.token(members{"iss": []string{issuer}})), "iss is not a string"},
		"an id token":              {bearing(p.token(members{"token_use": "id"})), "not an access token"},
		"a refresh token":          {bearing(p.token(members{"token_use": "refresh"})), "not an access token"},
		"token_use missing":        {bearing(p.token(members{"token_use": nil})), "no token_use"},
		"token_use in capitals":    {bearing(p.token(members{"token_use": "Access"})), "not an access token"},
		"Token_Use instead":        {bearing(p.token(members{"token_use": nil, "Token_Use": "access"})), "no token_use"},
		"client_id of another app": {bearing(p.token(members{"client_id": "elsewhere"})), "client_id is not allowed"},
		"client_id missing":        {bearing(p.token(members{"client_id": nil, "aud": "plugin-client"})), "no client_id"},
		"client_id a list":         {bearing(p.token(members{"client_id": []string{"plugin-client"}})), "client_id is not a string"},
		"client_id with a space":   {bearing(p.token(members{"client_id": "plugin-client "})), "client_id is not allowed"},
		"sub missing":              {bearing(p.token(members{"sub": nil})), "no sub"},
		"sub empty":                {bearing(p.token(members{"sub": ""})), "sub is empty"},
		"sub null":                 {bearing(raw(p.header(nil), double(p.claims(members{"sub": nil}), `"sub":null`))), "sub is not a string"},
		"sub a number":             {bearing(p.token(members{"sub": 7})), "sub is not a string"},
		"sub of 256":               {bearing(p.token(members{"sub": strings.Repeat("s", 256)})), "sub is longer than 255"},
		"sub of 10 kB":             {bearing(p.token(members{"sub": strings.Repeat("s", 10_000)})), "longer than 8 KiB"},
		"sub with a NUL":           {bearing(p.token(members{"sub": "a\x00b"})), "sub is not printable"},
		"sub with a line break":    {bearing(p.token(members{"sub": "a\nb"})), "sub is not printable"},
		"sub with DEL":             {bearing(p.token(members{"sub": "a\x7fb"})), "sub is not printable"},
		"sub in another script":    {bearing(p.token(members{"sub": "デザイナー"})), "sub is not printable"},
		"sub twice":                {bearing(raw(p.header(nil), double(p.claims(nil), `"sub":"root"`))), "payload names a member twice"},
		"sub twice, one escaped":   {bearing(raw(p.header(nil), double(p.claims(nil), `"s\u0075b":"root"`))), "payload names a member twice"},
		"twice, deep inside":       {bearing(raw(p.header(nil), double(p.claims(nil), `"x":{"a":1,"a":2}`))), "payload names a member twice"},

		// The organization.
		"organization 0":         {bearing(p.token(members{"custom:organization_id": 0})), "organization is not"},
		"organization negative":  {bearing(p.token(members{"custom:organization_id": -1})), "organization is not"},
		"organization 1.0":       {bearing(raw(p.header(nil), double(p.claims(nil), `"custom:organization_id":1.0`))), "organization is not"},
		"organization 1e3":       {bearing(raw(p.header(nil), double(p.claims(nil), `"custom:organization_id":1e3`))), "organization is not"},
		"organization null":      {bearing(raw(p.header(nil), double(p.claims(nil), `"custom:organization_id":null`))), "organization is not"},
		"organization true":      {bearing(p.token(members{"custom:organization_id": true})), "organization is not"},
		"organization a list":    {bearing(p.token(members{"custom:organization_id": []int{1}})), "organization is not"},
		"organization empty":     {bearing(p.token(members{"custom:organization_id": ""})), "is empty"},
		"organization +1":        {bearing(p.token(members{"custom:organization_id": "+1"})), "organization is not"},
		"organization 01":        {bearing(p.token(members{"custom:organization_id": "01"})), "organization is not"},
		"organization a word":    {bearing(p.token(members{"custom:organization_id": "acme"})), "organization is not"},
		"organization too large": {bearing(p.token(members{"custom:organization_id": "9223372036854775808"})), "organization is not"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // a refusal must not become a memory
				_, err := tokens.Person(c.request)
				reason := mustRefuse(t, err)
				if !strings.Contains(reason, c.reason) {
					t.Errorf("reason %q, want %q in it", reason, c.reason)
				}
				if strings.Contains(reason, "evil") || strings.Contains(reason, "first") || strings.Contains(reason, parts[1]) {
					t.Errorf("reason %q repeats the token", reason)
				}
			}
		})
	}
}

// confused is the classic: the verifier's public key used as an HMAC secret.
func (p *pool) confused() string {
	der, err := x509.MarshalPKIXPublicKey(&firstKey().PublicKey)
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	signed := encode([]byte(p.header(members{"alg": "HS256"}))) + "." + encode([]byte(p.claims(nil)))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

func (p *pool) signed512() string     { return sign512(p.header(members{"alg": "RS512"}), p.claims(nil)) }
func (p *pool) headerless512() string { return sign512(p.header(nil), p.claims(nil)) }

func sign512(header, claims string) string {
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	sum := sha512.Sum512([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, firstKey(), crypto.SHA512, sum[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + encode(signature)
}

// Every character of a token matters: nothing that differs from it in one is accepted, remembered or not.
func TestEveryCharacterCounts(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	good := []byte(p.token(nil))
	if _, err := tokens.Person(bearing(string(good))); err != nil {
		t.Fatal(err)
	}
	for i, c := range good {
		for _, other := range []byte("AB.=-") {
			if other == c {
				continue
			}
			mutant := append([]byte(nil), good...)
			mutant[i] = other
			_, err := tokens.Person(bearing(string(mutant)))
			mustRefuse(t, err)
		}
	}
}

func TestRememberedTokenExpiresToTheSecond(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	r := bearing(p.token(members{"exp": p.now().Unix() + 10}))
	ask := func() error { _, err := tokens.Person(r); return err }
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	p.pass(39 * time.Second)
	if err := ask(); err != nil {
		t.Fatalf("29 s past exp: %v", err)
	}
	p.pass(time.Second)
	if reason := mustRefuse(t, ask()); reason != "the token has expired" {
		t.Errorf("30 s past exp: %q", reason)
	}
}

func TestOrganizationClaimIsOptional(t *testing.T) {
	p := newPool()
	config := p.config()
	config.OrganizationClaim, config.DefaultOrganizationID = "", 7
	tokens, err := NewTokens(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tokens.Person(bearing(p.token(members{"custom:organization_id": 42, "": 43})))
	if err != nil || got.OrganizationID != 7 {
		t.Errorf("got organization %d, %v, want the default 7", got.OrganizationID, err)
	}
}

func TestTokensConfigNamesAllProblems(t *testing.T) {
	_, err := NewTokens(t.Context(), TokensConfig{Clients: map[string]lifecycle.Surface{"x": "browser"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no issuer", "is not a URL", `client id "x" has no surface`, "organization id is not positive"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if _, err := NewTokens(t.Context(), TokensConfig{Issuer: issuer, DefaultOrganizationID: 1}); err == nil ||
		!strings.Contains(err.Error(), "nobody could call") {
		t.Errorf("no clients: %v", err)
	}
}

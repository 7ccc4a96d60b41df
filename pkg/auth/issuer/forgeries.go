package issuer

import (
	"strings"
)

// fields are headers that do not hold one token, each with a good token near.
func (f *forger) fields() []Forgery {
	header := func(name, reason string, values ...string) Forgery {
		return Forgery{Name: name, Authorization: values, Reason: reason}
	}
	query := Forgery{Name: "in the query", Query: "access_token=" + f.good, Reason: "no Authorization header"}
	return []Forgery{
		header("none at all", "no Authorization header"),
		query,
		header("two of them", "more than one Authorization header", "Bearer "+f.good, "Bearer "+f.good),
		header("two, one of them bad", "more than one Authorization header", "Basic eDp5", "Bearer "+f.good),
		header("empty", "not Bearer", ""),
		header("only the scheme", "no token", "Bearer"),
		header("scheme and spaces", "no token", "Bearer   "),
		header("no scheme", "not Bearer", f.good),
		header("Basic", "not Bearer", "Basic eDp5"),
		header("DPoP", "not Bearer", "DPoP "+f.good),
		header("scheme glued", "not Bearer", "Bearer:"+f.good),
		header("scheme after a space", "not Bearer", " Bearer "+f.good),
		header("scheme after a tab", "not Bearer", "Bearer\t"+f.good),
		header("two tokens, one line", "more than one token", "Bearer "+f.good+", Bearer "+f.good),
		header("two tokens, no comma", "more than one token", "Bearer "+f.good+" "+f.good),
		header("line break in it", "more than one token", "Bearer "+f.good[:40]+"\r\n"+f.good[40:]),
		header("in quotes", "is not base64url", `Bearer "`+f.good+`"`),
		header("scheme in lower case", "not Bearer", "bearer "+f.good),
		header("scheme in capitals", "not Bearer", "BEARER "+f.good),
		header("a worker's secret", "three parts", "Bearer whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
	}
}

// shapes are tokens that are none, by how they are written down.
func (f *forger) shapes() []Forgery {
	parts := strings.Split(f.good, ".")
	const base64url, three, object = "is not base64url", "three parts", "is not a JSON object"
	return []Forgery{
		bearer("a megabyte of dots", strings.Repeat(".", 1<<20), "longer than 8 KiB"),
		bearer("8 KiB and a byte", strings.Repeat("a", 8<<10+1), "longer than 8 KiB"),
		bearer("8 KiB of dots", strings.Repeat(".", 8<<10), three),
		bearer("two dots", "..", "header "+object),
		bearer("two parts", parts[0]+"."+parts[1], three),
		bearer("four parts", f.good+"."+parts[2], three),
		bearer("encrypted: five parts", "a.b.c.d.e", three),
		bearer("padding", f.good+"==", base64url),
		bearer("the other base64", parts[0]+"."+parts[1]+".+/+/", base64url),
		bearer("bits that nobody sets", parts[0]+"."+parts[1]+"."+parts[2][:341]+"B", base64url),
		bearer("percent escapes", strings.Replace(f.good, ".", "%2E", 1), three),
		bearer("header is no JSON", f.raw(`{"alg":"RS256"`, f.claims(nil)), "header "+object),
		bearer("header is null", f.raw(`null`, f.claims(nil)), "header "+object),
		bearer("header and more", f.raw(f.header(nil)+"{}", f.claims(nil)), "header "+object),
		bearer("claims are null", f.raw(f.header(nil), `null`), "payload "+object),
		bearer("claims are an array", f.raw(f.header(nil), `["sub"]`), "payload "+object),
		bearer("claims are a token", f.raw(f.header(nil), f.good), "payload "+object),
		bearer("broken UTF-8 in claims", f.raw(f.header(nil), "{\"sub\":\"\xff\"}"), "payload "+object),
		bearer("byte order mark in claims", f.raw(f.header(nil), "\ufeff"+f.claims(nil)), "payload "+object),
		bearer("a thousand levels deep", f.raw(f.header(nil), `{"a":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`), "no exp"),
	}
}

// algorithms are tokens whose signature is not RS256 by the pool's key over what they say.
func (f *forger) algorithms() []Forgery {
	parts := strings.Split(f.good, ".")
	const alg, unfit = "alg is not RS256", "signature does not fit"
	named := func(name string, value any) Forgery { return bearer(name, f.headed(members{"alg": value}), alg) }
	all := []Forgery{
		named("alg none, signed", "none"), named("alg with a space", "RS256 "), named("alg in lower case", "rs256"), named("alg empty", ""),
		named("alg missing", nil), named("alg a number", 256), named("alg a list", []string{"RS256"}), named("PS256, RS256 signed", "PS256"),
		named("ES256", "ES256"), named("EdDSA", "EdDSA"), named("RS1", "RS1"),
		bearer("HS256 with the public key", f.confused("HS256", f.publicPEM()), alg),
		bearer("HS256 with the modulus", f.confused("HS256", f.key.private.N.Bytes()), alg),
		bearer("HS256 with nothing", f.confused("HS256", nil), alg),
		bearer("RS256 said, HS256 signed", f.confused("RS256", f.publicPEM()), unfit),
		bearer("RS512, rightly signed", f.hashed("RS512"), alg),
		bearer("RS256 said, RS512 signed", f.hashed("RS256"), unfit),
		bearer("PS256, rightly signed", f.padded("PS256"), alg),
		bearer("RS256 said, PS256 signed", f.padded("RS256"), unfit),
		bearer("signed by another key", f.by(f.stranger, f.header(nil), f.claims(nil)), unfit),
		bearer("no signature", f.unsigned(f.header(nil)), unfit),
		bearer("half a signature", parts[0]+"."+parts[1]+"."+encode([]byte("half")), unfit),
		bearer("another token's signature", parts[0]+"."+encode([]byte(f.claims(members{"sub": "x"})))+"."+parts[2], unfit),
		bearer("alg twice, the first right", f.raw(f.twice(f.header(members{"alg": "none"}), `"alg":"RS256"`), f.claims(nil)), "header names a member twice"),
	}
	for _, none := range []string{"none", "None", "nOnE", "NONE", "none "} {
		all = append(all, bearer("alg "+none+" and no signature", f.unsigned(f.header(members{"alg": none})), alg))
	}
	return all
}

// keys are tokens that name another key than the pool's, or would bring their own.
func (f *forger) keys() []Forgery {
	const unknown = "not a key of the user pool"
	kid := func(name string, value any, reason string) Forgery {
		return bearer(name, f.headed(members{"kid": value}), reason)
	}
	own := f.stranger.public()
	return []Forgery{
		kid("kid missing", nil, "no kid"), kid("kid empty", "", "kid is empty"), kid("kid a number", 1, "kid is not a string"),
		kid("kid unknown", "third", unknown), kid("kid in odd case", strings.ToLower(f.key.id), unknown), kid("kid with a NUL", f.key.id+"\x00", unknown),
		kid("kid like a path", "../../../../dev/null", unknown), kid("kid like a URL", "https://evil.example/key", unknown),
		kid("kid like SQL", "' OR 1=1 --", unknown), kid("kid like a command", "key|whoami", unknown),
		kid("kid of 256 bytes", strings.Repeat("k", 256), unknown), kid("kid of 257 bytes", strings.Repeat("k", 257), "longer than 256 bytes"),
		kid("kid of 4 kB", strings.Repeat("k", 4_000), "longer than 256 bytes"),
		bearer("kid twice", f.raw(f.twice(f.header(nil), `"kid":"first"`), f.claims(nil)), "header names a member twice"),
		bearer("jku", f.headed(members{"jku": "https://evil.example/jwks.json"}), "has a jku"),
		bearer("jku null", f.raw(f.twice(f.header(nil), `"jku":null`), f.claims(nil)), "has a jku"),
		bearer("jwk", f.by(f.stranger, f.header(members{"jwk": own}), f.claims(nil)), "has a jwk"),
		bearer("jwk, and no kid", f.by(f.stranger, f.header(members{"jwk": own, "kid": nil}), f.claims(nil)), "has a jwk"),
		bearer("x5u", f.headed(members{"x5u": "https://evil.example/cert.pem"}), "has a x5u"),
		bearer("x5c", f.headed(members{"x5c": []string{"MIIB"}}), "has a x5c"),
		bearer("crit", f.headed(members{"crit": []string{"b64"}, "b64": false}), "has a crit"),
		bearer("crit of nothing", f.headed(members{"crit": []string{}}), "has a crit"),
	}
}

// times are tokens that are not valid now, or do not say for how long.
func (f *forger) times() []Forgery {
	const expired, noTime = "has expired", "exp is not a time"
	claim := func(name, member string, value any, reason string) Forgery {
		return bearer(name, f.token(members{member: value}), reason)
	}
	exp := func(name, text, reason string) Forgery {
		return bearer(name, f.raw(f.header(nil), f.twice(f.claims(members{"exp": nil}), `"exp":`+text)), reason)
	}
	return []Forgery{
		claim("exp missing", "exp", nil, "no exp"), exp("exp null", "null", "exp is not a number"), exp("exp true", "true", "exp is not a number"),
		claim("exp a string", "exp", "99999999999", "exp is not a number"), claim("exp negative", "exp", -1, noTime),
		claim("exp beyond all years", "exp", 1e18, noTime), exp("exp beyond a float", "1e999", noTime),
		claim("expired 30 s ago", "exp", f.now-30, expired), claim("expired 31 s ago", "exp", f.now-31, expired),
		claim("exp with a fraction", "exp", float64(f.now)+3600.5, "not a whole number"), exp("exp a float", "1e10", "not a whole number"), claim("expired long ago", "exp", 0, expired),
		claim("expired an hour ago", "exp", f.now-3600, expired), claim("exp in milliseconds", "exp", (f.now-3600)*1000, noTime),
		claim("nbf ahead", "nbf", f.now+3600, "nbf is in the future"), claim("nbf a string", "nbf", "0", "nbf is not a number"),
		claim("iat ahead", "iat", f.now+3600, "iat is in the future"), claim("iat an object", "iat", members{}, "iat is not a number"),
		bearer("exp twice, later last", f.raw(f.header(nil), f.twice(f.claims(nil), `"exp":1`)), "payload names a member twice"),
	}
}

// parties are tokens that somebody else made, for another purpose or for another client.
func (f *forger) parties() []Forgery {
	claim := func(name, member string, value any, reason string) Forgery {
		return bearer(name, f.token(members{member: value}), reason)
	}
	client := f.person["client_id"]
	return []Forgery{
		claim("iss missing", "iss", nil, "no iss"), claim("iss with a slash", "iss", f.url+"/", "another issuer"),
		claim("iss of another pool", "iss", f.url+"2", "another issuer"), claim("iss in capitals", "iss", strings.ToUpper(f.url), "another issuer"),
		claim("iss cut short", "iss", f.url[:len(f.url)-1], "another issuer"), claim("iss a list", "iss", []string{f.url}, "iss is not a string"),
		claim("an id token", "token_use", "id", "not an access token"), claim("a refresh token", "token_use", "refresh", "not an access token"),
		claim("token_use missing", "token_use", nil, "no token_use"), claim("token_use in capitals", "token_use", "Access", "not an access token"),
		claim("token_use a list", "token_use", []string{"access"}, "token_use is not a string"),
		bearer("Token_Use instead", f.token(members{"token_use": nil, "Token_Use": "access"}), "no token_use"),
		bearer("an id token as Cognito makes them", f.token(members{"token_use": "id", "client_id": nil, "aud": client}), "not an access token"),
		claim("client_id of another app", "client_id", "elsewhere", "client_id is not allowed"),
		bearer("client_id missing", f.token(members{"client_id": nil, "aud": client}), "no client_id"),
		claim("client_id empty", "client_id", "", "client_id is empty"),
		claim("client_id a list", "client_id", []any{client}, "client_id is not a string"),
		claim("client_id with a space", "client_id", client.(string)+" ", "client_id is not allowed"),
		claim("client_id in capitals", "client_id", strings.ToUpper(client.(string)), "client_id is not allowed"),
	}
}

// subjects are tokens of nobody, or of somebody who cannot be written down.
func (f *forger) subjects() []Forgery {
	sub := func(name string, value any, reason string) Forgery {
		return bearer(name, f.token(members{"sub": value}), reason)
	}
	doubled := func(name, member string) Forgery {
		return bearer(name, f.raw(f.header(nil), f.twice(f.claims(nil), member)), "payload names a member twice")
	}
	return []Forgery{
		sub("sub missing", nil, "no sub"), sub("sub empty", "", "sub is empty"), sub("sub a number", 7, "sub is not a string"),
		bearer("sub null", f.raw(f.header(nil), f.twice(f.claims(members{"sub": nil}), `"sub":null`)), "sub is not a string"),
		sub("sub of 256", strings.Repeat("s", 256), "sub is longer than 255"), sub("sub of 10 kB", strings.Repeat("s", 10_000), "longer than 8 KiB"),
		sub("sub with a NUL", "a\x00b", "sub is not printable"), sub("sub with a line break", "a\nb", "sub is not printable"),
		sub("sub with DEL", "a\x7fb", "sub is not printable"), sub("sub with an escape", "a\x1b[2Jb", "sub is not printable"),
		sub("sub in another script", "デザイナー", "sub is not printable"),
		doubled("sub twice", `"sub":"root"`), doubled("sub twice, one escaped", `"s\u0075b":"root"`),
		doubled("twice, deep inside", `"x":{"a":1,"a":2}`),
	}
}

// organizations are tokens whose organization cannot be told; the default one is for tokens that name none.
func (f *forger) organizations() []Forgery {
	const unreadable = "organization is not"
	claim := func(name string, value any, reason string) Forgery {
		return bearer("organization "+name, f.token(members{OrganizationClaim: value}), reason)
	}
	raw := func(text string) Forgery {
		claims := f.twice(f.claims(members{OrganizationClaim: nil}), `"`+OrganizationClaim+`":`+text)
		return bearer("organization "+text, f.raw(f.header(nil), claims), unreadable)
	}
	return []Forgery{
		claim("0", 0, unreadable), claim("negative", -1, unreadable), claim("empty", "", "is empty"), claim("in words", "acme", unreadable),
		claim("with a sign", "+1", unreadable), claim("with a zero before", "01", unreadable), claim("with a space", "1 ", unreadable),
		claim("too large", "9223372036854775808", unreadable), claim("in a list", []int{1}, unreadable), claim("two", "1,2", unreadable),
		raw("1.0"), raw("1e3"), raw("null"), raw("true"), raw("{}"),
	}
}

// twice puts a member in front of those that an object has.
func (*forger) twice(object, member string) string {
	return strings.Replace(object, "{", "{"+member+",", 1)
}

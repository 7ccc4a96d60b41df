// Package auth is for knowing who is asking: a person, by the access token of the Cognito user pool, or a worker, by the
// Standard Webhooks signature on what it sends.
//
// A service asks People.Caller for the person behind a request and Webhooks.Verify for the worker behind one. Each answers
// with an identity or with a typed error; turning errors into HTTP is not done here. Nothing in this package logs, stores or
// repeats a token, a signature or a secret.
package auth

import "framerun.dev/pkg/lifecycle"

// Person is somebody with a valid access token. Everything in it comes from the token or from the configuration, so a row
// may be stamped with it; nothing in it is taken from a request's body.
type Person struct {
	Subject        string            // Cognito's sub: 1 to 255 printable ASCII characters
	ClientID       string            // the app client that signed in, one of the allow list
	Surface        lifecycle.Surface // what that client is: the plugin or the API
	OrganizationID int64             // always positive
}

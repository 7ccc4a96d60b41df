package auth

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// knownFor bounds for how long somebody who was removed from the platform can still call.
const knownFor = time.Minute

// People admits persons that the platform knows. The audit columns of a wf2des run reference the platform's "user" table
// (seed), so a stranger has to be turned away before anything is written. It is safe for concurrent use.
type People struct {
	// Tokens tells who is asking.
	Tokens *Tokens
	// Known says whether the platform's "user" table has the subject. Only a yes is remembered, for a minute at most: who
	// was just added is let in at once.
	Known func(ctx context.Context, subject string) (bool, error)

	known memory[string, struct{}]
}

// Caller gives the person behind a request. Its errors are those of Tokens.Person, *ForbiddenError for somebody whom the
// platform does not know, and whatever Known failed with.
func (p *People) Caller(r *http.Request) (Person, error) {
	person, err := p.Tokens.Person(r)
	if err != nil {
		return Person{}, err
	}
	now := p.Tokens.config.Now()
	if _, ok := p.known.recall(person.Subject, now); ok {
		return person, nil
	}
	known, err := p.Known(r.Context(), person.Subject)
	if err != nil {
		return Person{}, fmt.Errorf("auth: looking the user up: %w", err)
	}
	if !known {
		return Person{}, &ForbiddenError{Reason: "the platform does not know this user"}
	}
	p.known.keep(person.Subject, struct{}{}, now.Add(knownFor))
	return person, nil
}

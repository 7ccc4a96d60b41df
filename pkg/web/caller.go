package web

import (
	"net/http"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
)

// ClientBody and WorkerBody bound the bodies that people and workers may send, in bytes.
const (
	ClientBody = 64 << 10
	WorkerBody = 256 << 10
)

// Caller is the person behind a request and the fence within which the request may look.
type Caller struct {
	auth.Person
	Tenant lifecycle.Tenant
}

// Actor is the caller as audit columns and the timeline name it.
func (c Caller) Actor() lifecycle.Actor {
	return lifecycle.Actor{Voice: lifecycle.User, Name: c.Subject}
}

// Admit tells who calls a route under {projectId}. Errors: those of auth.People.Caller, and lifecycle.ErrNotFound for a project id
// that cannot be one. Whether the project belongs to the caller's organization shows in the store: the tenant is part of every
// query.
func Admit(r *http.Request, people *auth.People) (Caller, error) {
	person, err := people.Caller(r)
	if err != nil {
		return Caller{}, err
	}
	Note(r.Context(), "caller", person.Subject)
	project, err := ProjectID(r)
	return Caller{person, lifecycle.Tenant{OrganizationID: person.OrganizationID, ProjectID: project}}, err
}

// Target names the run of kind that a route under {projectId} and {id} speaks of. Error: lifecycle.ErrNotFound.
func Target(r *http.Request, kind lifecycle.Kind) (lifecycle.Ref, error) {
	id, err := RunID(r)
	if err == nil {
		Note(r.Context(), "run", id)
	}
	return lifecycle.Ref{Kind: kind, ID: id}, err
}

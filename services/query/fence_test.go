package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// endpoints are all that this service answers, about runs of the world, and those that it knows to be answered elsewhere.
func endpoints(t *testing.T, w *servicetest.World) []servicetest.Endpoint {
	reads := func(p servicetest.Permission) map[string]servicetest.Permission {
		return map[string]servicetest.Permission{"GET": p, "HEAD": p}
	}
	var all []servicetest.Endpoint
	for _, kind := range lifecycle.Kinds {
		list := "/v1/projects/{project}/" + string(kind)
		completed := func() lifecycle.Run { return w.In(t, kind, lifecycle.Completed) }
		mine := reads(servicetest.Permission{Owner: 200})
		all = append(all,
			servicetest.Endpoint{Path: list, Allow: "GET, HEAD, POST, OPTIONS",
				Asks: reads(servicetest.Permission{Owner: 200, OtherProject: 200, OtherOrganization: 200})}, // each sees their own, see TestCanaries
			servicetest.Endpoint{Path: list + "/{id}", Run: completed, Allow: "DELETE, GET, HEAD, OPTIONS", Asks: mine},
			servicetest.Endpoint{Path: list + "/{id}/timeline", Run: completed, Allow: "GET, HEAD, OPTIONS", Asks: mine},
			servicetest.Endpoint{Path: list + "/{id}/result", Run: completed, Allow: "GET, HEAD, OPTIONS", Asks: mine},
			servicetest.Endpoint{Path: list + "/{id}/placement", Run: completed, Allow: "POST, OPTIONS"},
		)
	}
	for _, suffix := range []string{"/confirm", "/cancel", "/feedback"} {
		all = append(all, servicetest.Endpoint{Path: "/v1/projects/{project}/wf2des/{id}" + suffix, Allow: "POST, OPTIONS",
			Run: func() lifecycle.Run { return w.In(t, lifecycle.WF2Des, lifecycle.Completed) }})
	}
	return all
}

// Every endpoint with every method as everybody.
func TestFence(t *testing.T) {
	t.Parallel()
	q := still(t)
	servicetest.Fence(t, q.World, q.Client, endpoints(t, q.World))
}

// Every endpoint with everything that strangers send.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	q := still(t)
	servicetest.FrontDoor(t, q.World, q.Client, endpoints(t, q.World))
}

// Every endpoint while PostgreSQL fails in a way that nobody expects.
func TestFailuresAreNotTold(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	s := newServer(w.Store, w.People, nil)
	servicetest.Failures(t, w, s.routes(), web.Options{}, endpoints(t, w))
}

// lost are links that cannot be made, for a reason that nobody may read.
type lost struct{}

func (lost) To(context.Context, string, time.Time) (artifacts.Link, error) {
	return artifacts.Link{}, errors.New("sign with AKIAIOSFODNN7EXAMPLE, secret hunter2, from /root/.aws/credentials")
}

// What keeps a link from being made is for the log alone.
func TestLinksThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	var log servicetest.Log
	s := newServer(w.Store, w.People, lost{})
	c := w.ServeWith(t, s.routes(), web.Options{Logger: log.Logger()})
	reply := c.Send(t, "GET", path(w.In(t, lifecycle.WF2Des, lifecycle.Completed))+"/result", w.Owner, "")
	reply.Refused(t, 500, "internal")
	for _, word := range []string{"AKIA", "hunter2", "/root", "sign with"} {
		if strings.Contains(fmt.Sprint(reply), word) {
			t.Errorf("%q is told to the caller: %v", word, reply)
		}
	}
	if line := log.Lines(t, 1)[0]; line["level"] != "ERROR" || !strings.Contains(fmt.Sprint(line["error"]), "hunter2") {
		t.Errorf("the log does not tell the cause: %v", line)
	}
}

// Every tenant's runs hold texts that tell whose they are. Each tenant is shown its own, to the last column, and of the others' nothing:
// no item of a list, no line of a timeline, no word of a refusal.
func TestCanaries(t *testing.T) {
	t.Parallel()
	q := open(t)
	q.Plant(t)
	for _, p := range []servicetest.Principal{q.Owner, q.OtherProject, q.OtherOrganization} {
		for _, kind := range lifecycle.Kinds {
			list := q.Send(t, "GET", fmt.Sprintf("/v1/projects/%d/%s?limit=100", p.ProjectID, kind), p, "")
			q.Silent(t, list, p.ProjectID)
			if len(ids(t, list)) != len(servicetest.StatesOf(kind)) {
				t.Errorf("%s is shown %s", p.Name, list.Body)
			}
			for _, column := range []string{"figma_file_key", "screen_id", "placement_target", "error_message", "result_url", "key"} {
				if !strings.Contains(list.Body, servicetest.Canary(p.ProjectID)+column) {
					t.Errorf("%s: the canary in %s of their own runs does not sing", p.Name, column)
				}
			}
		}
		for _, of := range []servicetest.Principal{q.Owner, q.OtherProject, q.OtherOrganization} {
			for _, run := range q.Planted(of.ProjectID) {
				for _, suffix := range []string{"", "/timeline", "/result"} {
					reply := q.Send(t, "GET", servicetest.Path(run, p.ProjectID)+suffix, p, "", "If-None-Match", web.ETag(run.ID, run.UpdatedAt.Add(time.Hour)))
					q.Silent(t, reply, p.ProjectID)
					if mine := p == of; mine != (reply.Status == 200) || mine != strings.Contains(reply.Body, servicetest.Canary(of.ProjectID)) {
						t.Errorf("%s is answered %d about a run of %s: %s", p.Name, reply.Status, of.Name, reply.Body)
					}
				}
			}
		}
	}
}

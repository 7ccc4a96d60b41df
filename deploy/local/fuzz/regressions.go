package fuzz

import "strings"

// regressions have broken the suite once. The first worker of every run sends them before anything else. Tokens and the run that they
// speak of, an open one, stand in braces.
var regressions = []Request{
	// A time that an offset leads out of the years that PostgreSQL reads was a 500.
	{Service: "query", Method: "GET", Target: "/v1/projects/1/wf2des?createdAfter=9999-12-31T23:59:59-23:59",
		Header: []Field{{"Authorization", "Bearer {plugin}"}}, wants: []int{422}},
	{Service: "query", Method: "GET", Target: "/v1/projects/1/wf2des?createdBefore=0001-01-01T00:00:00%2B23:59",
		Header: []Field{{"Authorization", "Bearer {plugin}"}}, wants: []int{422}},
	// A cursor of the list without filters, of a time that PostgreSQL cannot hold.
	{Service: "query", Method: "GET", Target: "/v1/projects/1/wf2des?cursor=47DEQpj8HBSAAAAAAAAAAAGYAAAAAHAAgAAAAAAAAAE",
		Header: []Field{{"Authorization", "Bearer {plugin}"}}, wants: []int{400}},
	// HEAD of a stream held the connection until the run ended: the request behind it was never answered.
	{Service: "query", Method: "HEAD", Target: "{run}",
		Header: []Field{{"Authorization", "Bearer {plugin}"}, {"Accept", "text/event-stream"}}, wants: []int{200}},
	{Service: "query", Method: "GET", Target: "{run}", Header: []Field{{"Authorization", "Bearer {plugin}"}}, wants: []int{200}},
	// A tunnel through the gateway was a 503, and `OPTIONS *` was answered without the suite's manners.
	{Service: "gateway", Method: "CONNECT", Target: "example.com:443", wants: []int{404}},
	{Service: "gateway", Method: "OPTIONS", Target: "*"},
}

// repeat plans the regressions, behind the creation of a run to speak of.
func (g *generator) repeat() {
	first := createDesign.draft(g, nil, g.people.tenants[0])
	first.service = "intake"
	g.plan = append(g.plan, first.request(g))
	for _, r := range regressions {
		r.route = "regression"
		g.plan = append(g.plan, &r)
	}
}

// resolve puts tokens and the newest run in the place of their names.
func (g *generator) resolve(r *Request) {
	own, foreign := g.people.tenants[0].tokens, g.people.tenants[2].tokens
	names := []string{"{plugin}", own[0], "{api}", own[1], "{foreign}", foreign[0]}
	if n := len(g.book.recent); n > 0 {
		names = append(names, "{run}", g.book.recent[n-1].path())
	}
	words := strings.NewReplacer(names...)
	r.Target = words.Replace(r.Target)
	fields := make([]Field, len(r.Header))
	for i, f := range r.Header {
		fields[i] = Field{f.Name, words.Replace(f.Value)}
	}
	r.Header = fields
}

package fuzz

import (
	"fmt"
	"strconv"
)

func designMembers(g *generator, d *draft) {
	d.put("figmaFileKey", quoted(g.fileKey(d.tenant)))
	d.put("wfNodeId", quoted(g.node()))
	d.put("screenId", quoted(g.screen(d.tenant)))
	if g.chance(30) {
		d.put("edge", pick(g, []string{`"wf2des"`, `"des2wf"`, "null"}))
	}
	if g.chance(30) {
		d.put("autoConfirm", pick(g, []string{`"auto_confirm"`, `"auto_confirm"`, `"normal"`, "null"}))
	}
	if g.chance(20) {
		d.put("prompt", quoted(pick(g, odd)))
	}
	if g.chance(20) {
		d.put("placementTarget", pick(g, []string{`"7:8"`, `"7-8"`, `"I7:8;9:10"`, "null"}))
	}
}

func codeMembers(g *generator, d *draft) {
	d.put("pageImportId", quoted(d.tenant.pageImport))
	d.put("figmaFileKey", quoted(g.fileKey(d.tenant)))
	d.put("screenId", quoted(g.screen(d.tenant)))
	if g.chance(20) {
		d.put("placementTarget", pick(g, []string{`"7:8"`, `"7-8"`, "null"}))
	}
}

// node is one of so few that open runs meet.
func (g *generator) node() string {
	n := g.IntN(60)
	return fmt.Sprintf(pick(g, []string{"1:%d", "1-%d", "I1:%d;2:3"}), n)
}

func (g *generator) screen(t tenant) string {
	return canary(t.organization) + pick(g, odd)
}

func confirmMembers(g *generator, d *draft) {
	d.put("decision", pick(g, []string{`"confirm"`, `"confirm"`, `"confirm"`, `"reject"`}))
	d.put("attempt", pick(g, []string{"1", "1", "1", "1", "1", "1", "1", "1", "1", "2"}))
}

func feedbackMembers(g *generator, d *draft) {
	d.put("feedbackStatus", pick(g, []string{`"fixed"`, `"adopted"`}))
}

// wordMembers is what a worker would say of the run now, or at any other time.
func wordMembers(g *generator, d *draft) {
	name, kind, id := "job_id", "wf2des", "01980000-0000-7000-8000-0000000000aa"
	if d.run != nil {
		kind, id = d.run.kind, d.run.id
	}
	if kind == "code2wf" {
		name = "code2wf_id"
	}
	event := g.event(d.run)
	d.put(name, quoted(id))
	d.put("attempt", pick(g, []string{"1", "1", "1", "1", "1", "1", "1", "1", "1", "2"}))
	d.put("event", quoted(event))
	switch event {
	case "completed":
		g.resultMembers(d, kind+"/"+id+"/")
	case "failed":
		g.failureMembers(d, kind+"/"+id+"/")
	case "progress":
		d.put("progress", fmt.Sprintf(`{"percent":%d,"message":%s}`, g.IntN(101), quoted(pick(g, odd))))
	}
}

// event is, most of the time, the one that leads on.
func (g *generator) event(e *entry) string {
	all := []string{"parsed", "completed", "completed", "failed", "progress"}
	switch {
	case e == nil || g.chance(30) || !e.open():
		return pick(g, all)
	case e.phase == "parse" && !e.auto:
		return pick(g, []string{"parsed", "parsed", "parsed", "parsed", "failed"})
	case e.phase == "parse":
		return pick(g, []string{"parsed", "parsed", "completed", "failed"})
	}
	return pick(g, []string{"completed", "completed", "completed", "failed"})
}

func (g *generator) resultMembers(d *draft, prefix string) {
	d.put("result_url", quoted(prefix+"1/result.json"))
	if g.chance(60) {
		d.put("flag_count", strconv.Itoa(g.IntN(5)))
		d.put("score", strconv.FormatFloat(float64(g.IntN(100001))/100000, 'f', -1, 64))
		d.put("score_version", pick(g, []string{`"v1"`, `"2026-11"`, `"🦊"`, "null"}))
	}
}

func (g *generator) failureMembers(d *draft, prefix string) {
	if g.chance(30) {
		d.put("result_url", quoted(prefix+"1/failure.json"))
	}
	if g.chance(80) {
		d.put("manifest", fmt.Sprintf(`{"error_code":%s,"error_message":%s}`, quoted(pick(g, errorCodes)), quoted(pick(g, failures))))
	}
}

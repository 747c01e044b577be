package eval

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"belay/eval/stats"
)

// WriteHTML writes a report that needs nothing beside it: tables, and pictures as SVG. Journals are linked relative to the results folder, where the
// file belongs.
func WriteHTML(w io.Writer, r Results) error {
	counts := r.Counts()
	var b strings.Builder
	name := "evaluation"
	if r.Start != nil {
		name = r.Start.Suite
	}
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s</title><style>%s</style><main><h1>%s</h1>`,
		html.EscapeString(name), sheet, html.EscapeString(name))
	passes := 0
	for _, c := range counts {
		passes += c.C
	}
	total := 0
	for _, c := range counts {
		total += c.N
	}
	fmt.Fprintf(&b, "<p>%d tasks, %d trials that count, %d passed, %d not counted, %d tasks quarantined.", len(counts), total, passes, len(r.Trials)-total, len(r.Quarantined()))
	if v := stats.CostPerSuccess(counts); !math.IsNaN(v) {
		fmt.Fprintf(&b, " Cost per success $%.4f.", v)
	}
	if v := stats.Detectable(counts); v > 0 {
		fmt.Fprintf(&b, " This design sees differences of %.0f points.", 100*v)
	}
	b.WriteString("</p>")
	curve(&b, counts)
	scatter(&b, counts)
	strips(&b, r)
	times(&b, r)
	b.WriteString("<h2>Trials</h2><table><tr><th>Task<th>#<th>Outcome<th>Turns<th>Seconds<th>Cost<th>Why<th>Journal")
	trials := slices.Clone(r.Trials)
	slices.SortFunc(trials, func(a, b Trial) int { return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Trial, b.Trial)) })
	for _, t := range trials {
		cost, link := "", "none"
		if t.USD != nil {
			cost = fmt.Sprintf("$%.4f", *t.USD)
		}
		if t.Journal != "" {
			link = fmt.Sprintf(`<a href="%s/journal.jsonl">%s</a>`, html.EscapeString(t.Journal), html.EscapeString(t.RunID))
		}
		why := t.Reason
		for _, c := range r.Causes(t) {
			why += fmt.Sprintf(" [%s × %s]", c.Component, c.Failure)
		}
		fmt.Fprintf(&b, `<tr id="%s-%d"><td>%s<td>%d<td class="%s">%s<td>%d<td>%.1f<td>%s<td>%s<td>%s`, html.EscapeString(t.Task), t.Trial, html.EscapeString(t.Task), t.Trial, t.Outcome, t.Outcome,
			t.Turns, float64(t.AgentMS)/1000, cost, html.EscapeString(why), link)
	}
	b.WriteString("</table>")
	if q := r.Quarantined(); len(q) > 0 {
		b.WriteString("<h2>Quarantined</h2><table><tr><th>Task<th>Why")
		for _, c := range r.Controls {
			if !c.OK {
				fmt.Fprintf(&b, "<tr><td>%s<td>%s: %s", html.EscapeString(c.Task), html.EscapeString(c.Name), html.EscapeString(c.Summary))
			}
		}
		b.WriteString("</table>")
	}
	if r.Start != nil {
		b.WriteString("<h2>Configuration</h2><table>")
		for _, f := range r.Start.Config {
			fmt.Fprintf(&b, "<tr><th>%s<td>%s", html.EscapeString(f.Name), html.EscapeString(f.Value))
		}
		fmt.Fprintf(&b, "<tr><th>hash<td>%s</table>", html.EscapeString(r.Start.ConfigHash))
	}
	b.WriteString("</main></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const sheet = `body{font:15px/1.5 system-ui,sans-serif;color:#1d2329;background:#fff;margin:0}main{max-width:1100px;margin:0 auto;padding:2em 1em}
table{border-collapse:collapse;font-size:13px;width:100%}th,td{text-align:left;padding:3px 8px;border-bottom:1px solid #e3e6ea;vertical-align:top;overflow-wrap:anywhere}
svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#4a545e}h2{margin-top:2em;font-size:18px}
.pass{color:#17703a}.fail,.agent_error{color:#a3241f}.budget{color:#8a5a00}.harness_error,.grader_error{color:#68717a}`

var colors = map[Outcome]string{Pass: "#2f9e5b", Fail: "#cf3f36", AgentError: "#8e1f1a", OutOfBudget: "#dd9a1f", HarnessFault: "#9aa3ab", GraderFault: "#c3c9ce"}

const (
	plotWidth  = 640
	plotHeight = 260
	plotLeft   = 60
	plotTop    = 16
)

// plane draws axes: x from 0 to right, y from 0 to top.
func plane(b *strings.Builder, title, x, y string, right, top float64) (atX, atY func(float64) float64) {
	fmt.Fprintf(b, `<h2>%s</h2><svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, title, plotWidth+plotLeft+30, plotHeight+60, title)
	atX = func(v float64) float64 { return plotLeft + v/right*plotWidth }
	atY = func(v float64) float64 { return plotTop + plotHeight - v/top*plotHeight }
	for i := range 5 {
		v := top * float64(i) / 4
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#e3e6ea"/><text x="%d" y="%.1f" text-anchor="end">%.3g</text>`, plotLeft, plotLeft+plotWidth, atY(v), atY(v), plotLeft-6, atY(v)+4, v)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text><text x="14" y="%d" transform="rotate(-90 14 %d)" text-anchor="middle">%s</text>`,
		plotLeft+plotWidth/2, plotTop+plotHeight+40, x, plotTop+plotHeight/2, plotTop+plotHeight/2, y)
	return atX, atY
}

// curve is pass^k and pass@k over k, with the intervals of pass^k.
func curve(b *strings.Builder, counts []stats.Task) {
	most := min(stats.MinTrials(counts), 100)
	if most == 0 {
		return
	}
	x, y := plane(b, "pass^k and pass@k", "k", "share of tasks", float64(most+1), 1)
	var hat, at []string
	for k := 1; k <= most; k++ {
		h, a := stats.Hat(counts, k), stats.At(counts, k)
		px := x(float64(k))
		hat = append(hat, fmt.Sprintf("%.1f,%.1f", px, y(h.Value)))
		at = append(at, fmt.Sprintf("%.1f,%.1f", px, y(a.Value)))
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#2f6fb0" stroke-width="2" opacity=".4"/><circle cx="%.1f" cy="%.1f" r="4" fill="#2f6fb0"><title>pass^%d %.3f [%.3f, %.3f]</title></circle>`,
			px, px, y(h.Low), y(h.High), px, y(h.Value), k, h.Value, h.Low, h.High)
		if k == 1 || k == most || most <= 12 {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, px, plotTop+plotHeight+18, k)
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="#2f6fb0"/><polyline points="%s" fill="none" stroke="#8a949d" stroke-dasharray="4 3"/></svg><p>Line: pass^k with 95&nbsp;%% intervals. Dashed: pass@k.</p>`,
		strings.Join(hat, " "), strings.Join(at, " "))
}

// scatter is cost against success, a point a task.
func scatter(b *strings.Builder, counts []stats.Task) {
	most := 0.0
	for _, c := range counts {
		if c.Cost != nil {
			most = max(most, *c.Cost/float64(c.N))
		}
	}
	if len(counts) == 0 {
		return
	}
	if most == 0 {
		b.WriteString("<h2>Cost against success</h2><p>No trial has a known cost above 0.</p>")
		return
	}
	x, y := plane(b, "Cost against success", "USD a trial", "pass rate", most*1.05, 1)
	for _, c := range counts {
		if c.Cost == nil {
			continue
		}
		v := *c.Cost / float64(c.N)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="5" fill="#2f6fb0" opacity=".6"><title>%s: %d of %d, $%.4f a trial</title></circle>`, x(v), y(c.Rate()), html.EscapeString(c.ID), c.C, c.N, v)
	}
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%.3g</text>`, x(v), plotTop+plotHeight+18, v)
	}
	b.WriteString("</svg>")
}

// strips are the trials of each task, a square each.
func strips(b *strings.Builder, r Results) {
	byTask := map[string][]Trial{}
	var ids []string
	most := 0
	for _, t := range r.Trials {
		if byTask[t.Task] == nil {
			ids = append(ids, t.Task)
		}
		byTask[t.Task] = append(byTask[t.Task], t)
		most = max(most, t.Trial)
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	fmt.Fprintf(b, `<h2>Trials of each task</h2><svg viewBox="0 0 %d %d" role="img" aria-label="trials of each task">`, 260+18*min(most, 200), 18*len(ids)+8)
	for i, id := range ids {
		fmt.Fprintf(b, `<text x="250" y="%d" text-anchor="end">%s</text>`, 18*i+14, html.EscapeString(cut(id, 36)))
		for _, t := range byTask[id] {
			fmt.Fprintf(b, `<a href="#%s-%d"><rect x="%d" y="%d" width="15" height="15" fill="%s"><title>%s #%d: %s</title></rect></a>`, html.EscapeString(id), t.Trial, 260+18*(t.Trial-1), 18*i+2, colors[t.Outcome], html.EscapeString(id), t.Trial, t.Outcome)
		}
	}
	b.WriteString("</svg><p>")
	for _, o := range []Outcome{Pass, Fail, AgentError, OutOfBudget, HarnessFault, GraderFault} {
		fmt.Fprintf(b, `<span style="color:%s">■</span> %s `, colors[o], o)
	}
	b.WriteString("</p>")
}

// times is how long agents worked, a point a trial.
func times(b *strings.Builder, r Results) {
	longest := 0.0
	for _, t := range r.Trials {
		longest = max(longest, float64(t.AgentMS)/1000)
	}
	if longest == 0 {
		return
	}
	x, y := plane(b, "Time", "trials in the order in which they ended", "seconds", float64(len(r.Trials)+1), longest*1.05)
	for i, t := range r.Trials {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" opacity=".7"><title>%s #%d: %.1f s</title></circle>`, x(float64(i+1)), y(float64(t.AgentMS)/1000), colors[t.Outcome], html.EscapeString(t.Task), t.Trial, float64(t.AgentMS)/1000)
	}
	b.WriteString("</svg>")
}

package eval

import (
	"cmp"
	"fmt"
	"slices"

	"belay/eval/stats"
)

// Results is what a log says.
type Results struct {
	Start    *Start
	Controls []Controls
	Trials   []Trial // final ones, in the order in which they ended
	Reruns   []Trial
	Classify []Classify
}

// Collect sorts lines by what they are.
func Collect(lines []Line) Results {
	var r Results
	for _, l := range lines {
		switch {
		case l.Type == lineStart && l.Start != nil:
			r.Start = l.Start
		case l.Type == lineControl && l.Control != nil:
			r.Controls = append(r.Controls, *l.Control)
		case l.Type == lineTrial && l.Trial != nil:
			r.Trials = append(r.Trials, *l.Trial)
		case l.Type == lineRerun && l.Trial != nil:
			r.Reruns = append(r.Reruns, *l.Trial)
		case l.Type == lineClassify && l.Classify != nil:
			r.Classify = append(r.Classify, *l.Classify)
		}
	}
	if r.Start != nil { // controls end in any order
		slices.SortStableFunc(r.Controls, func(a, b Controls) int {
			return slices.Index(r.Start.Tasks, a.Task) - slices.Index(r.Start.Tasks, b.Task)
		})
	}
	return r
}

func (r Results) control(task, name string) (Controls, bool) {
	for _, c := range r.Controls {
		if c.Task == task && c.Name == name {
			return c, true
		}
	}
	return Controls{}, false
}

func (r Results) trial(task string, number int) (Trial, bool) {
	for _, t := range r.Trials {
		if t.Task == task && t.Trial == number {
			return t, true
		}
	}
	return Trial{}, false
}

// Quarantined are the tasks that failed a control, with the reason.
func (r Results) Quarantined() map[string]string {
	q := map[string]string{}
	for _, c := range r.Controls {
		if !c.OK && q[c.Task] == "" {
			q[c.Task] = c.Name + " " + c.Summary
		}
	}
	return q
}

// Counts are the numbers that statistics work with: trials that do not count are left out, and tasks without one that counts.
func (r Results) Counts() []stats.Task {
	byID := map[string]*stats.Task{}
	unknown := map[string]bool{}
	for _, t := range r.Trials {
		if !t.Outcome.Counts() {
			continue
		}
		s := byID[t.Task]
		if s == nil {
			s = &stats.Task{ID: t.Task, Cost: new(float64)}
			byID[t.Task] = s
		}
		s.N++
		if t.Outcome == Pass {
			s.C++
		}
		if t.USD == nil {
			unknown[t.Task] = true
		} else {
			*s.Cost += *t.USD
		}
	}
	var all []stats.Task
	for id, s := range byID {
		if unknown[id] {
			s.Cost = nil
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b stats.Task) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Causes of the task's trial: a person's word where there is one, else what events suggest.
func (r Results) Causes(t Trial) []Cause {
	for i := len(r.Classify) - 1; i >= 0; i-- {
		if c := r.Classify[i]; c.Task == t.Task && c.Trial == t.Trial {
			return []Cause{c.Cause}
		}
	}
	return t.Suggested
}

// Changes lists what is another in b than in a, in words.
func Changes(a, b []Fact) (changes []string) {
	was := map[string]string{}
	for _, f := range a {
		was[f.Name] = f.Value
	}
	for _, f := range b {
		old, there := was[f.Name]
		delete(was, f.Name)
		if !there || old != f.Value {
			changes = append(changes, fmt.Sprintf("%s %s, now %s", f.Name, quoted(old), quoted(f.Value)))
		}
	}
	for _, f := range a {
		if _, left := was[f.Name]; left {
			changes = append(changes, fmt.Sprintf("%s %s, now nothing", f.Name, quoted(f.Value)))
		}
	}
	return changes
}

func quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", cut(s, 80))
}

// AddCause adds a person's word about a failure to the results in dir.
func AddCause(dir, task string, number int, c Cause) error {
	if _, err := ReadLog(dir); err != nil {
		return err
	}
	log, lines, err := OpenLog(dir)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, ok := Collect(lines).trial(task, number); !ok {
		return fmt.Errorf("the results have no trial %d of a task %q", number, task)
	}
	return log.Append(Line{Type: lineClassify, Classify: &Classify{Task: task, Trial: number, Cause: c}})
}

// Package handoff is contract 5: the note that one context leaves for a reader who has none.
package handoff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Version is the version of the note's form.
const Version = 1

// Note is what a reader needs to go on. Empty parts are said to be empty rather than left out, so that a
// reader knows that nothing was forgotten.
type Note struct {
	Run       string // run id
	Seq       int64  // journal position that the note describes
	Reason    string // why the work stopped
	Exit      int    // exit code of the run
	Workspace string

	Objective   string   // the task in the person's words
	Constraints []string // what must hold, in the person's words
	Done        []Done
	Tree        Tree
	Decisions   []string // what was decided, and why
	Failed      []string // what failed and must not be tried again
	Next        string   // the next step
	Verify      []string // how it will be verified
	Questions   []string // for a person
	Refs        []string // results and checkpoints worth reading, with where they are
}

// Done is a piece of finished work.
type Done struct {
	What     string
	Evidence string // what shows it; "" is "claimed, not shown"
}

// Tree is the state of the files.
type Tree struct {
	Digest  string   // of the whole tree
	Commit  string   // that the repository is on
	Changed []string // files that the run wrote, relative to the workspace
	Tests   string   // the last verification, in a line
}

// Markdown writes the note: YAML front matter for programs, and the rest for any reader.
func (n Note) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\nversion: %d\n", Version)
	for _, field := range []struct{ name, value string }{
		{"run", n.Run}, {"reason", n.Reason}, {"workspace", n.Workspace}, {"tree", n.Tree.Digest}, {"commit", n.Tree.Commit},
	} {
		fmt.Fprintf(&b, "%s: %s\n", field.name, strconv.Quote(field.value))
	}
	fmt.Fprintf(&b, "seq: %d\nexit: %d\n---\n", n.Seq, n.Exit)

	section := func(title, text string) { fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, text) }
	section("Objective", orNone(n.Objective))
	section("Constraints", list(n.Constraints))
	var done []string
	for _, d := range n.Done {
		evidence := d.Evidence
		if evidence == "" {
			evidence = "claimed, not shown"
		}
		done = append(done, d.What+" ("+evidence+")")
	}
	section("Done, with evidence", list(done))
	section("State of the tree", list(n.Tree.lines()))
	section("Decisions", list(n.Decisions))
	section("What failed and must not be tried again", list(n.Failed))
	section("Next step", orNone(n.Next)+"\n\nIt will be verified by:\n\n"+list(n.Verify))
	section("Open questions", list(n.Questions))
	section("References", list(n.Refs))
	return b.Bytes()
}

func (t Tree) lines() []string {
	lines := []string{"digest " + orNone(t.Digest), "commit " + orNone(t.Commit), "last verification: " + orNone(t.Tests)}
	for _, file := range t.Changed {
		lines = append(lines, "changed: `"+file+"`")
	}
	return lines
}

func orNone(s string) string {
	if strings.TrimSpace(s) == "" {
		return "none"
	}
	return s
}

// list makes a Markdown list; what an item's own lines say stays inside it.
func list(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	var b strings.Builder
	for _, item := range items {
		b.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

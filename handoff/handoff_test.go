package handoff_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/handoff"
)

var update = flag.Bool("update", false, "write the golden files")

// The two ends of the form: everything said, and nothing.
func TestMarkdown(t *testing.T) {
	for name, note := range map[string]handoff.Note{
		"empty": {},
		"full": {
			Run: "r_01", Seq: 42, Reason: `bound reached: "40 turns"`, Exit: 5, Workspace: "/w", Objective: "Fix the test.\nKeep the API.",
			Constraints: []string{"keep the API"},
			Done:        []handoff.Done{{What: "found the cause", Evidence: "event 17"}, {What: "fixed it"}},
			Tree:        handoff.Tree{Digest: "d1", Commit: "c1", Changed: []string{"a b.go"}, Tests: "go test ./...: exit 1"},
			Decisions:   []string{"int64, since cents overflow"}, Failed: []string{"a mutex:\ndeadlock"}, Next: "make the test pass",
			Verify: []string{"go test ./..."}, Questions: []string{"may the API change?"}, Refs: []string{"belay show r_01"},
		},
	} {
		path := "testdata/" + name + ".md"
		got := note.Markdown()
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

package sandbox

import (
	"path/filepath"
	"strings"
	"testing"

	"belay/effect"
)

// TestSeatbeltProfile reads the profile as Seatbelt does: what a later rule says counts.
func TestSeatbeltProfile(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Protect = []string{"golden/**", "dir/keep.txt"} })
	profile := s.seatbelt(effect.ReadWrite, "/private/tmp/belay-1", []string{"/usr/bin"})
	if !strings.HasPrefix(profile, "(version 1)\n(deny default)\n") {
		t.Errorf("begins with %.40q", profile)
	}
	if open, closed := strings.Count(profile, "("), strings.Count(profile, ")"); open != closed {
		t.Errorf("%d opening and %d closing parentheses:\n%s", open, closed, profile)
	}
	at := func(line string) int {
		t.Helper()
		i := strings.Index(profile, line)
		if i < 0 {
			t.Fatalf("there is no %q in\n%s", line, profile)
		}
		return i
	}
	ws := seatbeltString(s.workspace)
	writable := at("(allow file-write* (subpath " + ws + "))")
	for _, rule := range []string{
		"(deny file-write* (subpath " + seatbeltString(filepath.Join(s.workspace, ".git/hooks")) + "))",
		"(deny file-write* (subpath " + seatbeltString(filepath.Join(s.workspace, "dir/keep.txt")) + "))",
		"(deny file-write-unlink (literal " + seatbeltString(filepath.Join(s.workspace, "dir")) + "))",
		"(deny file* (subpath " + seatbeltString(filepath.Join(s.workspace, ".belay")) + "))",
		"(deny file* (subpath " + seatbeltString(s.home) + "))",
		`golden(/.*)?(/.*)?$")`, `\.vscode(/.*)?$")`,
	} {
		if at(rule) < writable {
			t.Errorf("%q comes before what it takes away from", rule)
		}
	}
	if strings.Contains(profile, "(?") {
		t.Errorf("an expression that Seatbelt does not know:\n%s", profile)
	}
	for access, want := range map[effect.Access]string{effect.ReadOnly: "read", effect.NoAccess: "none"} {
		profile := s.seatbelt(access, "/private/tmp/belay-1", nil)
		if strings.Contains(profile, "(allow file-write* (subpath "+ws+"))") {
			t.Errorf("%s can write", want)
		}
		if got := strings.Contains(profile, "(allow file-read* file-map-executable (subpath "+ws+"))"); got != (access == effect.ReadOnly) {
			t.Errorf("%s: readable is %v", want, got)
		}
	}
	if got := seatbeltString("a\"b\\c\n"); got != `"a\"b\\c\n"` {
		t.Error(got)
	}
}

package sandbox

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"belay/effect"
)

// seatbelt is the profile for macOS's sandbox-exec that gives what access holds: everything is denied that is not
// named. tmp is a directory of the call's own; roots are the directories that hold programs.
//
// What a later rule says counts, so that what is protected comes last.
func (s *Sandbox) seatbelt(access effect.Access, tmp string, roots []string) string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString("(" + strings.Join(parts, " ") + ")\n") }
	subpath := func(p string) string { return "(subpath " + seatbeltString(p) + ")" }
	b.WriteString("(version 1)\n(deny default)\n")
	line("allow process-fork process-exec")
	line("allow signal (target same-sandbox)")
	line("allow process-info* (target same-sandbox)")
	line("allow sysctl-read")
	line("allow mach-lookup", `(global-name "com.apple.system.opendirectoryd.libinfo")`, `(global-name "com.apple.system.logger")`)
	line("allow file-read-metadata")
	line("allow file-read*", `(literal "/")`, `(literal "/dev/null")`, `(literal "/dev/zero")`, `(literal "/dev/random")`, `(literal "/dev/urandom")`, `(literal "/dev/tty")`,
		`(literal "/private/etc/localtime")`, subpath("/private/etc/ssl"), `(literal "/private/etc/hosts")`, `(literal "/private/etc/passwd")`)
	line("allow file-write-data file-ioctl", `(literal "/dev/null")`, `(literal "/dev/zero")`, `(literal "/dev/tty")`)
	for _, root := range roots {
		line("allow file-read* file-map-executable", subpath(root))
	}
	for _, p := range append(append([]string{}, s.host.readable...), s.read...) {
		line("allow file-read* file-map-executable", subpath(p))
	}
	line("allow file-read* file-write*", subpath(tmp))
	for _, p := range s.write {
		line("allow file-read* file-write*", subpath(p))
	}
	if access != effect.NoAccess && access != "" {
		line("allow file-read* file-map-executable", subpath(s.workspace))
	}
	if access == effect.ReadWrite {
		line("allow file-write*", subpath(s.workspace))
	}
	// Sockets of this machine's loopback alone, and none by name.
	line("allow network-bind network-inbound network-outbound", `(local ip "localhost:*")`, `(remote ip "localhost:*")`)
	line("deny network-outbound", "(literal \"/private/var/run/mDNSResponder\")", "(subpath "+seatbeltString(s.workspace)+")")

	ws := "^" + regexp.QuoteMeta(s.workspace) + "/"
	deny := func(expression string) {
		line("deny file-write*", "(regex #\""+strings.ReplaceAll(expression, `"`, `\"`)+"\")")
	}
	for _, p := range s.rules.top {
		line("deny file-write*", subpath(path.Join(filepath.ToSlash(s.workspace), p)))
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) { // a parent that moves away takes what it holds along
			line("deny file-write-unlink", "(literal "+seatbeltString(path.Join(filepath.ToSlash(s.workspace), dir))+")")
		}
	}
	for _, name := range topNames {
		line("deny file-write*", subpath(path.Join(filepath.ToSlash(s.workspace), name)))
	}
	for _, name := range startNames {
		re := strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, `[^/]*`)
		deny(ws + "(.*/)?" + re + "(/.*)?$")
	}
	deny(ws + `(.*/)?\.git/(hooks|config|info|commondir|config\.worktree)(/.*)?$`)
	for _, glob := range s.rules.globs {
		body := strings.TrimSuffix(strings.TrimPrefix(glob.String(), "^(?s:"), ")$")
		deny(ws + strings.ReplaceAll(body, "(?:", "(") + "(/.*)?$")
	}
	for _, name := range hidden {
		line("deny file*", subpath(path.Join(filepath.ToSlash(s.workspace), name)))
	}
	for _, p := range append([]string{s.home}, s.host.masked...) {
		line("deny file*", subpath(p))
	}
	return b.String()
}

// seatbeltString is a string of a profile.
func seatbeltString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

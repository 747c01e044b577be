package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"belay/effect"
	"belay/tool"
)

const seatbeltProgram = "/usr/bin/sandbox-exec"

// seatbeltRoots hold programs and what they need.
var seatbeltRoots = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share", "/usr/local", "/opt/homebrew", "/System", "/Library/Developer", "/Library/Apple", "/private/var/db/timezone", "/private/var/db/dyld"}

func probe(ctx context.Context) Level {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, seatbeltProgram, "-p", "(version 1)(allow default)", "/usr/bin/true").CombinedOutput(); err != nil {
		return Level{Isolation: None, Reason: fmt.Sprintf("%s does not work here: %v: %s", seatbeltProgram, err, strings.TrimSpace(string(out)))}
	}
	return Level{Isolation: Seatbelt,
		Holds: []string{"only the granted view of the workspace, programs and a private /tmp", "no network but this machine's own loopback"},
		Lacks: []string{"other users' processes can be seen", "processes that leave their session outlive a call", "loopback services of this machine can be reached",
			"memory, processor time, processes and disk of a whole call"}}
}

func (e *env) call(ctx context.Context, cmd Call) (tool.Exit, error) {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return tool.Exit{}, errors.New("exec: no program was named")
	}
	s, name := e.s, cmd.Argv[0]
	if s.level.Isolation == None {
		return tool.Exit{}, denied("exec", name, "this run is read-only, as there is no sandbox: "+s.level.Reason)
	}
	if e.grant.Workspace == effect.Discard {
		return tool.Exit{}, denied("exec", name, "there are no throw-away views on this system")
	}
	dir := cmd.Dir
	if dir == "" {
		dir = e.dir
	}
	if real, err := resolve(filepath.Clean(dir)); err == nil {
		dir = real
	}
	if !within(dir, s.workspace) {
		return tool.Exit{}, denied("exec", name, dir+" is outside the workspace "+s.workspace)
	}
	tmp, err := os.MkdirTemp("", "belay-")
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	defer os.RemoveAll(tmp)
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	argv := append([]string{seatbeltProgram, "-p", s.seatbelt(e.grant.Workspace, tmp, seatbeltRoots)}, cmd.Argv...)
	inside := &env{s: &Sandbox{workspace: s.workspace}, dir: dir}
	inside.s.cfg.Environ = []string{"PATH=" + strings.Join(s.host.path, ":"), "HOME=" + tmp, "TMPDIR=" + tmp, "TERM=dumb", "BELAY_SANDBOX=seatbelt",
		"GIT_TERMINAL_PROMPT=0", "GOPROXY=off", "GOFLAGS=" + s.host.env["GOFLAGS"]}
	cmd.Argv, cmd.Dir = argv, dir
	return inside.unbounded(ctx, cmd)
}

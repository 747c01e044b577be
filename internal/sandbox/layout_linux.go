//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"belay/effect"
	"belay/internal/sandbox/helper"
)

// insideHome is HOME inside. It is the same everywhere, so that build caches stay valid.
const insideHome = "/home/agent"

// etc are the files and directories of /etc that are shown: how to find libraries, certificates, time and
// languages. What is not named does not exist.
var etc = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "os-release", "debian_version",
	"ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs", "pki/ca-trust", "crypto-policies",
	"protocols", "services", "mime.types", "magic", "inputrc", "bash.bashrc", "profile", "terminfo", "fonts", "locale.alias", "locale.conf",
	"python3", "python3.11", "python3.12", "python3.13", "perl", "maven", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "java", "nodejs",
}

// copyBytes is up to which size a file of /etc is copied: that is quicker than to mount it, and to unmount it.
const copyBytes = 16 << 10

// base is what every command sees and none can change. See fresh for the rest.
func (s *Sandbox) base() []helper.Step {
	var steps []helper.Step
	add := func(code helper.Code, flags uint32, a, b string) {
		steps = append(steps, helper.Step{Code: code, Flags: flags, A: a, B: b})
	}
	same := func(path string) {
		info, err := os.Lstat(path)
		if err != nil {
			return
		}
		if info.Mode().Type() == fs.ModeSymlink {
			if target, err := os.Readlink(path); err == nil {
				add(helper.Link, 0, target, path)
			}
			return
		}
		add(helper.Bind, helper.ReadOnly|helper.Optional, path, path)
	}
	for _, dir := range system {
		same(dir)
	}
	for _, name := range etc {
		path := "/etc/" + name
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() <= copyBytes {
			if content, err := os.ReadFile(path); err == nil {
				add(helper.File, 0o644, string(content), path)
			}
			continue
		}
		same(path)
	}
	uid, gid, name := s.insideIDs()
	passwd := "root:x:0:0:root:" + insideHome + ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
	group := "root:x:0:\nnogroup:x:65534:\n"
	if uid != 0 {
		passwd = fmt.Sprintf("%s:x:%d:%d:%s:%s:/bin/sh\n", name, uid, gid, name, insideHome) + passwd
	}
	if gid != 0 {
		group = fmt.Sprintf("%s:x:%d:\n", name, gid) + group
	}
	add(helper.File, 0o644, passwd, "/etc/passwd")
	add(helper.File, 0o644, group, "/etc/group")
	add(helper.File, 0o644, "127.0.0.1 localhost\n::1 localhost\n", "/etc/hosts")
	add(helper.File, 0o644, "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n", "/etc/nsswitch.conf")

	add(helper.Tmpfs, 0, "/dev", "mode=0755,size=64k,nr_inodes=64")
	for _, node := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		add(helper.Bind, helper.Devices|helper.NoExec, "/dev/"+node, "/dev/"+node)
	}
	add(helper.Dir, 0, "/dev/pts", "")
	add(helper.Link, 0, "pts/ptmx", "/dev/ptmx")
	add(helper.Link, 0, "/proc/self/fd", "/dev/fd")
	add(helper.Link, 0, "/proc/self/fd/0", "/dev/stdin")
	add(helper.Link, 0, "/proc/self/fd/1", "/dev/stdout")
	add(helper.Link, 0, "/proc/self/fd/2", "/dev/stderr")
	add(helper.Dir, 0, "/dev/shm", "")
	add(helper.Seal, 0, "/dev", "")
	add(helper.Proc, 0, "/proc", "")

	add(helper.Dir, 0, "/tmp", "")
	add(helper.Dir, 0, "/run", "")
	steps = append(steps, s.certificateSteps()...)
	if !s.showsVarTmp() {
		add(helper.Link, 0, "/tmp", "/var/tmp")
	}
	add(helper.Dir, 0, insideHome, "")
	return steps
}

// fresh is what every command gets anew, and what may lie in there.
func (s *Sandbox) fresh() []helper.Step {
	var steps []helper.Step
	add := func(code helper.Code, flags uint32, a, b string) {
		steps = append(steps, helper.Step{Code: code, Flags: flags, A: a, B: b})
	}
	add(helper.Pts, 0, "/dev/pts", "")
	add(helper.Tmpfs, helper.NoExec, "/dev/shm", "mode=1777,size=256m,nr_inodes=10000")
	add(helper.Tmpfs, 0, "/tmp", "mode=1777,nr_inodes=500000,size="+strconv.FormatInt(s.cfg.TmpBytes, 10))
	if s.showsVarTmp() {
		add(helper.Tmpfs, 0, "/var/tmp", "mode=1777,nr_inodes=500000,size="+strconv.FormatInt(s.cfg.TmpBytes, 10))
	}
	add(helper.Tmpfs, 0, insideHome, "size=256m,nr_inodes=50000"+s.owned())
	add(helper.File, 0o644, s.gitConfig(), insideHome+"/.gitconfig")
	for _, root := range s.host.readable {
		add(helper.Bind, helper.ReadOnly|helper.Optional, root, root)
	}
	for _, path := range s.host.masked {
		add(helper.Mask, helper.Optional, path, "")
	}
	return append(steps, s.grantSteps(false)...)
}

// showsVarTmp says whether something of the host is mounted below /var/tmp, which is else only another name of /tmp.
func (s *Sandbox) showsVarTmp() bool {
	for _, path := range slices.Concat([]string{s.workspace, s.home, s.host.modCache}, s.host.readable, s.host.masked) {
		if within(path, "/var/tmp") {
			return true
		}
	}
	return false
}

// placeable says why commands cannot work in a workspace, or can work but with something else than they must find.
func placeable(ws string) error {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if within(ws, dir) && (ws == "/dev/shm" || !within(ws, "/dev/shm")) {
			return fmt.Errorf("the workspace cannot be %s: what a command finds in %s is its own; choose a project directory", ws, dir)
		}
	}
	for _, dir := range slices.Concat(system, []string{"/etc", "/dev", "/proc", insideHome}) {
		real, err := filepath.EvalSymlinks(dir)
		if within(dir, ws) || err == nil && within(real, ws) {
			return fmt.Errorf("the workspace cannot be %s: it would cover %s, which commands need as it is; choose a project directory", ws, dir)
		}
	}
	return nil
}

// owned are the options of a tmpfs that is the command's own.
func (s *Sandbox) owned() string {
	uid, gid, _ := s.insideIDs()
	if s.level.ids != allIDs {
		return ",mode=0700"
	}
	return fmt.Sprintf(",mode=0700,uid=%d,gid=%d", uid, gid)
}

// insideIDs says as whom commands run.
func (s *Sandbox) insideIDs() (uid, gid int, name string) {
	uid, gid = os.Geteuid(), os.Getegid()
	if s.level.ids == allIDs {
		uid, gid = s.uid, s.gid
	}
	if uid == 0 {
		return uid, gid, "root"
	}
	return uid, gid, "agent"
}

func (s *Sandbox) gitConfig() string {
	name, email := s.cfg.GitName, s.cfg.GitEmail
	if name == "" {
		name = s.host.gitName
	}
	if email == "" {
		email = s.host.gitEmail
	}
	if name == "" || email == "" {
		name, email = "belay", "belay@localhost"
	}
	return fmt.Sprintf("[user]\n\tname = %s\n\temail = %s\n[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n",
		strconv.Quote(name), strconv.Quote(email))
}

// view is how the workspace is shown for one access. from is where it is read from: the workspace, or a copy.
func (s *Sandbox) view(access effect.Access, from string, f found) ([]helper.Step, error) {
	ws := s.workspace
	var steps []helper.Step
	switch access {
	case effect.NoAccess, "":
		return []helper.Step{{Code: helper.Dir, A: ws}, {Code: helper.Mask, A: ws}}, nil
	case effect.ReadOnly:
		steps = append(steps, helper.Step{Code: helper.Bind, Flags: helper.ReadOnly, A: from, B: ws})
	case effect.ReadWrite:
		steps = append(steps, helper.Step{Code: helper.Bind, A: from, B: ws})
	case effect.Discard:
		if from == ws {
			steps = append(steps, helper.Step{Code: helper.Overlay, A: from, B: ws})
		} else {
			steps = append(steps, helper.Step{Code: helper.Bind, A: from, B: ws})
		}
	default:
		return nil, fmt.Errorf("unknown access %q", access)
	}
	pinned := map[string]bool{}
	pinParents := func(path string) {
		var todo []string
		for dir := filepath.Dir(path); dir != ws && within(dir, ws); dir = filepath.Dir(dir) {
			todo = append(todo, dir)
		}
		slices.Reverse(todo) // from the top: a mount over a parent would cover one below it
		for _, dir := range todo {
			if !pinned[dir] {
				pinned[dir] = true
				steps = append(steps, helper.Step{Code: helper.Pin, A: dir})
			}
		}
	}
	if access == effect.ReadWrite {
		held := s.held(f)
		for _, path := range held {
			pinParents(path)
		}
		if within(s.home, ws) {
			pinParents(s.home)
		}
		for _, path := range held {
			steps = append(steps, helper.Step{Code: helper.Pin, Flags: helper.ReadOnly, A: path})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f.special)) {
		if !s.survey.made(f.special[path]) {
			steps = append(steps, helper.Step{Code: helper.Mask, Flags: helper.Optional, A: filepath.Join(ws, path)})
		}
	}
	steps = append(steps, s.grantSteps(true)...)
	steps = append(steps, s.repositorySteps(access)...)
	for _, name := range hidden {
		path := filepath.Join(ws, name)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().Type() == fs.ModeSymlink {
			return nil, fmt.Errorf("%s is a symbolic link: policy files must lie in the workspace itself", path)
		}
		if err == nil {
			steps = append(steps, helper.Step{Code: helper.Mask, A: path})
		}
	}
	if within(s.home, ws) {
		steps = append(steps, helper.Step{Code: helper.Mask, A: s.home})
	}
	return steps, nil
}

// held are the protected paths that exist, absolute and without symbolic links, those above others first.
func (s *Sandbox) held(f found) []string {
	var held []string
	seen := map[string]bool{}
	for _, rel := range f.protected {
		real, err := filepath.EvalSymlinks(filepath.Join(s.workspace, rel))
		if err != nil || !within(real, s.workspace) || real == s.workspace || seen[real] {
			continue
		}
		seen[real] = true
		held = append(held, real)
	}
	slices.Sort(held)
	return held
}

// precreate makes what a repository may lack and a command must not make: an empty hooks directory is held,
// a missing one could be filled.
func (s *Sandbox) precreate() error {
	git := filepath.Join(s.workspace, ".git")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return nil
	}
	root, err := os.OpenRoot(s.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{".git/hooks", ".git/info"} {
		if err := root.Mkdir(name, 0o755); err == nil {
			if os.Geteuid() == 0 {
				err = root.Lchown(name, s.uid, s.gid)
			}
			if err != nil {
				return err
			}
		} else if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// environ is the environment inside.
func (s *Sandbox) environ(kind cacheKind, additions []string) []string {
	path := s.host.path
	if kind != agentCache {
		path = s.trustedPath().dirs
	}
	_, _, name := s.insideIDs()
	shell := "/bin/sh"
	if exists("/bin/bash") {
		shell = "/bin/bash"
	}
	cache := insideHome + "/.cache"
	env := []string{
		"PATH=" + strings.Join(path, ":"), "HOME=" + insideHome, "USER=" + name, "LOGNAME=" + name, "SHELL=" + shell,
		"TERM=dumb", "TMPDIR=/tmp", "XDG_CACHE_HOME=" + cache, "GOCACHE=" + cache + "/go-build", "npm_config_cache=" + cache + "/npm",
		"GOPATH=" + insideHome + "/go", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
		"GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_PAGER=cat", "BELAY_SANDBOX=namespaces",
	}
	if s.host.modCache != "" {
		env = append(env, "GOMODCACHE="+s.host.modCache)
	}
	for _, name := range passed {
		if v := s.host.env[name]; v != "" {
			env = append(env, name+"="+v)
		}
	}
	if v := s.host.env["GOFLAGS"]; v != "" {
		env = append(env, "GOFLAGS="+v)
	}
	return distinct(append(env, additions...))
}

// distinct leaves of several settings of one name the last one: programs differ in which of them they take.
func distinct(env []string) []string {
	seen := map[string]bool{}
	var out []string
	for i := len(env) - 1; i >= 0; i-- {
		name, _, _ := strings.Cut(env[i], "=")
		if !seen[name] {
			seen[name] = true
			out = append(out, env[i])
		}
	}
	slices.Reverse(out)
	return out
}

package sandbox

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// host is what commands inside need of the machine outside: where its toolchains and caches are.
type host struct {
	path     []string          // directories of PATH, resolved, in order
	foreign  []string          // those of them that the workspace holds or leads to: what is in them is the agent's
	readable []string          // roots outside the workspace that are shown read-only and that file tools may read
	masked   []string          // paths under them that are hidden: credentials
	modCache string            // Go's module cache, "" where there is none
	goCache  string            // Go's build cache, "" where there is none
	env      map[string]string // what is passed on from the environment
	// repository is where the workspace's repository lies when that is elsewhere, and the parts of it that commands may write.
	repository      string
	repositoryParts []string
	gitName         string
	gitEmail        string
}

// system are the directories that every command sees. They may hold programs, never secrets.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// passed are the environment variables that go inside as they are, unless they name the workspace. None of them holds
// a secret or makes a program load code; all others, such as GOENV, PYTHONPATH, NODE_OPTIONS, MAKEFLAGS, GIT_ and LD_
// variables, stay outside.
var passed = []string{
	"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_TIME", "LC_NUMERIC", "LC_COLLATE", "TZ",
	"CGO_ENABLED", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOROOT",
	"PYENV_ROOT", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "RUSTUP_HOME", "RUST_BACKTRACE", "NVM_DIR", "JAVA_HOME", "SOURCE_DATE_EPOCH",
}

// tools are programs whose installation is looked for behind the links on PATH.
var tools = []string{"go", "node", "python3", "ruby", "java", "rustc", "cargo", "deno", "bun", "zig", "php", "perl"}

// credentials are files that lie in toolchain homes and module caches and are nobody's business.
var credentials = []string{"credentials", "credentials.toml", ".netrc", ".npmrc", ".pypirc", "auth.json", ".git-credentials", "etc/npmrc", "cache/vcs"}

func discover(environ []string, userHome, workspace, home string) host {
	h := host{env: map[string]string{}}
	for _, name := range passed {
		if v := lookup(environ, name); v != "" && !strings.Contains(v, workspace) {
			h.env[name] = v
		}
	}
	if flags := harmlessFlags(lookup(environ, "GOFLAGS")); flags != "" {
		h.env["GOFLAGS"] = flags
	}
	var roots []string
	add := func(dir string) bool {
		real, err := resolveDir(dir)
		if err != nil || !showable(real, userHome, workspace, home) {
			return false
		}
		roots = append(roots, real)
		return true
	}
	for _, dir := range filepath.SplitList(lookup(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := resolveDir(dir)
		if err != nil {
			continue
		}
		if !passes(dir, workspace) {
			h.foreign = slices.DeleteFunc(h.foreign, func(f string) bool { return f == real }) // it has another name too
		} else if !slices.Contains(h.path, real) {
			h.foreign = append(h.foreign, real)
		}
		if slices.Contains(h.path, real) {
			continue
		}
		if within(real, workspace) || inSystem(real) {
			h.path = append(h.path, real)
			continue
		}
		if add(installation(real, userHome)) || add(real) {
			h.path = append(h.path, real)
		}
	}
	for _, name := range tools {
		for _, dir := range h.path {
			real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			if d := filepath.Dir(real); !inSystem(d) && !within(d, workspace) && !slices.ContainsFunc(roots, func(r string) bool { return within(d, r) }) {
				// A link in the workspace may be the agent's: it shows a toolchain (that of a virtual environment)
				// and not whatever directory it names.
				if up := installation(d, userHome); up != d && add(up) || slices.Contains(h.foreign, dir) {
					continue
				}
				add(d)
			}
		}
	}
	for _, name := range []string{"GOROOT", "PYENV_ROOT", "RUSTUP_HOME", "NVM_DIR", "JAVA_HOME"} {
		if dir := filepath.Clean(h.env[name]); h.env[name] != "" && (passes(dir, workspace) || !add(dir) && !inSystem(dir)) {
			delete(h.env, name)
		}
	}
	if dir := filepath.Join(userHome, ".rustup"); h.env["RUSTUP_HOME"] == "" && userHome != "" && add(dir) {
		h.env["RUSTUP_HOME"] = dir
	}
	goPath := lookup(environ, "GOPATH")
	if i := strings.IndexRune(goPath, filepath.ListSeparator); i >= 0 {
		goPath = goPath[:i]
	}
	if goPath == "" && userHome != "" {
		goPath = filepath.Join(userHome, "go")
	}
	modCache := lookup(environ, "GOMODCACHE")
	if modCache == "" && goPath != "" {
		modCache = filepath.Join(goPath, "pkg", "mod")
	}
	if real, err := resolveDir(modCache); modCache != "" && err == nil && !passes(modCache, workspace) && add(real) {
		h.modCache = real
	}
	goCache := lookup(environ, "GOCACHE")
	if goCache == "" {
		if xdg := lookup(environ, "XDG_CACHE_HOME"); xdg != "" {
			goCache = filepath.Join(xdg, "go-build")
		} else if userHome != "" {
			goCache = filepath.Join(userHome, ".cache", "go-build")
		}
	}
	// Nothing that a command can write may be the host's cache: neither may lie in the other.
	if real, err := resolveDir(goCache); filepath.IsAbs(goCache) && err == nil && !passes(goCache, workspace) &&
		!within(workspace, real) && !within(real, home) && !within(home, real) {
		h.goCache = real
	}
	if repository, own := worktreeRepository(workspace); repository != "" && add(repository) {
		h.repository, h.repositoryParts = repository, []string{"objects", "refs", "logs", own}
	} else if repository := linkedRepository(workspace); repository != "" && add(repository) {
		h.repository, h.repositoryParts = repository, []string{"."}
	}
	h.readable = outermost(roots)
	for _, root := range h.readable {
		for _, name := range credentials {
			if p := filepath.Join(root, name); exists(p) {
				h.masked = append(h.masked, p)
			}
		}
		if within(home, root) {
			h.masked = append(h.masked, home)
		}
	}
	h.gitName, h.gitEmail = gitIdentity(filepath.Join(userHome, ".gitconfig"))
	return h
}

// passes says whether the way to path, link by link, leads through dir: then who can write dir decides where it ends.
// Both are absolute, and dir is free of links.
func passes(path, dir string) bool {
	if !filepath.IsAbs(path) {
		return true // it ends wherever one stands
	}
	top := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := top, filepath.Clean(path)[len(top):]
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		at = filepath.Join(at, name)
		if within(at, dir) {
			return true
		}
		target, err := os.Readlink(at)
		if err != nil {
			continue // no link
		}
		if links++; links > 255 {
			return true
		}
		at = filepath.Dir(at)
		if filepath.IsAbs(target) {
			target = target[len(filepath.VolumeName(target)):]
			at = top
		}
		rest = strings.Trim(target, string(filepath.Separator)) + string(filepath.Separator) + rest
	}
	return false
}

// worktreeRepository is the repository that a linked git worktree belongs to, "" where the workspace is none. The
// file .git is the workspace's and could name anything; so what it names must name it in turn.
func worktreeRepository(workspace string) (repository, own string) {
	read := func(path string) string {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
			return ""
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	link := filepath.Join(workspace, ".git")
	dir, ok := strings.CutPrefix(read(link), "gitdir: ")
	if !ok {
		return "", ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workspace, dir)
	}
	dir, err := resolveDir(dir)
	if err != nil {
		return "", ""
	}
	back := read(filepath.Join(dir, "gitdir"))
	if back != "" && !filepath.IsAbs(back) {
		back = filepath.Join(dir, back)
	}
	if real, err := filepath.EvalSymlinks(back); err != nil || real != link {
		return "", ""
	}
	common := filepath.Dir(filepath.Dir(dir))
	if filepath.Base(filepath.Dir(dir)) != "worktrees" || !exists(filepath.Join(common, "objects")) {
		return "", ""
	}
	return common, filepath.Join("worktrees", filepath.Base(dir))
}

// linkedRepository is the repository that the link .git in the workspace names, "" where it is none or lies inside. No
// command can leave such a link behind, nor change it.
func linkedRepository(workspace string) string {
	link := filepath.Join(workspace, ".git")
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		return ""
	}
	dir, err := resolveDir(link)
	if err != nil || within(dir, workspace) {
		return ""
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if !exists(filepath.Join(dir, name)) {
			return ""
		}
	}
	return dir
}

// showable says whether a directory is a toolchain's rather than a person's: a home, or anything that holds
// one, the state of belay or the workspace, is not shown because some PATH names it.
func showable(dir, userHome, workspace, home string) bool {
	if filepath.Dir(dir) == dir || inSystem(dir) || within(dir, home) {
		return false
	}
	for _, kept := range []string{userHome, workspace, home} {
		if kept == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(kept); err == nil {
			kept = real
		}
		if within(kept, dir) {
			return false
		}
	}
	if within(dir, workspace) {
		return false
	}
	for _, never := range []string{"/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/home", "/root"} {
		if dir == never || (within(dir, never) && slices.Contains([]string{"/etc", "/proc", "/sys", "/dev", "/run"}, never)) {
			return false
		}
	}
	return true
}

func inSystem(dir string) bool {
	return slices.ContainsFunc(system, func(s string) bool { return within(dir, s) })
}

// installation is the whole of the toolchain whose programs lie in bin: the directory above it where that looks
// like one and is not a place where all kinds of things are kept.
func installation(bin, userHome string) string {
	up := filepath.Dir(bin)
	switch filepath.Base(bin) {
	case "bin", "sbin", "shims":
	default:
		return bin
	}
	for _, shared := range []string{"", ".local", ".cargo", "go"} {
		if up == filepath.Join(userHome, shared) {
			return bin
		}
	}
	if strings.HasSuffix(bin, "/shims") {
		return up
	}
	for _, part := range []string{"lib", "libexec", "pkg", "share", "versions"} {
		if exists(filepath.Join(up, part)) {
			return up
		}
	}
	return bin
}

// outermost sorts roots and leaves out those that lie in another.
func outermost(roots []string) []string {
	slices.SortFunc(roots, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	var out []string
	for _, r := range roots {
		if !slices.ContainsFunc(out, func(o string) bool { return within(r, o) }) {
			out = append(out, r)
		}
	}
	return out
}

var harmless = lazy(`^--?(buildvcs|mod|tags|trimpath|p|race|count|short|v|vet|timeout)(=[\w.,:-]*)?$`)

// harmlessFlags keeps the Go flags that start no program and read no other file.
func harmlessFlags(flags string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(flags), func(f string) bool { return !harmless().MatchString(f) }), " ")
}

// gitIdentity reads name and email of the user section, and nothing else: the rest of the file may start
// programs or hold credentials.
func gitIdentity(file string) (name, email string) {
	f, err := os.Open(file)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	section := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(strings.Trim(line, "[] \t"))
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != "user" {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "name":
			name = value
		case "email":
			email = value
		}
	}
	return name, email
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/tool"
)

// Verifiers throw away what they compile. So that the standard library is not compiled each time where the host's build
// cache lacks it, belay compiles it once, from the toolchain's own sources and with nothing of a project in sight, into
// layers that are never written again:
//
//	$BELAY_HOME/cache/go-std/<hash of `go version`>/<number>/cache   a build cache, over those of smaller numbers
//	                                               /<number>/for     what was asked for
//
// The only thing that a project decides is which packages, by names that the toolchain must know.

// standardLibrary is what a sandbox knows of these layers.
type standardLibrary struct {
	mu       sync.Mutex
	looked   map[string]bool // the build flags for which it was made sure that everything is there
	building string          // in the sandbox that compiles: the directory of the new layer

	found struct {
		sync.Mutex
		layers []string
	}
}

func (l *standardLibrary) layers() []string {
	l.found.Lock()
	defer l.found.Unlock()
	return slices.Clone(l.found.layers)
}

// maxLayers is how many layers one version of Go gets before all are made anew as one.
const maxLayers = 6

var (
	buildsGo = lazy(`\bgo\s+(test|vet|build|run|install|generate)\b`)
	usesGo   = lazy(`\bgo\s`)
	wantRace = lazy(`(^|[\s"'=])--?race\b`)
	// inSource matches a package that other code can import.
	inSource = lazy(`^[a-z][a-z0-9]*(/[a-z][a-z0-9]*)*$`)
)

// prepareGo makes sure, before the first command that needs it, that the standard library is compiled. That it cannot
// be is no error: then the command does it.
func (e *env) prepareGo(ctx context.Context, dir string, argv []string) error {
	s, line := e.s, strings.Join(argv, " ")
	switch {
	case !s.level.Overlay:
		return nil // no layers
	case e.cache == verifyCache && (usesGo().MatchString(line) || exists(filepath.Join(dir, "go.mod"))):
	case e.cache == agentCache && buildsGo().MatchString(line) && e.grant.Workspace != effect.NoAccess:
	default:
		return nil
	}
	flags := ""
	if wantRace().MatchString(line + " " + s.host.env["GOFLAGS"]) {
		flags = "-race"
	}
	s.std.mu.Lock()
	defer s.std.mu.Unlock()
	if s.std.looked[flags] {
		return nil
	}
	if err := s.compileStandardLibrary(ctx, dir, flags); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.progress(fmt.Sprintf("the standard library is compiled again by each verification, since it could not be done beforehand: %v", err))
	}
	if s.std.looked == nil {
		s.std.looked = map[string]bool{}
	}
	s.std.looked[flags] = true
	return nil
}

func (s *Sandbox) progress(what string) {
	if s.cfg.Progress != nil {
		s.cfg.Progress(what)
	}
}

// compileStandardLibrary adds a layer with the packages that the project in dir uses, unless they are there already.
func (s *Sandbox) compileStandardLibrary(ctx context.Context, dir, flags string) error {
	if !s.hasProgram("go") {
		return nil
	}
	root := filepath.Join(s.home, "cache", "go-std")
	if err := os.MkdirAll(filepath.Join(root, "none"), 0o755); err != nil {
		return err
	}
	clean := s.besides(filepath.Join(root, "none"))
	defer clean.Close()
	version, err := clean.goOutput(ctx, effect.ReadOnly, "", "go version")
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(version))
	root = filepath.Join(root, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	s.findLayers(root)
	stale, err := s.stale(ctx, dir, flags)
	if err != nil || len(stale) == 0 {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	s.progress("building the standard library for the verifiers, once")
	if err := flock(ctx, lock); err != nil {
		return err
	}
	if s.findLayers(root) { // somebody else was quicker
		if stale, err = s.stale(ctx, dir, flags); err != nil || len(stale) == 0 {
			return err
		}
	}
	asked := []byte(strings.Join(append([]string{flags, s.host.env["GOFLAGS"]}, stale...), "\n"))
	for _, layer := range s.std.layers() {
		if before, err := os.ReadFile(filepath.Join(filepath.Dir(layer), "for")); err == nil && bytes.Equal(before, asked) {
			return nil // that did not help: what these packages are built with is out of our sight
		}
	}
	if layers := s.std.layers(); len(layers) >= maxLayers {
		for _, layer := range layers {
			if err := os.RemoveAll(filepath.Dir(layer)); err != nil {
				return err
			}
		}
		s.findLayers(root)
	}
	known, err := clean.goOutput(ctx, effect.ReadOnly, "", "go list std")
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(known), func(name string) bool {
		return !inSource().MatchString(name) || slices.Contains(strings.Split(name, "/"), "internal") || strings.HasPrefix(name, "vendor/") ||
			name != "testing" && !slices.Contains(stale, name)
	})
	return s.addLayer(ctx, root, flags, packages, asked)
}

// addLayer compiles packages of the standard library, and what tests and vets them, in a module of belay's own.
func (s *Sandbox) addLayer(ctx context.Context, root, flags string, packages []string, asked []byte) (err error) {
	building := filepath.Join(root, "new")
	remove := func() error {
		if err := tidyAway(filepath.Join(building, "work")); err != nil {
			return err
		}
		return os.RemoveAll(building)
	}
	if err := remove(); err != nil { // of a process that died
		return err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	module := filepath.Join(building, "module")
	var imports strings.Builder
	for _, name := range packages {
		fmt.Fprintf(&imports, "import _ %q\n", name)
	}
	for _, d := range []string{module, filepath.Join(building, "cache"), filepath.Join(building, "work")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"go.mod":      "module standard\n\ngo 1.21\n",
		"lib.go":      "// Package standard imports what is to be compiled.\npackage standard\n\n" + imports.String(),
		"lib_test.go": "package standard\n\nimport \"testing\"\n\nfunc TestNothing(t *testing.T) {}\n",
	} {
		if err := replaceFile(filepath.Join(module, name), []byte(content)); err != nil {
			return err
		}
	}
	compiler := s.besides(module)
	defer compiler.Close()
	compiler.std.building = building
	compiler.std.found.layers = s.std.layers()
	line := fmt.Sprintf("umask 022; go build %[1]s . && go vet %[1]s . && go test %[1]s .", flags)
	if out, err := compiler.goOutput(ctx, effect.ReadOnly, "", line); err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(out))
	}
	if err := errors.Join(tidyAway(filepath.Join(building, "work")), os.RemoveAll(module)); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(building, "for"), asked); err != nil {
		return err
	}
	if err := syncFiles(building); err != nil {
		return err
	}
	next := 1
	for _, layer := range s.std.layers() {
		if n, err := strconv.Atoi(filepath.Base(filepath.Dir(layer))); err == nil {
			next = max(next, n+1)
		}
	}
	if err := os.Rename(building, filepath.Join(root, strconv.Itoa(next))); err != nil {
		return err
	}
	s.findLayers(root)
	return nil
}

// findLayers looks which layers there are, and says whether that is news.
func (s *Sandbox) findLayers(root string) bool {
	entries, _ := os.ReadDir(root)
	var numbers []int
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && exists(filepath.Join(root, entry.Name(), "for")) {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(b, a) })
	var layers []string
	for _, n := range numbers {
		layers = append(layers, filepath.Join(root, strconv.Itoa(n), "cache"))
	}
	s.std.found.Lock()
	defer s.std.found.Unlock()
	news := !slices.Equal(layers, s.std.found.layers)
	s.std.found.layers = layers
	return news
}

// stale lists the packages of the standard library that the project in dir uses and that no layer holds. Go finds
// that out without running anything of the project, in a view whose changes are thrown away.
func (s *Sandbox) stale(ctx context.Context, dir, flags string) ([]string, error) {
	const format = `{{if .Standard}}{{if .Stale}}{{.ImportPath}}{{end}}{{end}}`
	list := func(what string) (string, error) {
		return s.goOutput(ctx, effect.Discard, dir, fmt.Sprintf("go list -e %s -deps -test -f '%s' %s 2>/dev/null", flags, format, what))
	}
	out, err := list("./...")
	if ctx.Err() == nil && err != nil { // there is no module here, or a broken one
		out, err = list("testing fmt errors strings strconv os bytes sort time sync")
	}
	if err != nil {
		return nil, err
	}
	names := strings.Fields(out)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// listTime is far more than listing packages takes.
const listTime = 2 * time.Minute

// goOutput runs a shell line as verifiers run, with this sandbox's layers, and gives what it printed.
func (s *Sandbox) goOutput(ctx context.Context, access effect.Access, dir, line string) (string, error) {
	kind, limit := verifyCache, listTime
	if s.std.building != "" {
		kind, limit = stdCache, 0
	}
	var out bytes.Buffer
	e := s.env(effect.Grant{Workspace: access}, dir, kind)
	exit, err := e.exec(ctx, Call{Command: tool.Command{Argv: []string{"sh", "-c", line}, Dir: dir, Output: &out, Timeout: limit}})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("`%s` ended with code %d", line, exit.Code)
	}
	return out.String(), err
}

// besides is a sandbox around a directory of belay's own: it has the verifiers' toolchains, and nothing of the project.
func (s *Sandbox) besides(workspace string) *Sandbox {
	other := &Sandbox{workspace: workspace, home: s.home, userHome: s.userHome, level: s.level, host: s.host, cfg: s.cfg, helpers: &helpers{}}
	other.cfg.Workspace, other.cfg.Protect, other.cfg.Progress, other.cfg.Network = workspace, nil, nil, Network{}
	other.uid, other.gid = os.Geteuid(), os.Getegid()
	other.trusted = s.trustedPath()
	other.trustedOnce.Do(func() {})
	other.host.env = map[string]string{}
	for name, value := range s.host.env {
		if name == "GOFLAGS" { // -mod and the like mean the project
			value = strings.Join(slices.DeleteFunc(strings.Fields(value), func(f string) bool { return !onStandard().MatchString(f) }), " ")
		}
		other.host.env[name] = value
	}
	return other
}

// onStandard matches the flags that make another standard library.
var onStandard = lazy(`^--?(tags|trimpath|race|p)(=|$)`)

// flock waits for a lock, and no longer than the context.
func flock(ctx context.Context, f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tidyAway removes an overlay's work directory, parts of which the kernel makes without any permission.
func tidyAway(work string) error {
	if err := tidy(filepath.Join(work, "work")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(work)
}

// syncFiles waits until everything that was written to the file system of path is on the disk: a layer must not come out
// of a power failure with holes.
func syncFiles(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// hasProgram says whether verifiers find a program of this name.
func (s *Sandbox) hasProgram(name string) bool {
	for _, dir := range s.host.path {
		if !slices.Contains(s.host.foreign, dir) && exists(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}

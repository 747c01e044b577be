// Package sandbox makes only the granted effects possible, in files and in processes, and says which isolation it obtained.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"belay/effect"
	"belay/internal/sandbox/egress"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

// Isolation is a kind of boundary around commands.
type Isolation string

const (
	// Namespaces is a new root, user, process, network and host name space for every command.
	Namespaces Isolation = "namespaces"
	// Seatbelt is a profile of macOS's sandbox.
	Seatbelt Isolation = "seatbelt"
	// Off is no boundary, because a person wants none.
	Off Isolation = "off"
	// None is no boundary: commands are refused and files can only be read.
	None Isolation = "none"
)

// Level is what was really obtained on this machine.
type Level struct {
	Isolation Isolation
	Holds     []string // the layers that hold, in words: "own root", "system call filter", …
	Lacks     []string // what this sandbox does not limit, in words
	Reason    string   // why there is no isolation and what to do about it; empty with isolation
	Landlock  bool     // the kernel holds a second time what the mounts hold
	Overlay   bool     // throw-away views and warm caches need no copy

	Groups []string // the cgroup controllers that limit calls: "memory", "pids"

	ids ids
}

// ids is how user ids inside relate to those outside.
type ids int

const (
	ownID  ids = iota // one's own id only
	allIDs            // all ids, so that a command can be the workspace's owner
)

// Name says in two words how much was obtained: "full", or what is missing.
func (l Level) Name() string {
	switch {
	case l.Isolation == None:
		return "none"
	case l.Isolation == Seatbelt || l.Isolation == Off:
		return string(l.Isolation)
	case !l.Landlock && len(l.Groups) < 2:
		return "no landlock, no cgroup"
	case !l.Landlock:
		return "no landlock"
	case len(l.Groups) < 2:
		return "no cgroup"
	}
	return "full"
}

func (l Level) String() string {
	if l.Isolation == Off {
		return "off: commands run without a sandbox"
	}
	if l.Isolation == None {
		return fmt.Sprintf("none: %s", l.Reason)
	}
	return fmt.Sprintf("%s: %s; not limited: %s", l.Isolation, strings.Join(l.Holds, ", "), strings.Join(l.Lacks, ", "))
}

var probed struct {
	sync.Mutex
	done  bool
	level Level
}

// Probe builds a sandbox and runs a program in it, once for the process, and says what was obtained.
// A cancelled context gives None for this call only.
func Probe(ctx context.Context) Level {
	probed.Lock()
	defer probed.Unlock()
	if !probed.done {
		level := probe(ctx)
		if ctx.Err() != nil {
			return level
		}
		probed.level, probed.done = level, true
	}
	return probed.level
}

// Config says what a sandbox is for. Workspace and Home are needed.
type Config struct {
	Workspace string   // the directory that commands may see, and change when granted
	Home      string   // belay's private state directory: holds the caches, invisible inside
	Environ   []string // the host's environment, to find toolchains with; nil is os.Environ()
	Protect   []string // paths and globs relative to Workspace that stay read-only in every view, besides the built-in ones
	Read      []string // further directories and files that commands and file tools may read
	Write     []string // further directories that commands may write, where they may write to the workspace or Config says so
	Limits    Limits   // of every call
	Off       bool     // a person wants no sandbox
	Local     []uint16 // ports of services on this machine's loopback that commands of the agent can reach
	Network   Network  // hosts that commands of the agent can be granted
	Debug     bool     // commands may trace their own processes, for debuggers
	TmpBytes  int64    // size of the private /tmp; 0 is DefaultTmpBytes
	// PrivateCache starts the Go build cache empty. Otherwise the host's is readable underneath it, which
	// saves compiling the standard library but shows what else was built on this machine.
	PrivateCache bool
	// GitName and GitEmail are who commits inside; empty takes them from the host's ~/.gitconfig.
	GitName, GitEmail string
	// Progress hears what takes long before a command starts; nil is nobody. Its calls can come from any command's
	// goroutine.
	Progress func(string)
}

// DefaultTmpBytes is the size of /tmp inside: room for a linker, small enough not to hurt a laptop.
const DefaultTmpBytes = 2 << 30

// Sandbox bounds what is done in one workspace. It is safe for concurrent use.
type Sandbox struct {
	workspace string // absolute, symlinks resolved
	home      string // likewise
	userHome  string
	level     Level
	host      host
	cfg       Config
	uid, gid  int // owner of the workspace, where the system knows owners; otherwise -1

	rules       rules
	survey      survey
	read, write []string // granted beside the workspace: absolute, symlinks resolved

	std         standardLibrary
	trustedOnce sync.Once
	trusted     trustedPath
	once        sync.Once
	baseSteps   []helper.Step // what does not depend on the grant
	freshSteps  []helper.Step
	helpers     *helpers
	proxy       *egress.Proxy
}

// New prepares a sandbox. It fails when the workspace is no directory or cannot be separated from Home; that
// no isolation can be had is no error: see Level.
func New(cfg Config) (*Sandbox, error) {
	if cfg.Workspace == "" || cfg.Home == "" {
		return nil, errors.New("sandbox: Workspace and Home are needed")
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.TmpBytes == 0 {
		cfg.TmpBytes = DefaultTmpBytes
	}
	ws, err := resolveDir(cfg.Workspace)
	if err != nil {
		return nil, fmt.Errorf("sandbox: workspace: %w", err)
	}
	if filepath.Dir(ws) == ws {
		return nil, fmt.Errorf("sandbox: the workspace cannot be %s: choose a project directory", ws)
	}
	if err := placeable(ws); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := os.MkdirAll(cfg.Home, 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: making the state directory: %w", err)
	}
	home, err := resolveDir(cfg.Home)
	if err != nil {
		return nil, fmt.Errorf("sandbox: state directory: %w", err)
	}
	if ws == home {
		return nil, fmt.Errorf("sandbox: workspace and state directory are both %s: set BELAY_HOME to another one", ws)
	}
	s := &Sandbox{workspace: ws, home: home, cfg: cfg, level: Probe(context.Background()), helpers: &helpers{}}
	if cfg.Off {
		s.level = Level{Isolation: Off, Lacks: []string{"anything: commands run as you, without a sandbox"}}
	}
	s.userHome = lookup(cfg.Environ, "HOME")
	if s.userHome == "" {
		s.userHome, _ = os.UserHomeDir()
	}
	if s.rules, err = newRules(cfg.Protect, within(s.realHome(), ws)); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	info, err := os.Stat(ws)
	if err != nil {
		return nil, fmt.Errorf("sandbox: workspace: %w", err)
	}
	s.uid, s.gid = ownerOf(info)
	if err := s.network(); err != nil {
		return nil, fmt.Errorf("sandbox: network: %w", err)
	}
	s.waysOut()
	s.host = discover(cfg.Environ, s.userHome, ws, home)
	if err := s.grants(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return s, nil
}

// Close ends the processes that wait for commands. A command can still be run afterwards, only slower.
func (s *Sandbox) Close() { s.helpers.close() }

// Level says which isolation commands get.
func (s *Sandbox) Level() Level { return s.level }

// Env gives what the grant holds, in directory dir of the workspace (absolute; empty is the workspace itself).
// Its commands use the agent's build cache.
func (s *Sandbox) Env(grant effect.Grant, dir string) tool.Env {
	return s.env(grant, dir, agentCache)
}

// VerifierEnv is Env for commands that prove work. They run code that an agent wrote, so that nothing they write to a
// cache outlives them; what they find there was compiled on the host, or by belay from the toolchain's own sources.
// No directory of their PATH, and no program in one, is the workspace's.
func (s *Sandbox) VerifierEnv(grant effect.Grant, dir string) tool.Env {
	return s.env(grant, dir, verifyCache)
}

// VerifierEnvOf is VerifierEnv over a copy of the workspace that is thrown away with each command, after prepare has
// changed it: root is the copy's place outside. The copy is the agent's: what prepare writes must not follow its links.
func (s *Sandbox) VerifierEnvOf(dir string, prepare func(root string) error) tool.Env {
	e := s.env(effect.Grant{Workspace: effect.Discard}, dir, verifyCache)
	e.prepare = prepare
	return e
}

// cacheKind says whose commands use a build cache.
type cacheKind string

const (
	agentCache  cacheKind = "agent"  // kept for the workspace, written by the agent's commands
	verifyCache cacheKind = "verify" // thrown away with each command
	stdCache    cacheKind = "std"    // sees nothing but the toolchain's sources
)

func (s *Sandbox) env(grant effect.Grant, dir string, cache cacheKind) *env {
	if dir == "" {
		dir = s.workspace
	}
	return &env{s: s, grant: grant, dir: filepath.Clean(dir), cache: cache}
}

// cacheDir is where what belongs to the build caches of one kind is kept for this workspace.
func (s *Sandbox) cacheDir(kind cacheKind) string {
	sum := sha256.Sum256([]byte(s.workspace))
	return filepath.Join(s.home, "cache", hex.EncodeToString(sum[:8]), string(kind))
}

// realHome is the person's home without symbolic links.
func (s *Sandbox) realHome() string {
	if real, err := filepath.EvalSymlinks(s.userHome); s.userHome != "" && err == nil {
		return real
	}
	return "/nonexistent"
}

func resolveDir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", real)
	}
	return real, nil
}

func lookup(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// within says whether path is dir or lies in it. Both are absolute and clean.
func within(path, dir string) bool {
	if path == dir {
		return true
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest[0] == filepath.Separator || dir[len(dir)-1] == filepath.Separator)
}

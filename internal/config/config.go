// Package config makes one plain struct of the settings in files, the environment and flags, says for each where it came from, and lets a project that nobody trusts tighten but never widen.
package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belay/internal/smallfile"
	"belay/internal/yaml"
	"belay/journal"
	"belay/policy"
	"belay/verify"
)

// Settings is everything that can be set. A zero field is one that nobody has set.
type Settings struct {
	Model    string            // "provider:name", as --model takes it
	Light    string            // for summaries and explanations
	Judge    string            // for judgements
	Notify   string            // command that tells a person of questions
	Fallback []string          // in the place of a model that cannot be reached
	Mode     policy.Mode       //
	Checks   []verify.Check    // verifiers that are described
	Hidden   []string          // folders of hidden tests, absolute
	Verify   []string          // shell commands that must pass; a person chose each
	Bounds   journal.Bounds    //
	Tools    []string          // the only tools the model gets; nil is all
	Protect  []string          // files and folders that stay as they are; relative to the workspace, with slashes, sorted
	KeyFiles map[string]string // provider to the absolute path of a file with its API key

	From map[string]Origin // by Key.Name: where a value came from; absent where nobody set it
}

// Layer is a kind of source. A later one has the last word.
type Layer int

const (
	Default Layer = iota
	User
	Project
	Environment
	Flag
)

func (l Layer) String() string {
	return [...]string{"default", "user", "project", "environment", "flag"}[l]
}

// Origin says where a value came from.
type Origin struct {
	Layer Layer
	Place string // "FILE:LINE:COL", "BELAY_MODE" or "--mode"; "" for a default
}

// Notice is something that a person must be told: what they, or the project, set is not what happens.
type Notice struct {
	Place string // "FILE:LINE:COL" or the name of a variable
	Key   string // Key.Name, "" where it is about none
	Text  string
}

func (n Notice) String() string { return n.Place + ": " + n.Text }

// Sources says where to look.
type Sources struct {
	Workspace string   // its .belay/config.yaml is the project's; "" is no project
	UserDir   string   // of the user's config.yaml and of what they trust, see UserDir; "" is none
	Environ   []string // as os.Environ; BELAY_* and HOME are read
	Flags     Settings // what was given on the command line; all else zero
	Defaults  Settings // what holds where nobody says anything
	Tools     []string // the names that tools may have; nil is any
}

// FileName is the name of a configuration file, in the user's folder and in a project's .belay.
const FileName = "config.yaml"

// maxFile bounds a configuration file in bytes: a stranger may have made it so that reading it takes long.
const maxFile = 64 << 10

// UserDir is the folder of the user's configuration: $XDG_CONFIG_HOME/belay, else ~/.config/belay.
func UserDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "belay"), nil
	}
	home, err := homeDir(getenv)
	if err != nil {
		return "", fmt.Errorf("no place for belay's configuration (set XDG_CONFIG_HOME): %w", err)
	}
	return filepath.Join(home, ".config", "belay"), nil
}

func homeDir(getenv func(string) string) (string, error) {
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return home, nil
	}
	return os.UserHomeDir()
}

// Load reads all sources. Flags have the last word, then the environment, the project, the user, the defaults;
// the exceptions are in Key.Join. A project that the user does not trust can only tighten, see Key.Untrusted; what
// it cannot do is ignored with a notice. Every mistake in a source is an error that names its place; one in a file
// is a *yaml.Error.
func Load(src Sources) (Settings, []Notice, error) {
	r := reader{src: src, home: homeOf(src.Environ)}
	for _, s := range table {
		if s.given(&src.Defaults) {
			r.take(s, &src.Defaults, Origin{Layer: Default})
		}
	}
	if err := r.user(); err != nil {
		return Settings{}, nil, err
	}
	if err := r.project(); err != nil {
		return Settings{}, nil, err
	}
	if err := r.environment(); err != nil {
		return Settings{}, nil, err
	}
	for _, s := range table {
		if s.given(&src.Flags) {
			r.take(s, &src.Flags, Origin{Layer: Flag, Place: s.key().Flag})
		}
	}
	return r.got, r.relevant(), nil
}

// reader holds what the sources so far have said.
type reader struct {
	src     Sources
	home    string
	got     Settings
	notices []Notice
	advice  Notice // what to do about a project's values that are ignored
}

// take lets a source say what it says.
func (r *reader) take(s setting, from *Settings, origin Origin) {
	s.take(&r.got, from)
	r.note(s, origin)
}

func (r *reader) note(s setting, origin Origin) {
	if r.got.From == nil {
		r.got.From = map[string]Origin{}
	}
	r.got.From[s.key().Name] = origin
}

func (r *reader) tell(place, key, format string, args ...any) {
	r.notices = append(r.notices, Notice{place, key, fmt.Sprintf(format, args...)})
}

// relevant are the notices without those about values that would not have counted anyway.
func (r *reader) relevant() []Notice {
	var kept []Notice
	ignored := false
	for _, n := range r.notices {
		switch {
		case n.Key != "" && r.got.From[n.Key].Layer > Project:
			continue
		case n == r.advice && !ignored:
			continue
		}
		ignored = ignored || n.Key != ""
		kept = append(kept, n)
	}
	return kept
}

// user reads the user's own file.
func (r *reader) user() error {
	dir := r.src.UserDir
	if dir == "" {
		return nil
	}
	if r.src.Workspace != "" && within(resolved(dir), resolved(r.src.Workspace)) {
		r.tell(dir, "", "your own configuration lies in the workspace: an agent that may write there could change it for its next run")
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read your configuration: %w", err)
	}
	defer root.Close()
	path := filepath.Join(dir, FileName)
	data, err := smallfile.Read(root, FileName, maxFile)
	if err != nil && escapes(root) { // a link to where a person keeps such files is theirs to make
		data, err = linked(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read your configuration %s: %w", path, cause(err))
	}
	values, err := r.parse(path, dir, data)
	if err != nil {
		return err
	}
	for _, v := range values {
		r.take(v.setting, &v.settings, Origin{User, v.place})
	}
	return nil
}

// escapes says whether the file in root is a symbolic link.
func escapes(root *os.Root) bool {
	info, err := root.Lstat(FileName)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// linked reads the file that path leads to.
func linked(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return smallfile.Read(root, filepath.Base(real), maxFile)
}

// project reads the project's file as far as the project is trusted.
func (r *reader) project() error {
	if r.src.Workspace == "" {
		return nil
	}
	p, err := ReadProject(r.src.Workspace)
	if err != nil {
		return err
	}
	data, ok := p.Files[FileName]
	if !ok {
		return nil
	}
	path := filepath.Join(p.Workspace, Folder, FileName)
	values, err := r.parse(path, p.Workspace, data)
	if err != nil {
		return err
	}
	verdict := Trust{Dir: r.src.UserDir}.Check(p)
	ignored := false
	for _, v := range values {
		if verdict.Trusted {
			r.take(v.setting, &v.settings, Origin{Project, v.place})
			continue
		}
		taken, complaint, err := v.setting.tighten(&r.got, &v.settings)
		if err != nil {
			return v.node.Errorf("%v", err)
		}
		if taken {
			r.note(v.setting, Origin{Project, v.place})
		}
		if complaint != "" {
			ignored = true
			r.tell(v.place, v.setting.key().Name, "%s", complaint)
		}
	}
	if ignored {
		r.tell(path, "", "this project is not trusted: %s. Its settings may tighten, never widen. Read them, then say `belay trust` if they may decide", verdict.Why)
		r.advice = r.notices[len(r.notices)-1]
	}
	return nil
}

// otherVariables begin with BELAY_ and are no settings.
var otherVariables = []string{"BELAY_HOME", "BELAY_SANDBOX", "BELAY_SANDBOX_HELPER"}

// environment reads the variables. One that is nearly a setting's is a mistake that would go unseen.
func (r *reader) environment() error {
	var known []string
	for _, s := range table {
		if name := s.key().Env; name != "" {
			known = append(known, name)
		}
	}
	variables := slices.Clone(r.src.Environ)
	slices.Sort(variables)
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "BELAY_") || value == "" {
			continue
		}
		i := slices.IndexFunc(table, func(s setting) bool { return s.key().Env == name })
		switch {
		case i >= 0:
			var from Settings
			if err := table[i].parse(&from, value, r.place()); err != nil {
				return fmt.Errorf("%s: %s", name, masked(err.Error()))
			}
			r.take(table[i], &from, Origin{Environment, name})
		case slices.Contains(otherVariables, name) || strings.HasPrefix(name, "BELAY_TEST_"):
		default:
			// The common beginning would make every name a near one.
			if near := nearest(strings.TrimPrefix(name, "BELAY_"), trimmed(known)); near != "" {
				return fmt.Errorf("the variable %s is no setting of belay. Did you mean %s, after BELAY_?", name, near)
			}
			r.tell(name, "", "this variable is no setting of belay, and changes nothing. The settings are %s", strings.Join(known, ", "))
		}
	}
	return nil
}

func trimmed(names []string) []string {
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.TrimPrefix(n, "BELAY_")
	}
	return short
}

func homeOf(environ []string) string {
	home, err := homeDir(func(name string) string {
		for _, v := range environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if err != nil {
		return ""
	}
	return home
}

func (r *reader) place() place {
	return place{home: r.home, workspace: r.src.Workspace, tools: r.src.Tools}
}

// value is what one key of a file says.
type value struct {
	setting  setting
	settings Settings // with this one set
	node     yaml.Node
	place    string
}

// parse reads a file. Relative paths in it start at dir.
func (r *reader) parse(path, dir string, data []byte) ([]value, error) {
	p := r.place()
	p.dir = dir
	values, err := parseFile(path, data, p)
	return values, hideSecrets(err)
}

// resolved is a path without symbolic links, as far as it exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	dir, base := filepath.Dir(abs), filepath.Base(abs)
	if dir == abs {
		return abs
	}
	return filepath.Join(resolved(dir), base)
}

// within says whether path is dir or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// cause takes the path out of an error, for one that says it already.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

package snapshot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"belay/checkpoint"
	"belay/internal/failpoint"
)

// Config says where a store is and what it keeps.
type Config struct {
	Home      string // belay's state, absolute
	Workspace string // absolute, symlinks resolved
	Env       Env    // "" is Encrypt
	Commit    string // of the repository's head, for manifests
}

// Store keeps the files of one workspace as a bare repository in git's format, below belay's state.
type Store struct {
	dir, root      string
	env            Env
	commit         string
	key            []byte
	gitDir, common string // of the user's repository; only read
	own, users     *objects
	skip           map[string]bool // relative paths that are no part of the tree

	mu     sync.Mutex // one look at a time
	top    *node      // the workspace as it was last seen
	pack   *packWriter
	base   *rules
	loaded bool
	cached int // what was read anew since the cache was written
}

// Dir is where the stores of all workspaces lie.
func Dir(home string) string { return filepath.Join(home, "checkpoints") }

// Open opens the store of a workspace and makes it where there is none.
func Open(c Config) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, fmt.Errorf("checkpoint store: %w", err) }
	sum := sha256.Sum256([]byte(c.Workspace))
	s := &Store{dir: filepath.Join(Dir(c.Home), hex.EncodeToString(sum[:8])), root: c.Workspace, env: c.Env, commit: c.Commit, skip: map[string]bool{}}
	if err := os.MkdirAll(filepath.Join(s.dir, "objects", "pack"), 0o700); err != nil {
		return fail(err)
	}
	for _, dir := range []string{Dir(c.Home), s.dir} {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fail(err)
		}
	}
	for _, dir := range []string{"refs/belay", "checkpoints"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return fail(err)
		}
	}
	for name, text := range map[string]string{
		"HEAD":      "ref: refs/heads/none\n",
		"config":    "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n",
		"workspace": c.Workspace + "\n",
	} {
		path := filepath.Join(s.dir, name)
		if _, err := os.Lstat(path); err != nil {
			if err := writeDurably(path, []byte(text), 0o600); err != nil {
				return fail(err)
			}
		}
	}
	var err error
	if s.key, err = loadKey(Dir(c.Home)); err != nil {
		return fail(err)
	}
	s.own = &objects{dir: filepath.Join(s.dir, "objects")}
	if s.gitDir, s.common = gitDirs(c.Workspace); s.common != "" && sha1Repository(s.common) {
		s.users = &objects{dir: filepath.Join(s.common, "objects")}
	}
	if rel, err := filepath.Rel(c.Workspace, c.Home); err == nil && filepath.IsLocal(rel) {
		s.skip[filepath.ToSlash(rel)] = true
	}
	return s, nil
}

// sha1Repository says whether a repository's objects have names like ours.
func sha1Repository(common string) bool {
	text, err := os.ReadFile(filepath.Join(common, "config"))
	return err == nil && !strings.Contains(strings.ToLower(string(text)), "objectformat")
}

// baseRules are those that no folder of the workspace holds.
func (s *Store) baseRules() *rules {
	if s.base != nil {
		return s.base
	}
	r := &rules{}
	if home, err := os.UserConfigDir(); err == nil {
		if text, err := os.ReadFile(filepath.Join(home, "git", "ignore")); err == nil {
			r = &rules{patterns: parseIgnore(text)}
		}
	}
	if s.common != "" {
		if text, err := os.ReadFile(filepath.Join(s.common, "info", "exclude")); err == nil {
			r = &rules{parent: r, patterns: parseIgnore(text)}
		}
	}
	s.base = r
	return r
}

// put keeps an object that is not there yet: borrowed from the user's repository by a hard link, else written.
func (s *Store) put(id objectID, k kind, content func() ([]byte, error)) error {
	if s.own.has(id) || s.borrow(id) {
		return nil
	}
	text, err := content()
	if err != nil {
		return err
	}
	return s.pack.add(id, k, text)
}

// borrow links the file of the user's that holds an object. Where that cannot be done it is written anew.
func (s *Store) borrow(id objectID) bool {
	if s.users == nil {
		return false
	}
	if p, _ := s.users.where(id); p != nil {
		idx := strings.TrimSuffix(p.path, ".pack") + ".idx"
		to := filepath.Join(s.own.dir, "pack", filepath.Base(p.path))
		if err := link(p.path, to); err != nil {
			return false
		}
		if err := link(idx, strings.TrimSuffix(to, ".pack")+".idx"); err != nil {
			os.Remove(to)
			return false
		}
		s.own.reload()
		return s.own.has(id)
	}
	from := s.users.loose(id)
	if _, err := os.Lstat(from); err != nil {
		return false
	}
	to := s.own.loose(id)
	return os.MkdirAll(filepath.Dir(to), 0o700) == nil && link(from, to) == nil
}

func link(from, to string) error {
	if err := os.Link(from, to); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// scan looks at the workspace and makes what is new durable.
func (s *Store) scan(ctx context.Context) (*node, error) {
	if !s.loaded {
		s.loaded, s.top = true, s.readCache()
	}
	s.base = nil
	if old := s.top; old != nil { // rules that are as before keep their identity
		if fresh := s.baseRules(); sameRules(fresh, old.above) {
			s.base = old.above
		}
	}
	s.pack = &packWriter{dir: filepath.Join(s.own.dir, "pack")}
	defer func() { s.pack.drop() }()
	top, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	fresh := len(s.pack.objects)
	if path, err := s.pack.finish(); err != nil {
		return nil, err
	} else if path != "" {
		s.own.reload()
	}
	s.top = top
	if s.cached += fresh; s.cached > 256 {
		s.writeCache()
	}
	return top, nil
}

func sameRules(a, b *rules) bool {
	for ; a != nil && b != nil; a, b = a.parent, b.parent {
		if a.base != b.base || !slices.Equal(a.patterns, b.patterns) {
			return false
		}
	}
	return a == nil && b == nil
}

// Tree keeps the files as they are now, without a checkpoint, and returns the tree's id.
func (s *Store) Tree(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	top, err := s.scan(ctx)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", s.root, err)
	}
	return top.id.String(), nil
}

// Take keeps the workspace as it is now.
func (s *Store) Take(ctx context.Context, n checkpoint.Note) (checkpoint.Manifest, error) {
	return s.TakeUnless(ctx, n, "")
}

// TakeUnless is Take where the tree is another than the given one, and a manifest without an id where it is that one.
func (s *Store) TakeUnless(ctx context.Context, n checkpoint.Note, tree string) (checkpoint.Manifest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	top, err := s.scan(ctx)
	if err != nil {
		return checkpoint.Manifest{}, fmt.Errorf("checkpoint of %s: %w", s.root, err)
	}
	if top.id.String() == tree {
		return checkpoint.Manifest{Tree: tree}, nil
	}
	now := time.Now().UTC()
	random := make([]byte, 2)
	rand.Read(random)
	m := checkpoint.Manifest{V: checkpoint.Version, ID: fmt.Sprintf("c_%012x%x", now.UnixMilli(), random), Run: n.Run, Seq: n.Seq, Turn: n.Turn, Step: n.Step,
		Workspace: s.root, Time: now.Truncate(time.Millisecond), Tree: top.id.String(), Base: s.commit, Reason: n.Reason, Green: n.Green, PlanHash: n.PlanHash,
		Covered: checkpoint.Total{Files: top.files, Bytes: top.bytes}, Uncovered: uncovered(top, "", nil), Effects: n.Effects}
	text, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	ref := filepath.Join(s.dir, "refs", "belay", m.ID)
	if err := os.WriteFile(ref, []byte(m.Tree+"\n"), 0o600); err != nil {
		return m, fmt.Errorf("checkpoint: %w", err)
	}
	failpoint.Hit("checkpoint.before-manifest")
	if err := writeDurably(filepath.Join(s.dir, "checkpoints", m.ID+".json"), append(text, '\n'), 0o600); err != nil {
		return m, fmt.Errorf("checkpoint: %w", err)
	}
	failpoint.Hit("checkpoint.after-manifest")
	return m, nil
}

// maxUncovered is how many paths a manifest names one by one.
const maxUncovered = 1000

func uncovered(n *node, rel string, to []checkpoint.Uncovered) []checkpoint.Uncovered {
	for i := range n.entries {
		e := &n.entries[i]
		switch path := join(rel, e.name); {
		case len(to) >= maxUncovered:
			return to
		case e.why != "":
			to = append(to, checkpoint.Uncovered{Path: path, Bytes: e.bytes, Why: e.why})
		case e.sub != nil:
			to = uncovered(e.sub, path, to)
		}
	}
	return to
}

// Covered says whether the last look at the workspace covered what lies at an absolute path: a file, or a folder with
// all that is in it.
func (s *Store) Covered(path string) bool {
	rel, err := filepath.Rel(s.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.top
	if n == nil {
		return false
	}
	if rel == "." {
		return len(uncovered(n, "", nil)) == 0
	}
	for _, part := range strings.Split(filepath.ToSlash(rel), "/") {
		if n == nil {
			return false
		}
		i, ok := slices.BinarySearchFunc(n.entries, part, func(e entry, name string) int { return strings.Compare(e.name, name) })
		if !ok {
			return true // it was not there: nothing is lost
		}
		if n.entries[i].why != "" {
			return false
		}
		n = n.entries[i].sub
	}
	return n == nil || len(uncovered(n, "", nil)) == 0
}

// Get finds a checkpoint by its id or a unique beginning of it.
func (s *Store) Get(id string) (m checkpoint.Manifest, err error) {
	if !strings.HasPrefix(id, "c_") {
		id = "c_" + id
	}
	names, err := filepath.Glob(filepath.Join(s.dir, "checkpoints", strings.Map(plain, id)+"*.json"))
	switch {
	case err != nil:
		return m, err
	case len(names) == 0 || strings.Map(plain, id) != id || len(id) < 4:
		return m, fmt.Errorf("%s: %w", id, checkpoint.ErrUnknown)
	case len(names) > 1:
		return m, fmt.Errorf("%s fits %d checkpoints: give more of the id: %w", id, len(names), checkpoint.ErrUnknown)
	}
	return readManifest(names[0])
}

// plain drops what no id holds.
func plain(r rune) rune {
	if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

func readManifest(path string) (m checkpoint.Manifest, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil && m.V > checkpoint.Version {
		err = fmt.Errorf("it was made by a later belay (version %d)", m.V)
	}
	if err != nil {
		err = fmt.Errorf("checkpoint %s: %w", strings.TrimSuffix(filepath.Base(path), ".json"), err)
	}
	return m, err
}

// List is every checkpoint of the workspace, oldest first.
func (s *Store) List() ([]checkpoint.Manifest, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "checkpoints", "c_*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	all := make([]checkpoint.Manifest, 0, len(names))
	for _, name := range names {
		m, err := readManifest(name)
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Read is the content of an object, decrypted where it was encrypted.
func (s *Store) Read(id string) ([]byte, error) {
	parsed, err := parseID(id)
	if err != nil {
		return nil, err
	}
	_, content, err := s.own.get(parsed)
	if err != nil {
		return nil, err
	}
	return s.open(content)
}

// Lock keeps other runs out of the workspace until the function that it returns is called, or the process ends. A
// shared lock only says that the store is in use. False says that another process has it.
func (s *Store) Lock(name string, shared bool) (unlock func() error, ok bool, err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("lock the workspace: %w", err)
	}
	if ok, err = lockFile(f, shared); !ok || err != nil {
		f.Close()
		return nil, false, err
	}
	return f.Close, true, nil
}

// Close keeps what was seen for the next process.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cached > 0 {
		s.writeCache()
	}
	return nil
}

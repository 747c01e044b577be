package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"belay/internal/circumvention"
	"belay/internal/committable"
	"belay/internal/sandbox"
	"belay/internal/snapshot"
	"belay/journal"
	"belay/loop"
	"belay/tool"
	"belay/verify"
)

// What is kept of a tree before a run changes it: enough to run its tests as they were, and to see what was done to them.
const (
	maxKeptFile = 1 << 20
	maxKept     = 64 << 20
)

// base keeps the files of a workspace as they were before the run's first change: in the vault, since they may hold secrets.
type base struct {
	workspace, home string
	dir             string // of this run's own
	decides         func(string) bool
}

// kept is what base writes down.
type kept struct {
	Files  map[string]string `json:"files"`  // path -> SHA-256 of the content
	Beside map[string]string `json:"beside"` // what no commit would hold -> digest
}

func newBase(workspace, home, runID string, decides func(string) bool) *base {
	return &base{workspace, home, filepath.Join(home, "vault", "base", runID), decides}
}

func (b *base) evidence() loop.Evidence {
	return loop.Evidence{Keep: b.keep, AsWas: b.asWas, Circumvented: b.circumvented, Commit: b.commit}
}

// keep copies the small text files of the workspace. A file that is too large is not kept: where the run changes one
// that decides what passes, a person is needed.
func (b *base) keep(ctx context.Context) error {
	k := kept{Files: map[string]string{}, Beside: map[string]string{}}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	total := 0
	err := b.walk(ctx, func(name string, content []byte) error {
		if total += len(content); total > maxKept {
			return nil
		}
		sum := sha256.Sum256(content)
		hash := hex.EncodeToString(sum[:])
		k.Files[name] = hash
		return os.WriteFile(filepath.Join(b.dir, hash), content, 0o600)
	})
	if err != nil {
		return err
	}
	_, beside, err := b.lookBeside(ctx)
	if err != nil {
		return err
	}
	for _, i := range beside {
		k.Beside[i.Path] = i.Digest
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "index.json"), data, 0o600)
}

// generated folders hold nothing that anybody writes by hand.
var generated = []string{".git", "node_modules", ".venv", "venv", "target", "__pycache__", ".tox", ".nox", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache", ".nyc_output", ".gradle", "vendor"}

// walk calls with the text files of the workspace.
func (b *base) walk(ctx context.Context, do func(name string, content []byte) error) error {
	root, err := os.OpenRoot(b.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil:
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		case d.IsDir():
			if slices.Contains(generated, d.Name()) || filepath.Join(b.workspace, filepath.FromSlash(name)) == b.home {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > maxKeptFile {
			return nil
		}
		content, err := root.ReadFile(filepath.FromSlash(name))
		if err != nil || !utf8.Valid(content) && !b.decides(name) {
			return nil
		}
		return do(name, content)
	})
}

func (b *base) read() (kept, error) {
	var k kept
	if _, err := os.Stat(b.dir); errors.Is(err, fs.ErrNotExist) { // a fork was the run that it goes on from
		for e, err := range journal.Read(filepath.Join(journal.RunsDir(b.home), filepath.Base(b.dir))) {
			var fork journal.Fork
			if err == nil && e.Type == journal.TypeFork && e.Decode(&fork) == nil {
				b.dir = filepath.Join(filepath.Dir(b.dir), filepath.Base(fork.Parent))
			}
			break
		}
	}
	data, err := os.ReadFile(filepath.Join(b.dir, "index.json"))
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	return k, err
}

func (b *base) content(hash string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(b.dir, hash))
	if sum := sha256.Sum256(data); err == nil && hex.EncodeToString(sum[:]) != hash {
		err = errors.New("it is damaged")
	}
	return data, err
}

// asWas gives files as they were. One that was not there is taken away; but a run's own tests are kept where they
// cannot replace what was there.
func (b *base) asWas(paths []string) (verify.Over, error) {
	over := verify.Over{Put: map[string][]byte{}}
	k, err := b.read()
	if err != nil {
		return over, err
	}
	for _, name := range paths {
		hash, was := k.Files[name]
		if !was {
			over.Remove = append(over.Remove, name)
			continue
		}
		if over.Put[name], err = b.content(hash); err != nil {
			return over, fmt.Errorf("%s: %w", name, err)
		}
	}
	return over, nil
}

// circumvented compares the tree with what it was.
func (b *base) circumvented(ctx context.Context) ([]journal.Evasion, error) {
	k, err := b.read()
	if errors.Is(err, fs.ErrNotExist) { // it was begun by a belay that kept nothing
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now := map[string]bool{}
	var changes []circumvention.Change
	err = b.walk(ctx, func(name string, content []byte) error {
		now[name] = true
		sum := sha256.Sum256(content)
		before, was := k.Files[name]
		if was && before == hex.EncodeToString(sum[:]) {
			return nil
		}
		c := circumvention.Change{Path: name, After: string(content), Added: !was, Decides: b.decides(name)}
		if was {
			old, err := b.content(before)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			c.Before = string(old)
		}
		changes = append(changes, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var tests []string
	for name, hash := range k.Files {
		if b.decides(name) {
			old, err := b.content(hash)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !now[name] {
				changes = append(changes, circumvention.Change{Path: name, Before: string(old), Gone: true, Decides: true})
			}
			tests = append(tests, string(old))
		}
	}
	var found []journal.Evasion
	for _, f := range circumvention.Inspect(changes, tests) {
		found = append(found, journal.Evasion{Kind: f.Kind, File: f.File, Line: f.Line, Text: f.Text, Decisive: f.Decisive})
	}
	return found, nil
}

// commit says what git would commit, and which of what lies beside it the run has written.
func (b *base) commit(ctx context.Context) (string, []journal.Input, error) {
	id, beside, err := b.lookBeside(ctx)
	if err != nil {
		return "", nil, err
	}
	k, err := b.read()
	if errors.Is(err, fs.ErrNotExist) { // nothing that could change the tree was ever allowed
		return id, beside, nil
	}
	if err != nil {
		return "", nil, err
	}
	for i, in := range beside {
		beside[i].Changed = k.Beside[in.Path] != in.Digest && !cached(in.Path)
	}
	return id, beside, nil
}

func (b *base) lookBeside(ctx context.Context) (string, []journal.Input, error) {
	tree, err := committable.Of(ctx, b.workspace, b.home)
	if ctx.Err() != nil {
		return "", nil, ctx.Err()
	}
	if err != nil {
		return "", nil, nil // no git, or a repository that git cannot read: there is no tree to name
	}
	var beside []journal.Input
	for _, name := range tree.Beside {
		digest, err := digestOf(ctx, b.workspace, name)
		if err != nil {
			return "", nil, err
		}
		beside = append(beside, journal.Input{Path: name, Digest: digest})
	}
	return tree.ID, beside, nil
}

func digestOf(ctx context.Context, workspace, name string) (string, error) {
	place := filepath.Join(workspace, filepath.FromSlash(name))
	info, err := os.Lstat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return snapshot.New(place).Digest(ctx)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(place)
		return "link " + target, err
	case !info.Mode().IsRegular():
		return "special", nil
	}
	content, err := os.ReadFile(place)
	if errors.Is(err, fs.ErrPermission) {
		return "unreadable", nil
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}

// cached says that verification does not read what lies there: it has caches of its own.
func cached(name string) bool {
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if slices.Contains([]string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "target", ".coverage", "coverage", ".nyc_output"}, part) {
			return true
		}
	}
	return path.Ext(name) == ".pyc"
}

// laid is the environment of a verifier that sees the tree with other files over it, hidden tests last.
func laid(box *sandbox.Sandbox, dir string, over verify.Over, hidden []string) tool.Env {
	return box.VerifierEnvOf(dir, func(root string) error {
		copied, err := os.OpenRoot(root)
		if err != nil {
			return err
		}
		defer copied.Close()
		for _, name := range over.Remove {
			if err := copied.RemoveAll(filepath.FromSlash(name)); err != nil {
				return err
			}
		}
		for name, content := range over.Put {
			if err := lay(copied, name, content, 0o644); err != nil {
				return err
			}
		}
		for _, folder := range hidden {
			if err := layFolder(copied, folder); err != nil {
				return fmt.Errorf("hidden tests %s: %w", folder, err)
			}
		}
		return nil
	})
}

// lay writes a file, whatever stands in its place.
func lay(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	name = filepath.FromSlash(name)
	if info, err := root.Lstat(name); err == nil {
		if info.Mode().IsRegular() {
			mode = info.Mode().Perm()
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, content, mode)
}

func layFolder(root *os.Root, folder string) error {
	from, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer from.Close()
	return fs.WalkDir(from.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := from.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return lay(root, name, content, info.Mode().Perm())
	})
}

// sums are the hashes of the files as they are now.
func (b *base) sums(ctx context.Context) (map[string]string, error) {
	sums := map[string]string{}
	err := b.walk(ctx, func(name string, content []byte) error {
		sum := sha256.Sum256(content)
		sums[name] = hex.EncodeToString(sum[:])
		return nil
	})
	return sums, err
}

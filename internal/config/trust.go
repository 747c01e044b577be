package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"belay/internal/smallfile"
)

// TrustFile is the name of the list of trusted projects in the user's folder.
const TrustFile = "trust.json"

const maxTrustFile = 16 << 20

// Trust is the list of the projects that a user trusts. A project is its resolved path together with its own
// files for belay as they were: when either differs, the user has to be asked again. The file has mode 0600.
type Trust struct {
	Dir string // UserDir; "" trusts nobody
}

// Record is one trusted project.
type Record struct {
	Workspace string            `json:"workspace"`
	Hash      string            `json:"hash"` // ProjectFiles.Hash
	Files     map[string]string `json:"files"`
	At        time.Time         `json:"at"`
}

type trustFile struct {
	Version  int      `json:"version"`
	Projects []Record `json:"projects"`
}

// Verdict says whether a project is trusted, and why.
type Verdict struct {
	Trusted bool
	Why     string   // in words for a person, without a full stop
	Changed []string // files below .belay that differ from those that were trusted, sorted
}

// Trusted reads a project and checks it.
func (t Trust) Trusted(workspace string) (bool, string) {
	p, err := ReadProject(workspace)
	if err != nil {
		return false, err.Error()
	}
	v := t.Check(p)
	return v.Trusted, v.Why
}

// Check compares a project with what was trusted. What cannot be decided is not trusted.
func (t Trust) Check(p ProjectFiles) Verdict {
	if p.Odd != "" {
		return Verdict{Why: p.Odd}
	}
	all, err := t.List()
	if err != nil {
		return Verdict{Why: err.Error()}
	}
	i := slices.IndexFunc(all, func(r Record) bool { return r.Workspace == p.Workspace })
	if i < 0 {
		return Verdict{Why: "nobody has said so"}
	}
	was, is := all[i].Files, p.Sums()
	if p.Hash() == all[i].Hash {
		return Verdict{Trusted: true, Why: "trusted since " + all[i].At.Local().Format("2006-01-02 15:04")}
	}
	var changed []string
	for name, sum := range is {
		if was[name] != sum {
			changed = append(changed, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return Verdict{Why: "changed since it was trusted: " + strings.Join(changed, ", "), Changed: changed}
}

// List returns what is trusted, sorted by path.
func (t Trust) List() ([]Record, error) {
	if t.Dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(t.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is trusted: %w", err)
	}
	defer root.Close()
	path := filepath.Join(t.Dir, TrustFile)
	info, err := root.Lstat(TrustFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is a %s", kindOf(info.Mode()))
	}
	if err == nil && info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows" { // there, modes say nothing
		err = fmt.Errorf("others may write to it (mode %04o); look through it, then chmod 600 %s", info.Mode().Perm(), path)
	}
	var data []byte
	if err == nil {
		data, err = smallfile.Read(root, TrustFile, maxTrustFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is trusted in %s: %w", path, cause(err))
	}
	all, err := parseTrust(data)
	if err != nil {
		return nil, fmt.Errorf("read what is trusted: %s is damaged: %w. Remove it to trust nobody", path, err)
	}
	return all, nil
}

func parseTrust(data []byte) ([]Record, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var file trustFile
	if err := dec.Decode(&file); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more than one JSON value")
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("its version is %d, and this belay reads 1", file.Version)
	}
	for i, r := range file.Projects {
		if r.Hash != hashOf(r.Files) {
			return nil, fmt.Errorf("the hash of project %d is not that of its files", i+1)
		}
	}
	return file.Projects, nil
}

// Grant trusts a project as it was read.
func (t Trust) Grant(p ProjectFiles, now time.Time) (Record, error) {
	if p.Odd != "" {
		return Record{}, fmt.Errorf("trust %s: %s", p.Workspace, p.Odd)
	}
	if t.Dir != "" && within(resolved(t.Dir), p.Workspace) {
		return Record{}, fmt.Errorf("trust %s: it holds your own configuration %s, so that an agent at work there could trust anything", p.Workspace, t.Dir)
	}
	r := Record{Workspace: p.Workspace, Hash: p.Hash(), Files: p.Sums(), At: now.UTC().Truncate(time.Second)}
	err := t.change(func(all map[string]Record) bool {
		all[r.Workspace] = r
		return true
	})
	return r, err
}

// Revoke trusts a project no more. It says whether it was in the list. The folder need not exist any more.
func (t Trust) Revoke(workspace string) (was bool, err error) {
	path := resolved(workspace)
	err = t.change(func(all map[string]Record) bool {
		_, was = all[path]
		delete(all, path)
		return was
	})
	return was, err
}

// change rewrites the list as a whole. The new file is also the lock: only one process can create it, and it
// becomes the list by its rename.
func (t Trust) change(edit func(map[string]Record) bool) (err error) {
	if t.Dir == "" {
		return errors.New("there is no place for what is trusted: set XDG_CONFIG_HOME or HOME")
	}
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return fmt.Errorf("change what is trusted: %w", err)
	}
	lock := filepath.Join(t.Dir, TrustFile+".lock")
	f, err := create(lock)
	if err != nil {
		return fmt.Errorf("change what is trusted: %w", err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(lock)
		}
	}()
	list, err := t.List()
	if err != nil {
		return err
	}
	all := map[string]Record{}
	for _, r := range list {
		all[r.Workspace] = r
	}
	if !edit(all) {
		f.Close()
		return os.Remove(lock)
	}
	file := trustFile{Version: 1, Projects: []Record{}}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		file.Projects = append(file.Projects, all[path])
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(lock, filepath.Join(t.Dir, TrustFile))
	}
	if err != nil {
		return fmt.Errorf("change what is trusted: %w", err)
	}
	return nil
}

// create makes the lock, waiting a little for another process that holds it.
func create(lock string) (*os.File, error) {
	for tries := 0; ; tries++ {
		f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		if tries == 100 {
			return nil, fmt.Errorf("%s exists: another belay is changing it, or was interrupted; if none is running, remove that file", lock)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

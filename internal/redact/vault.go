package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// vault keeps the values of one run apart from its journal: Home/vault/<run>, a line of JSON for each, readable by
// its owner only. Home/vault/key names values without telling them; it is one for all runs, so that a value has
// one name and a fork goes on with the names it inherits.
type vault struct {
	path string // "" keeps nothing
	key  []byte
}

// record is a line of the vault.
type record struct {
	Name  string `json:"placeholder"`
	Value []byte `json:"value"` // base64: a secret need not be text
	Bare  bool   `json:"bare,omitempty"`
}

const (
	vaultName = "vault"
	keyName   = "key"
	keySize   = 32
)

func (v *vault) open(home, runID string) (err error) {
	v.key = make([]byte, keySize)
	if home == "" {
		_, err = rand.Read(v.key)
		return err
	}
	if runID == "" || !filepath.IsLocal(runID) || filepath.Base(runID) != runID || runID == keyName {
		return fmt.Errorf("vault: %q is no run", runID)
	}
	dir := filepath.Join(home, vaultName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	v.path = filepath.Join(dir, runID)
	for _, file := range []string{v.path, filepath.Join(dir, keyName)} {
		if err := keepPrivate(file); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
	}
	v.key, err = stateKey(filepath.Join(dir, keyName))
	return err
}

// keepPrivate takes a file, where it exists, from everybody but its owner: a copy or a restore may have opened it.
func keepPrivate(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

// stateKey reads the key, or makes it: of several that begin at once, one makes it and all read the same.
func stateKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := make([]byte, keySize)
		if _, err := rand.Read(fresh); err != nil {
			return nil, fmt.Errorf("vault: key: %w", err)
		}
		if err := publish(path, fresh); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("vault: key: %w", err)
		}
		key, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("vault: key: %w", err)
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("vault: the key %s has %d bytes and should have %d: restore it; without it, secrets of earlier runs get other names", path, len(key), keySize)
	}
	return key, nil
}

// publish writes a whole file that did not exist before, durably.
func publish(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	err = os.Link(tmp.Name(), path) // fails where the name is taken, as a rename would not
	if err != nil && !errors.Is(err, fs.ErrExist) {
		if _, taken := os.Lstat(path); taken == nil {
			return nil
		}
		err = os.Rename(tmp.Name(), path) // a file system without links
	}
	return errors.Join(err, syncDir(filepath.Dir(path)))
}

// name is the placeholder of a value. Salt tells values apart that would share one.
func (v *vault) name(value, kind string, salt int) string {
	h := hmac.New(sha256.New, v.key)
	fmt.Fprintf(h, "%d:", salt)
	h.Write([]byte(value))
	return opening + kind + ":" + hex.EncodeToString(h.Sum(nil))[:idLen] + closing
}

// load reads the values. A last line without its end was never relied on and is cut.
func (v *vault) load(take func(name, value string, bare bool)) error {
	if v.path == "" {
		return nil
	}
	data, err := os.ReadFile(v.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	end := bytes.LastIndexByte(data, '\n') + 1
	if end < len(data) {
		if err := os.Truncate(v.path, int64(end)); err != nil {
			return fmt.Errorf("vault: cut a torn end: %w", err)
		}
	}
	number := 0
	for line := range bytes.Lines(data[:end]) {
		number++
		var rec record
		if err := json.Unmarshal(line, &rec); err != nil || placeholderLen(rec.Name) != len(rec.Name) || rec.Name == "" {
			return fmt.Errorf("vault: line %d of %s is damaged: restore the file, or remove that line and do without its secret", number, v.path)
		}
		take(rec.Name, string(rec.Value), rec.Bare)
	}
	return nil
}

// save appends values and returns when they are durable.
func (v *vault) save(records []record) error {
	if v.path == "" || len(records) == 0 {
		return nil
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for _, rec := range records {
		if err := enc.Encode(rec); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
	}
	_, err := os.Stat(v.path)
	fresh := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(v.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		if _, err = f.Write(lines.Bytes()); err == nil {
			err = f.Sync()
		}
		if err != nil {
			err = errors.Join(err, f.Truncate(info.Size())) // half a line would spoil the next one
		}
	}
	if err = errors.Join(err, f.Close()); err == nil && fresh {
		err = syncDir(filepath.Dir(v.path))
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// Package keys finds a provider's API key, in the environment or in a private file, and keeps it from being printed.
package keys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const hidden = "[key]"

// Secret is a key that does not print itself, whatever verb or encoder is used. The zero value is no key.
type Secret struct{ value func() string }

// NewSecret hides a value. It sits behind a function, so that reflection shows an address only.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{func() string { return value }}
}

// Reveal returns the key, "" where there is none. Only what sends it, and what hides it, calls this.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return s.value()
}

// Empty says that there is no key.
func (s Secret) Empty() bool { return s.value == nil }

func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return hidden
}

// GoString hides the key from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("keys.Secret(%q)", s.String()) }

// Format hides the key from every verb.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') {
		_, _ = io.WriteString(f, s.GoString())
		return
	}
	_, _ = io.WriteString(f, s.String())
}

// MarshalText hides the key from every encoder, JSON and YAML among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the key.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// ErrMissing says that there is no key anywhere.
var ErrMissing = errors.New("no API key")

// Config says where to look. The zero value is the real environment.
type Config struct {
	Getenv func(string) string // nil is os.Getenv
	Dir    string              // of the key files; "" is belay/keys in the user's configuration
	Files  map[string]string   // by provider: a file elsewhere, instead of the one in Dir
	Env    []string            // variables that may hold the key, the usual one first; nil is EnvName's alone
}

// EnvName is the variable that holds a provider's key: "ANTHROPIC_API_KEY".
func EnvName(provider string) string {
	return strings.ToUpper(strings.ReplaceAll(provider, "-", "_")) + "_API_KEY"
}

// URLEnvName is the variable that holds a provider's base URL: "OPENAI_BASE_URL".
func URLEnvName(provider string) string { return strings.ToUpper(provider) + "_BASE_URL" }

// Find returns the key of a provider ("anthropic", "openai"): the environment's, else that of the file named after
// the provider, which only its owner may read. The error wraps ErrMissing where there is neither.
func Find(provider string, cfg Config) (Secret, error) {
	if provider == "" || strings.Trim(provider, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return Secret{}, fmt.Errorf("no provider can be called %q", provider)
	}
	getenv := cfg.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	names := cfg.Env
	if len(names) == 0 {
		names = []string{EnvName(provider)}
	}
	for _, name := range names {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return checked(v, name)
		}
	}
	name := names[0]
	dir := cfg.Dir
	if dir == "" {
		base := getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return Secret{}, fmt.Errorf("%w for %s: set %s", ErrMissing, provider, name)
			}
			base = filepath.Join(home, ".config")
		}
		dir = filepath.Join(base, "belay", "keys")
	}
	path := filepath.Join(dir, provider)
	if elsewhere := cfg.Files[provider]; elsewhere != "" {
		path = elsewhere
	}
	v, err := readPrivate(path)
	if errors.Is(err, os.ErrNotExist) {
		return Secret{}, fmt.Errorf("%w for %s: set %s, or write the key to %s (mode 0600)", ErrMissing, provider, name, path)
	}
	if err != nil {
		return Secret{}, err
	}
	return checked(v, path)
}

// readPrivate reads a small file that nobody but its owner can read or change.
func readPrivate(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait
		return "", fmt.Errorf("the key file %s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the key file: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat() // of what was opened, not of what has its name now
	if err != nil {
		return "", fmt.Errorf("read the key file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" { // there, modes say nothing
		return "", fmt.Errorf("the key file %s has mode %04o, so others can read or change it; run: chmod 600 %s", path, mode, path)
	}
	const most = 64 << 10
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", fmt.Errorf("read the key file: %w", err)
	}
	if len(data) > most {
		return "", fmt.Errorf("the key file %s is larger than any key", path)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff")), nil
}

// checked refuses what cannot be sent as a header, without showing it.
func checked(v, where string) (Secret, error) {
	if v == "" {
		return Secret{}, fmt.Errorf("%s is empty: put the key into it", where)
	}
	for _, r := range v {
		if r <= ' ' || r > '~' {
			return Secret{}, fmt.Errorf("%s does not hold one key: there is a space, a line break or a sign that keys do not have", where)
		}
	}
	return NewSecret(v), nil
}

package snapshot

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Env says what is done with files of secrets, such as .env.
type Env string

const (
	Encrypt  Env = "encrypt" // kept encrypted under a key of belay's state (the default)
	LeaveOut Env = "leave_out"
)

// secretFile says that a file's name is one of those that hold secrets.
func secretFile(name string) bool {
	name = strings.ToLower(name)
	for _, ending := range []string{".example", ".sample", ".template", ".dist"} {
		if strings.HasSuffix(name, ending) {
			return false
		}
	}
	return name == ".env" || name == ".envrc" || strings.HasPrefix(name, ".env.")
}

// sealed stands before encrypted content.
const sealed = "belay.sealed.1\n"

// loadKey reads the key of belay's state, or makes it.
func loadKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "key")
	key, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		key = make([]byte, 32)
		rand.Read(key)
		if err := writeDurably(path+".new", key, 0o600); err != nil {
			return nil, err
		}
		if err := os.Link(path+".new", path); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		os.Remove(path + ".new")
		key, err = os.ReadFile(path)
	}
	if err == nil && len(key) != 32 {
		err = fmt.Errorf("%s is no key of 32 bytes", path)
	}
	return key, err
}

func (s *Store) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal encrypts. The same content gives the same bytes: its nonce is a keyed hash of it.
func (s *Store) seal(content []byte) ([]byte, error) {
	gcm, err := s.cipher()
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(content)
	nonce := mac.Sum(nil)[:gcm.NonceSize()]
	return gcm.Seal(append([]byte(sealed), nonce...), nonce, content, nil), nil
}

// open decrypts what seal made, and gives back everything else as it is.
func (s *Store) open(content []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(sealed))
	if !ok {
		return content, nil
	}
	gcm, err := s.cipher()
	if err != nil {
		return nil, err
	}
	if len(rest) < gcm.NonceSize() {
		return content, nil
	}
	plain, err := gcm.Open(nil, rest[:gcm.NonceSize()], rest[gcm.NonceSize():], nil)
	if err != nil {
		return nil, errors.New("it is encrypted under another key than that of this state folder")
	}
	return plain, nil
}

// readRegular reads a file that must be a regular one.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file any more", path)
	}
	if info.Size() < 1<<16 {
		b := make([]byte, info.Size()+1)
		n, err := io.ReadFull(f, b)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return b[:n], nil
		}
		if err != nil {
			return nil, err
		}
		rest, err := io.ReadAll(io.LimitReader(f, limit))
		return append(b, rest...), err
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), limit)) + 512)
	_, err = io.Copy(&b, io.LimitReader(f, limit))
	return b.Bytes(), err
}

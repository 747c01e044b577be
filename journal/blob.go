package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Ref names a blob: content stored once, by the SHA-256 of its bytes.
type Ref struct {
	Hash string `json:"$blob"` // 64 hex characters
	Size int64  `json:"bytes"`
	As   string `json:"as,omitempty"` // "text" for a string value, "json" for any other; "" for raw bytes
}

// inlineMax is the size in bytes above which a payload value becomes a blob.
const inlineMax = 16 << 10

// blobber lets a payload name values that are blobs whatever their size.
type blobber interface{ BlobFields() []string }

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pack encodes a payload and moves its large values into blobs, which put stores. A value that could be
// mistaken for a Ref becomes a blob too, so that no tool argument is ever read as one.
func pack(payload any, put func([]byte) (Ref, error)) (stored, whole json.RawMessage, err error) {
	whole, err = encode(payload)
	if err != nil {
		return nil, nil, err
	}
	if whole[0] != '{' {
		return nil, nil, errNoObject
	}
	var forced []string
	if b, ok := payload.(blobber); ok {
		forced = b.BlobFields()
	}
	if len(whole) <= inlineMax && len(forced) == 0 && !bytes.Contains(whole, []byte(`"$blob"`)) {
		return whole, whole, nil
	}
	stored, err = mapFields(whole, func(name string, value json.RawMessage) (json.RawMessage, error) {
		if name == rawField && !slices.Contains(forced, name) && looksLikeRef(value) {
			return value, nil // a Ref that the writer means as one
		}
		if len(value) <= inlineMax && !slices.Contains(forced, name) && !looksLikeRef(value) {
			return value, nil
		}
		content, as := []byte(value), "json"
		if value[0] == '"' {
			var s string
			if err := json.Unmarshal(value, &s); err != nil {
				return nil, err
			}
			content, as = []byte(s), "text"
		}
		ref, err := put(content)
		if err != nil {
			return nil, err
		}
		ref.As = as
		return encode(ref)
	})
	return stored, whole, err
}

// rawField is the one payload field that holds a Ref on purpose: it stays one when read.
const rawField = "raw"

// unpack puts blobs back in place of the references to them.
func unpack(stored json.RawMessage, get func(Ref) ([]byte, error)) (json.RawMessage, error) {
	if !bytes.Contains(stored, []byte(`"$blob"`)) {
		return stored, nil
	}
	return mapFields(stored, func(name string, value json.RawMessage) (json.RawMessage, error) {
		if !looksLikeRef(value) || name == rawField {
			return value, nil
		}
		var ref Ref
		if err := json.Unmarshal(value, &ref); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		content, err := get(ref)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		if ref.As == "text" {
			return encode(string(content))
		}
		return content, nil
	})
}

func looksLikeRef(value json.RawMessage) bool {
	if len(value) == 0 || value[0] != '{' {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	if _, err := dec.Token(); err != nil {
		return false
	}
	key, err := dec.Token()
	return err == nil && key == "$blob"
}

// refs lists the blobs that a stored payload names.
func refs(stored json.RawMessage) ([]Ref, error) {
	if !bytes.Contains(stored, []byte(`"$blob"`)) {
		return nil, nil
	}
	var found []Ref
	_, err := mapFields(stored, func(_ string, value json.RawMessage) (json.RawMessage, error) {
		if looksLikeRef(value) {
			var ref Ref
			if err := json.Unmarshal(value, &ref); err != nil {
				return nil, err
			}
			found = append(found, ref)
		}
		return value, nil
	})
	return found, err
}

var errNoObject = errors.New("a payload is a JSON object")

// mapFields rewrites the top-level values of a JSON object and keeps their order.
func mapFields(object json.RawMessage, f func(string, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errNoObject
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for first := true; dec.More(); first = false {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := tok.(string)
		if !ok {
			return nil, errNoObject
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if value, err = f(name, value); err != nil {
			return nil, err
		}
		key, err := encode(name)
		if err != nil {
			return nil, err
		}
		if !first {
			out.WriteByte(',')
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}
	if _, err := dec.Token(); err != nil && err != io.EOF {
		return nil, err
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

package checkpoint

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// A manifest of version 1 is read for ever, and nothing that it says is lost.
func TestFixture(t *testing.T) {
	text, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	enc := json.NewEncoder(&again)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil || !bytes.Equal(again.Bytes(), text) {
		t.Errorf("%v: it is read as\n%s", err, again.Bytes())
	}
}

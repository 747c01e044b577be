package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what comes out as what is wanted")

// TestDecodeTranscripts feeds recorded and made-up answers, one for each known quirk, through `belay model decode`:
// whole, byte by byte, and in odd pieces. The result is the same.
func TestDecodeTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/decode/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var args []string
			var body, want string
			wanted := -1
			for i, f := range a.Files {
				text := string(f.Data)
				switch f.Name {
				case "args":
					args = strings.Split(strings.TrimSpace(text), "\n")
				case "body":
					body = text
				case "body.quoted": // for what a text file cannot hold
					if body, err = strconv.Unquote(strings.TrimSpace(text)); err != nil {
						t.Fatal(err)
					}
				case "want":
					wanted, want = i, text
				default:
					t.Fatalf("what is %s?", f.Name)
				}
			}
			for _, sizes := range []string{"", "1", "1,3,2", "7,1,64,2"} {
				call := append([]string{"model", "decode"}, args...)
				if sizes != "" {
					call = append(call, "--read-sizes", sizes)
				}
				var out, fail bytes.Buffer
				if code := Main(t.Context(), append(call, "-"), strings.NewReader(body), &out, &fail); code != 0 {
					t.Fatalf("exit %d: %s", code, fail.String())
				}
				if *update && sizes == "" {
					want = out.String()
					if wanted < 0 {
						a.Files = append(a.Files, txtar.File{Name: "want"})
						wanted = len(a.Files) - 1
					}
					a.Files[wanted].Data = out.Bytes()
					if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if d := cmp.Diff(want, out.String()); d != "" {
					t.Errorf("in pieces of %q (run with -update to accept): %s", sizes, d)
				}
			}
		})
	}
}

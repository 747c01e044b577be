package helper

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImports keeps the helper in front of the initialisation of all other packages.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if p := imp.Path.Value; p != `"syscall"` && p != `"unsafe"` && p != `"runtime"` {
				t.Errorf("%s imports %s: that package, and all that sort before it, would be initialised in every sandboxed command", file, p)
			}
		}
	}
}

var sample = &Program{
	Listen: []uint16{3128, 65535},
	Base:   []Step{{Code: Tmpfs, A: "/tmp", B: "size=1"}},
	Steps:  []Step{{Code: Bind, Flags: ReadOnly | Optional, A: "/usr", B: "/usr"}, {Code: Overlay, A: "/a\x00/b", B: "/c", C: "/u\x00/w"}},
	SetIDs: true, UID: 1000, GID: 4294967294, Limits: []Limit{{Resource: 4, Value: 0}, {Resource: 7, Value: 1 << 63}},
	Landlock: Landlock{Files: 1 << 15, Scope: 1, Writable: []string{"/tmp"}}, Filter: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Argv: []string{"sh", "-c", ""}, Env: []string{"A=ü"}, Dir: "/w",
}

func TestProgram(t *testing.T) {
	b := sample.Encode()
	if n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24; n != len(b)-4 {
		t.Errorf("length %d of %d", n, len(b))
	}
	got, ok := Decode(b[4:])
	if !ok {
		t.Fatal("does not decode")
	}
	if diff := cmp.Diff(sample, got); diff != "" {
		t.Error(diff)
	}
	for n := range len(b) - 4 {
		if _, ok := Decode(b[4 : 4+n]); ok {
			t.Errorf("the first %d bytes were taken for a whole program", n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample.Encode()[4:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := Decode(b)
		if !ok {
			return
		}
		again, ok := Decode(p.Encode()[4:])
		if !ok {
			t.Fatal("what was decoded does not encode")
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMarkerAlone has the marker, but is not the first process of a namespace: it stays what it is.
func TestMarkerAlone(t *testing.T) {
	t.Setenv(Marker, "1")
	Init()
	if !Called() || os.Getpid() == 1 {
		t.Error("Init did not return to an ordinary process")
	}
}

package archive

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		found[rel] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRoundTrip(t *testing.T) {
	room := t.TempDir()
	dir := filepath.Join(room, "r_01")
	for name, content := range map[string]string{"a": "alpha", "deep/er/b": "\x00\xff", "empty": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, out := filepath.Join(room, "x"+Ext), filepath.Join(room, "out")
	if err := Pack(dir, file); err != nil {
		t.Fatal(err)
	}
	if err := Pack(dir, file); err == nil {
		t.Error("an archive was written over")
	}
	if err := Unpack(file, "r_01", out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files(t, dir), files(t, out)); diff != "" {
		t.Error(diff)
	}

	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 10, len(whole) / 2, len(whole) - 1} {
		if err := os.WriteFile(file, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(file, "r_01", filepath.Join(room, "torn")); err == nil {
			t.Errorf("unpacked from %d bytes of %d", size, len(whole))
		}
		if _, err := os.Stat(filepath.Join(room, "torn")); err == nil {
			t.Errorf("something is left of an archive of %d bytes", size)
		}
	}
}

// Nothing in a forged archive leads out of the folder.
func TestForged(t *testing.T) {
	for _, header := range []tar.Header{
		{Name: "r_01/../../evil", Typeflag: tar.TypeReg}, {Name: "/evil", Typeflag: tar.TypeReg}, {Name: "other/x", Typeflag: tar.TypeReg},
		{Name: "r_01/link", Typeflag: tar.TypeSymlink, Linkname: "/"}, {Name: "r_01/dev", Typeflag: tar.TypeChar}, {Name: "r_01/hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
	} {
		room := t.TempDir()
		file, err := os.Create(filepath.Join(room, "x"+Ext))
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewWriter(file)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(z)
		header.Mode = 0o644
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		w.Close()
		z.Close()
		file.Close()
		if err := Unpack(file.Name(), "r_01", filepath.Join(room, "out")); err == nil {
			t.Errorf("%q was taken out", header.Name)
		}
		if entries, _ := os.ReadDir(room); len(entries) != 1 {
			t.Errorf("%q left %v", header.Name, entries)
		}
	}
}

package journal

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A real disk of one megabyte runs full while a run is written: nothing is half there, and with space the same log goes
// on. Where this process may not mount one, the disk in memory has to do, which TestEveryOperationFailsOnce fills.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("BELAY_TEST_DISK"); dir != "" {
		fullDisk(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), "BELAY_TEST_DISK="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EACCES), strings.Contains(text, "cannot mount"):
		t.Logf("no disk of its own can be had here (%v); a full one in memory it is", err)
		h := &history{disk: newMemDisk(), tries: 9}
		h.disk.before = func(n int, op, _ string) (bool, error) {
			return true, map[bool]error{true: syscall.ENOSPC}[n > 60 && n < 65 && (op == "write" || op == "sync")]
		}
		checkHistory(t, h, "on a disk that was full", h.live())
	case err != nil || !strings.Contains(text, "PASS"):
		t.Fatalf("%v\n%s", err, out)
	}
}

func fullDisk(t *testing.T, dir string) {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal("cannot mount: ", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal("cannot mount: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	f, _, err := Create(dir, "r_01", nil, story()...)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	say := Entry{Type: TypeUserMessage, Payload: UserMessage{Text: strings.Repeat("more ", 1000)}}
	for round := range 3 {
		filler, err := os.Create(filepath.Join(dir, "filler"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(filler, &pattern{left: 2 << 20}); !NoSpace(err) {
			t.Fatalf("the disk does not run full: %v", err)
		}
		filler.Close()
		before := read(t, f.Dir())
		for {
			events, err := f.Append(say)
			if NoSpace(err) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, events...)
		}
		if _, err := f.PutBlob(make([]byte, 300_000)); !NoSpace(err) {
			t.Fatalf("a blob on a full disk: %v", err)
		}
		if got := read(t, f.Dir()); len(got) != len(before) {
			t.Fatalf("round %d: %d events, %d were acknowledged", round, len(got), len(before))
		}
		if _, findings, err := Check(f.Dir()); err != nil || len(findings) > 0 {
			t.Fatalf("round %d: %v, %v", round, findings, err)
		}
		if err := os.Remove(filler.Name()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Append(say, say); err != nil {
			t.Fatalf("round %d: there is space again: %v", round, err)
		}
		if got := read(t, f.Dir()); len(got) != len(before)+2 {
			t.Fatalf("round %d: %d events after %d and 2", round, len(got), len(before))
		}
	}
}

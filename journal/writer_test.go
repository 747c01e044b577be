package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets this binary be another process: with BELAY_TEST_OPEN it waits for a line, opens that run for
// writing, says how that went, and holds it until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv("BELAY_TEST_OPEN")
	if dir == "" {
		os.Exit(m.Run())
	}
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	f, err := Open(dir, nil)
	if err != nil {
		fmt.Println("refused:", err)
		io.Copy(io.Discard, in)
		return
	}
	events, err := f.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: "mine"}})
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	var w WriterOpen
	events[0].Decode(&w)
	fmt.Println("open", w.Epoch)
	io.Copy(io.Discard, in)
}

// other is another process that opens the run in dir.
type other struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startOther(t *testing.T, dir string) *other {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &other{cmd: exec.Command(exe)}
	o.cmd.Env = append(os.Environ(), "BELAY_TEST_OPEN="+dir)
	o.cmd.Stderr = os.Stderr
	out, err := o.cmd.StdoutPipe()
	if err == nil {
		o.in, err = o.cmd.StdinPipe()
	}
	if err == nil {
		err = o.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	o.out = bufio.NewReader(out)
	t.Cleanup(func() { o.cmd.Process.Kill(); o.cmd.Wait() })
	return o
}

func (o *other) open() { io.WriteString(o.in, "\n") }

func (o *other) said(t *testing.T) string {
	t.Helper()
	line, err := o.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// A second opener learns who writes; it can read meanwhile; the lock of a dead process is taken over.
func TestSecondWriter(t *testing.T) {
	f := create(t)
	f.Close()
	o := startOther(t, f.Dir())
	o.open()
	if got := o.said(t); got != "open 2" {
		t.Fatal(got)
	}
	before := read(t, f.Dir())
	_, err := Open(f.Dir(), nil)
	var busy *BusyError
	host, _ := os.Hostname()
	if !errors.As(err, &busy) || !errors.Is(err, ErrBusy) || busy.Writer.PID != o.cmd.Process.Pid || busy.Writer.Host != host || busy.Writer.Epoch != 2 {
		t.Fatalf("second opener: %v", err)
	}
	if !busy.Writer.Alive() {
		t.Error("the writer is said to be dead")
	}
	if !strings.Contains(err.Error(), fmt.Sprint("process ", o.cmd.Process.Pid)) {
		t.Errorf("the error does not name the process: %v", err)
	}

	o.cmd.Process.Kill()
	o.cmd.Wait()
	if w, ok, err := Writer(f.Dir()); err != nil || !ok || w.Alive() {
		t.Errorf("after the kill: %+v, %v, %v", w, ok, err)
	}
	again, err := Open(f.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	events, err := again.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: "taken over"}})
	if err != nil {
		t.Fatal(err)
	}
	var w WriterOpen
	if err := events[0].Decode(&w); err != nil || w.Epoch != 3 || w.PID != os.Getpid() {
		t.Errorf("taken over as %+v, %v", w, err)
	}
	if got := read(t, f.Dir()); len(got) != len(before)+2 {
		t.Errorf("%d events after %d", len(got), len(before))
	}
}

// Of processes that open at the same moment exactly one wins, again and again.
func TestRacingOpeners(t *testing.T) {
	f := create(t)
	f.Close()
	for round := range 5 {
		var all []*other
		for range 4 {
			all = append(all, startOther(t, f.Dir()))
		}
		for _, o := range all {
			o.open()
		}
		winners := 0
		for _, o := range all {
			switch got := o.said(t); {
			case got == fmt.Sprint("open ", round+2):
				winners++
			case !strings.HasPrefix(got, "refused:"):
				t.Errorf("round %d: %s", round, got)
			}
		}
		if winners != 1 {
			t.Errorf("round %d: %d winners", round, winners)
		}
		for _, o := range all {
			o.in.Close()
			o.cmd.Wait()
		}
	}
	if _, findings, err := Check(f.Dir()); err != nil || len(findings) > 0 {
		t.Error(findings, err)
	}
}

// Where a lock does not hold, a writer notices that it is not alone, and stops before it splices a line.
func TestForeignHand(t *testing.T) {
	f := create(t)
	path := filepath.Join(f.Dir(), journalName)
	for name, change := range map[string]func() error{
		"longer":  func() error { return os.WriteFile(path, append(mustRead(t, path), "x\n"...), 0o600) },
		"shorter": func() error { return os.Truncate(path, 10) },
	} {
		whole := mustRead(t, path)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		changed := mustRead(t, path)
		if _, err := f.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{}}); !errors.Is(err, ErrFenced) {
			t.Errorf("%s: append gave %v", name, err)
		}
		if string(mustRead(t, path)) != string(changed) {
			t.Errorf("%s: the file was written to", name)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		f.Close()
		var err error
		if f, err = Open(f.Dir(), nil); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
}

// A follower is told everything that is written, once, and ends with the writer.
func TestFollow(t *testing.T) {
	f := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan Event)
	go func() {
		defer close(told)
		for e, err := range Follow(ctx, f.Dir()) {
			if err != nil {
				t.Error(err)
				return
			}
			told <- e
		}
	}()
	next := int64(1)
	expect := func(upTo int64) {
		for ; next <= upTo; next++ {
			if e := <-told; e.Seq != next {
				t.Fatalf("told event %d, want %d", e.Seq, next)
			}
		}
	}
	expect(7)
	for range 3 {
		events, err := f.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: strings.Repeat("more", 10_000)}})
		if err != nil {
			t.Fatal(err)
		}
		expect(events[len(events)-1].Seq)
	}
	f.Close()
	if e, more := <-told; more {
		t.Errorf("told %v after the end", e)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"belay/internal/projection"
	"belay/journal"
	"belay/message"
)

// ending is how a process ended.
type ending struct {
	killed bool
	exit   string
	text   string
}

func (s *subject) dir() string { return filepath.Join(journal.RunsDir(s.home), s.runID) }

func (s *subject) exists() bool {
	_, err := os.Stat(s.dir())
	return err == nil
}

// watch starts the process, takes down what it acknowledges, and kills it after a time where that is not 0.
func (s *subject) watch(cmd *exec.Cmd, after time.Duration) (ending, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return ending{}, err
	}
	if err := cmd.Start(); err != nil {
		return ending{}, err
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	var end ending
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // half a line was not acknowledged
		}
		if err := s.heard(line, &end); err != nil {
			return end, err
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			end.killed = status.Signal() == syscall.SIGKILL
			if !end.killed {
				return end, fmt.Errorf("%v: %s", err, stderr.String())
			}
			return end, nil
		}
		if s.kind == "binary" {
			end.exit = fmt.Sprint(exit.ExitCode())
		}
		if s.kind == "loop" || exit.ExitCode() < 2 {
			return end, fmt.Errorf("%v: %s", err, stderr.String())
		}
	} else if err != nil {
		return end, err
	}
	end.text += " " + strings.TrimSpace(stderr.String())
	return end, nil
}

// heard takes one line of what the process says.
func (s *subject) heard(line string, end *ending) error {
	if s.kind == "loop" {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "event":
			var seq int64
			var sum string
			if _, err := fmt.Sscan(rest, &seq, &sum); err != nil {
				return fmt.Errorf("it said %q", line)
			}
			s.acked[seq] = sum
		case "end":
			end.exit, end.text, _ = strings.Cut(rest, " ")
		}
		return nil
	}
	var e journal.Event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return fmt.Errorf("it said %q", line)
	}
	if s.runID == "" {
		s.runID = e.RunID
	}
	s.acked[e.Seq] = e.Sum
	if e.Type == journal.TypeSessionEnd {
		var p journal.SessionEnd
		if err := e.Decode(&p); err != nil {
			return err
		}
		end.text = p.Summary
	}
	return nil
}

// check holds what a death left against the invariants: every acknowledged event is there, once and in order; nothing
// half-written is visible; every blob is whole; a call has at most one outcome; every context that was sent can be
// computed again; no effect is twice in the ledger.
func (s *subject) check() error {
	if err := s.checkLedger(); err != nil {
		return err
	}
	if s.runID == "" || !s.exists() {
		if len(s.acked) > 0 {
			return fmt.Errorf("%d events were acknowledged and the run is gone", len(s.acked))
		}
		return nil
	}
	_, findings, err := journal.Check(s.dir())
	if err != nil {
		return err
	}
	for _, f := range findings {
		if !strings.HasPrefix(f.Text, "unterminated:") {
			return fmt.Errorf("the journal is damaged: %v", f)
		}
	}
	found := map[int64]string{}
	for e, err := range journal.Read(s.dir()) {
		if err != nil {
			return err
		}
		found[e.Seq] = e.Sum
	}
	for seq, sum := range s.acked {
		if found[seq] != sum {
			return fmt.Errorf("event %d was acknowledged with the sum %s and is stored with %q", seq, sum, found[seq])
		}
	}
	contexts, err := projection.Replay(journal.Read(s.dir()))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	for _, c := range contexts {
		if c.Verdict != projection.Proved {
			return fmt.Errorf("turn %d: the context is %s: %s", c.Turn, c.Verdict, c.Detail)
		}
	}
	return nil
}

// checkLedger reads what really happened. An effect of class 3 or 4 happens once for each key, and no call that is
// not pure happens twice.
func (s *subject) checkLedger() error {
	text, err := os.ReadFile(s.ledgr)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		if seen[line] {
			return fmt.Errorf("the effect %q happened twice", line)
		}
		seen[line] = true
		if len(fields) == 3 { // name, call, key
			if seen[fields[2]] {
				return fmt.Errorf("the effect of %q happened twice", line)
			}
			seen[fields[2]] = true
		}
	}
	return nil
}

// checkEnd holds the whole history of a run that ended against what every provider demands: each call is answered, in
// order, in the very next message.
func (s *subject) checkEnd() error {
	fold := &projection.Fold{}
	for e, err := range journal.Read(s.dir()) {
		if err == nil {
			err = fold.Apply(e)
		}
		if err != nil {
			return err
		}
	}
	request, _, err := fold.Request()
	if err != nil {
		return err
	}
	for i, m := range request.Messages {
		calls := message.Calls(m.Blocks)
		for k, call := range calls {
			if i+1 == len(request.Messages) || len(request.Messages[i+1].Blocks) != len(calls) {
				return fmt.Errorf("invalid history: message %d has calls that the next one does not answer", i)
			}
			if r := request.Messages[i+1].Blocks[k].Result; r == nil || r.CallID != call.ID {
				return fmt.Errorf("invalid history: call %s is not answered in its place", call.ID)
			}
		}
	}
	return nil
}

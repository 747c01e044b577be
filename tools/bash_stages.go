package tools

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"belay/internal/shell"
	"belay/tool"
)

// reports takes the reports of a watched line out of its output.
type reports struct {
	to   io.Writer
	mark []byte // what a report begins with
	mu   sync.Mutex
	held []byte // may be the beginning of a report
	got  [][]string
}

// newMark is the mark of one line's reports: nothing that a command prints can be it by chance.
func newMark() string { return strings.ToLower(rand.Text()) }

func newReports(mark string) *reports { return &reports{mark: []byte("\x1e" + mark + " ")} }

// filter is the command's Filter.
func (r *reports) filter(to io.Writer) io.WriteCloser {
	r.to = to
	return r
}

// maxReport bounds what is held back: a report is a number and the status of each stage.
const maxReport = 4096

func (r *reports) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := p
	if len(r.held) > 0 {
		b = append(r.held, p...)
		r.held = nil
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\x1e')
		if i < 0 {
			break
		}
		if _, err := r.to.Write(b[:i]); err != nil {
			return 0, err
		}
		b = b[i:]
		n := min(len(b), len(r.mark))
		if !bytes.Equal(b[:n], r.mark[:n]) {
			if _, err := r.to.Write(b[:1]); err != nil {
				return 0, err
			}
			b = b[1:]
			continue
		}
		end := bytes.IndexByte(b[min(1, len(b)):], '\x1e')
		if end < 0 && len(b) < maxReport {
			r.held = bytes.Clone(b)
			return len(p), nil
		}
		if end < 0 || n < len(r.mark) {
			if _, err := r.to.Write(b[:1]); err != nil {
				return 0, err
			}
			b = b[1:]
			continue
		}
		r.got = append(r.got, strings.Fields(string(b[n:end+1])))
		b = b[end+2:]
	}
	if len(b) > 0 {
		if _, err := r.to.Write(b); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close passes on what only looked like a report.
func (r *reports) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.to.Write(r.held)
	r.held = nil
	return err
}

// stage is how one command of a line ended.
type stage struct {
	Command string `json:"command"`
	Part    int    `json:"part"`             // which part of the list it belongs to, from 1
	Exit    *int   `json:"exit,omitempty"`   // null where State says why
	State   string `json:"state,omitempty"`  // "not run", "background", "killed" or "unknown"
	Empty   bool   `json:"empty,omitempty"`  // it is known to have passed nothing on
	Signal  string `json:"signal,omitempty"` // that ended it, by name
}

// stages puts the reports of a line and its shell's end together.
func stages(parts []shell.Part, got [][]string, exit tool.Exit, printed bool) []stage {
	status := make([][]int, len(parts))
	ended, last := false, -1
	var final []int
	for _, report := range got {
		if len(report) == 0 {
			continue
		}
		var codes []int
		for _, f := range report[1:] {
			n, _ := strconv.Atoi(f)
			codes = append(codes, n)
		}
		switch report[0] {
		case shell.MarkEnd:
			ended = true
		case shell.MarkExit:
			final = codes
		default:
			if n, err := strconv.Atoi(report[0]); err == nil && n >= 0 && n < len(parts) {
				status[n], last = codes, n
			}
		}
	}
	if next := dying(parts, status, last); !ended && next >= 0 {
		// The shell ended in this part.
		switch {
		case len(parts[next].Stages) == 1 && !exit.TimedOut:
			status[next] = []int{exit.Code}
		case len(final) == len(parts[next].Stages):
			status[next] = final
		default:
			status[next] = []int{} // unknown
		}
	}
	var out []stage
	for i, part := range parts {
		for j, name := range part.Stages {
			s := stage{Command: name, Part: i + 1}
			lastStage := j == len(part.Stages)-1
			switch {
			case part.Background:
				s.State = "background"
			case status[i] == nil:
				s.State = "not run"
			case j < len(status[i]):
				code := status[i][j]
				s.Exit = &code
				s.Empty = code == 1 && searches(name) || lastStage && len(parts) == 1 && !printed && len(part.Stages) > 1
				if code > 128 && code <= 128+31 {
					s.Signal = signalName(code - 128)
				}
			case exit.TimedOut:
				s.State = "killed"
			default:
				s.State = "unknown"
			}
			out = append(out, s)
		}
	}
	return out
}

// dying is the first part after the last reported one that its list would have run.
func dying(parts []shell.Part, status [][]int, last int) int {
	code := 0
	if last >= 0 && len(status[last]) > 0 {
		code = status[last][len(status[last])-1]
	}
	for i := last + 1; i < len(parts); i++ {
		switch {
		case parts[i].Background:
		case i == 0, parts[i].Op == ";", parts[i].Op == "&&" && code == 0, parts[i].Op == "||" && code != 0:
			return i
		}
	}
	return -1
}

// searches says that exit status 1 of a program means that it found nothing.
func searches(name string) bool {
	switch name {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "pgrep", "zgrep":
		return true
	}
	return false
}

func signalName(n int) string {
	names := map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM"}
	if name, ok := names[n]; ok {
		return "SIG" + name
	}
	return fmt.Sprintf("signal %d", n)
}

// stagesText is "rg 0, grep 1 (empty), sed 0".
func stagesText(all []stage) string {
	var b strings.Builder
	for i, s := range all {
		switch {
		case i > 0 && s.Part != all[i-1].Part:
			b.WriteString("; ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(shownName(s.Command) + " ")
		if s.Exit == nil {
			b.WriteString(s.State)
			continue
		}
		b.WriteString(strconv.Itoa(*s.Exit))
		if s.Signal != "" {
			b.WriteString(" (" + s.Signal + ")")
		}
		if s.Empty {
			b.WriteString(" (empty)")
		}
	}
	return b.String()
}

// bashData is what programs read of a command's result.
type bashData struct {
	Exit     int     `json:"exit"`
	Signal   string  `json:"signal,omitempty"`
	TimedOut bool    `json:"timed_out,omitempty"`
	Duration int64   `json:"duration_ms"`
	Dir      string  `json:"cwd"`
	Bytes    int64   `json:"bytes"`            // of the output, before any cut
	Stages   []stage `json:"stages,omitempty"` // of a line of more than one command
}

func (d bashData) encode() json.RawMessage {
	b, _ := json.Marshal(d) // numbers and strings cannot fail
	return b
}

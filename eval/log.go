package eval

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"belay/journal"
)

// Outcome is how a trial ended. Pass, Fail, AgentError and Budget count; the other two are left out, after they were run again.
type Outcome string

const (
	Pass         Outcome = "pass"
	Fail         Outcome = "fail"
	AgentError   Outcome = "agent_error"
	OutOfBudget  Outcome = "budget"
	HarnessFault Outcome = "harness_error"
	GraderFault  Outcome = "grader_error"
)

// Counts says whether a trial with that outcome tells something about the agent.
func (o Outcome) Counts() bool { return o != HarnessFault && o != GraderFault }

// Fact is one thing about the configuration, for people to compare.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Types of lines of a result log.
const (
	lineStart    = "eval.start"
	lineControl  = "control"
	lineTrial    = "trial"    // final: one for each task and number
	lineRerun    = "rerun"    // an attempt that did not count and is made again
	lineClassify = "classify" // a person's word about a failure
)

// Line is one line of a result log. What does not belong to its type is absent.
type Line struct {
	V    int       `json:"v"`
	Type string    `json:"type"`
	TS   time.Time `json:"ts"`

	Start    *Start    `json:"start,omitempty"`
	Control  *Controls `json:"control,omitempty"`
	Trial    *Trial    `json:"trial,omitempty"` // of trial and rerun
	Classify *Classify `json:"classify,omitempty"`

	Sum string `json:"sum,omitempty"` // chains the lines as in a run's journal
}

// Start says what is measured.
type Start struct {
	Suite      string   `json:"suite"`
	SuiteHash  string   `json:"suite_hash"`
	Config     []Fact   `json:"config"`
	ConfigHash string   `json:"config_hash"`
	Tasks      []string `json:"tasks"` // ids
}

// Controls is what one control run of a task gave.
type Controls struct {
	Task    string  `json:"task"`
	Name    string  `json:"name"` // oracle, null, or a cheat's
	Want    int     `json:"want"` // 1 or 0
	Score   int     `json:"score"`
	OK      bool    `json:"ok"`
	Summary string  `json:"summary"`
	Grades  []Grade `json:"grades,omitempty"`
	MS      int64   `json:"ms"`
}

// Trial is one attempt at a task with its outcome.
type Trial struct {
	Task      string   `json:"task"`
	Trial     int      `json:"trial"`   // from 1
	Attempt   int      `json:"attempt"` // from 1; above that, those before did not count
	Outcome   Outcome  `json:"outcome"`
	Reason    string   `json:"reason"`
	Grades    []Grade  `json:"grades,omitempty"`
	RunID     string   `json:"run_id,omitempty"`
	Journal   string   `json:"journal,omitempty"` // the run's folder, relative to the results'
	Output    string   `json:"output,omitempty"`  // what the agent printed, a file likewise
	Exit      int      `json:"exit"`
	Turns     int      `json:"turns,omitempty"`
	Tokens    int64    `json:"tokens,omitempty"`
	USD       *float64 `json:"usd,omitempty"` // the agent's; absent where unknown
	JudgeUSD  float64  `json:"judge_usd,omitempty"`
	AgentMS   int64    `json:"agent_ms"`
	GradeMS   int64    `json:"grade_ms"`
	TotalMS   int64    `json:"total_ms"`
	Steps     [2]int   `json:"steps,omitzero"` // verifications in the run that passed, and all
	Denied    int      `json:"denied,omitempty"`
	Asked     int      `json:"asked,omitempty"` // questions to a person
	Forbidden int      `json:"forbidden,omitempty"`
	Standing  string   `json:"standing,omitempty"` // what the agent's harness claimed
	Suggested []Cause  `json:"suggested,omitempty"`
}

// Classify is a person's word about why a trial failed.
type Classify struct {
	Task  string `json:"task"`
	Trial int    `json:"trial"`
	Cause Cause  `json:"cause"`
}

// logName is the append-only file in a results folder.
const logName = "results.jsonl"

// Log is a results folder that is open for writing. One process writes at a time.
type Log struct {
	Dir string

	mu     sync.Mutex
	file   *os.File
	unlock func()
	sum    string
}

const firstSum = "00000000000000000000000000000000"

// OpenLog opens or makes the results in dir and reads what is there. A last line that was cut short is cut off; what is wrong before
// it is an error.
func OpenLog(dir string) (*Log, []Line, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("the results: %w", err)
	}
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, nil, fmt.Errorf("the results in %s are being written by another process (%w): wait for it, or name another folder with --out", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, logName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		unlock()
		return nil, nil, fmt.Errorf("the results: %w", err)
	}
	lines, end, sum, err := readLines(file)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		file.Close()
		unlock()
		return nil, nil, fmt.Errorf("the results in %s: %w", dir, err)
	}
	return &Log{Dir: dir, file: file, unlock: unlock, sum: sum}, lines, nil
}

// ReadLog reads results that somebody may be writing.
func ReadLog(dir string) ([]Line, error) {
	file, err := os.Open(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there are no results in %s (no %s)", dir, logName)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines, _, _, err := readLines(file)
	if err != nil {
		return nil, fmt.Errorf("the results in %s: %w", dir, err)
	}
	return lines, nil
}

func readLines(r io.Reader) (lines []Line, end int64, sum string, err error) {
	in, sum := bufio.NewReader(r), firstSum
	for number := 1; ; number++ {
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines, end, sum, nil // an unterminated line was never acknowledged
		}
		if err != nil {
			return nil, 0, "", err
		}
		var line Line
		stored, ok := bytes.CutSuffix(raw[:len(raw)-1], []byte(`"}`))
		at := bytes.LastIndex(stored, []byte(`,"sum":"`))
		if !ok || at < 0 {
			return nil, 0, "", fmt.Errorf("line %d of %s is damaged: it does not end with its sum", number, logName)
		}
		if sum = journal.Sum(sum, stored[:at]); sum != string(stored[at+len(`,"sum":"`):]) {
			return nil, 0, "", fmt.Errorf("line %d of %s is damaged: it is not what was written", number, logName)
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, 0, "", fmt.Errorf("line %d of %s: %w", number, logName, err)
		}
		if line.V != 1 {
			return nil, 0, "", fmt.Errorf("line %d of %s has version %d; this belay reads 1", number, logName, line.V)
		}
		lines, end = append(lines, line), end+int64(len(raw))
	}
}

// Append writes a line and makes it durable.
func (l *Log) Append(line Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line.V, line.TS, line.Sum = 1, time.Now().UTC().Truncate(time.Millisecond), ""
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line); err != nil {
		return fmt.Errorf("the results: %w", err)
	}
	stored := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	sum := journal.Sum(l.sum, stored)
	raw := append(bytes.Clone(stored), `,"sum":"`+sum+"\"}\n"...)
	if _, err := l.file.Write(raw); err != nil {
		return fmt.Errorf("the results: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("the results: %w", err)
	}
	l.sum = sum
	return nil
}

// Close lets others write.
func (l *Log) Close() error {
	err := l.file.Close()
	l.unlock()
	return err
}

// HashFacts is the configuration's hash: SHA-256, hex, over names and values in their order.
func HashFacts(facts []Fact) string {
	h := sha256.New()
	for _, f := range facts {
		fmt.Fprintf(h, "%q=%q\n", f.Name, f.Value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

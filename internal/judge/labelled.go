package judge

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"

	"belay/effect"
	"belay/policy"
)

//go:embed labelled.jsonl
var labelled []byte

// Labelled is a case with what a person says about it.
type Labelled struct {
	ID      string       `json:"id"`
	Label   string       `json:"label"` // allow or block
	Said    []string     `json:"said"`
	Earlier []policy.Act `json:"earlier"`
	Tool    string       `json:"tool"`
	Runs    string       `json:"runs"`
	Effects []string     `json:"effects"`
	Why     string       `json:"why"`
}

// Case is what the judge is shown of it.
func (l Labelled) Case() policy.Case {
	return policy.Case{Said: l.Said, Earlier: l.Earlier, Candidate: policy.Act{Tool: l.Tool, Runs: l.Runs, Effects: l.Effects, Class: effect.ClassIrreversible}}
}

// Cases are those that ship.
func Cases() ([]Labelled, error) { return ReadCases("the cases that ship", bytes.NewReader(labelled)) }

// ReadCases reads one case a line.
func ReadCases(name string, r io.Reader) ([]Labelled, error) {
	var all []Labelled
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		var l Labelled
		if err := dec.Decode(&l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		switch {
		case l.Label != "allow" && l.Label != "block":
			return nil, fmt.Errorf("%s:%d: the label must be allow or block, not %q", name, n, l.Label)
		case l.Runs == "" || l.ID == "":
			return nil, fmt.Errorf("%s:%d: a case needs an id and what runs", name, n)
		}
		all = append(all, l)
	}
	return all, lines.Err()
}

// Measured is how a judge does on labelled cases.
type Measured struct {
	Cases      int     `json:"cases"`
	Allow      int     `json:"allow"`       // cases that may run
	Block      int     `json:"block"`       // cases that must not
	FalseAllow int     `json:"false_allow"` // of Block, those that it let run
	FalseBlock int     `json:"false_block"` // of Allow, those that it blocked
	AllowRate  float64 `json:"false_allow_rate"`
	BlockRate  float64 `json:"false_block_rate"`
	Second     int     `json:"second_stage"` // cases that came to it
	Lifted     int     `json:"lifted"`       // by it
	Errors     int     `json:"errors"`       // answers that could not be had
	Wrong      []Wrong `json:"wrong"`
}

// Wrong is a case on which the judge and the person differ.
type Wrong struct {
	ID     string `json:"id"`
	Label  string `json:"label"`
	Runs   string `json:"runs"`
	Why    string `json:"why"`    // the person's
	Reason string `json:"reason"` // the judge's
}

// Measure has a judge rule on every case.
func Measure(ctx context.Context, rules policy.Prose, cases []Labelled, ask Asker) (Measured, error) {
	m := Measured{Cases: len(cases), Wrong: []Wrong{}}
	for _, l := range cases {
		r, err := Judge(ctx, rules, l.Case(), ask)
		if err != nil {
			return m, err
		}
		if len(r.Stages) > 1 {
			m.Second++
			if r.Allowed {
				m.Lifted++
			}
		}
		for _, s := range r.Stages {
			if s.Err != nil {
				m.Errors++
			}
		}
		wrong := r.Allowed != (l.Label == "allow")
		if l.Label == "allow" {
			m.Allow++
			if wrong {
				m.FalseBlock++
			}
		} else {
			m.Block++
			if wrong {
				m.FalseAllow++
			}
		}
		if wrong {
			m.Wrong = append(m.Wrong, Wrong{l.ID, l.Label, l.Runs, l.Why, r.Reason})
		}
	}
	if m.Allow > 0 {
		m.BlockRate = float64(m.FalseBlock) / float64(m.Allow)
	}
	if m.Block > 0 {
		m.AllowRate = float64(m.FalseAllow) / float64(m.Block)
	}
	return m, nil
}

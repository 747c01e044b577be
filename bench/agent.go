package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"belay/harness"
	"belay/journal"
	"belay/loop"
	"belay/model/openai"
)

// moment is when an event of the run was stored.
type moment struct {
	Type journal.Type
	At   int64 // nanoseconds since 1970
}

// agent is belay: the harness as an embedder calls it, with the client of a real provider. It leaves the
// moments of its events in Dir.
func agent(j job) error {
	if j.Profile != "" {
		file, err := os.Create(j.Profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	moments := make([]moment, 0, 4*j.Turns+16)
	result, err := harness.Run(context.Background(), harness.Config{
		Task: "Measure.", Workspace: filepath.Join(j.Dir, "work"), Home: filepath.Join(j.Dir, "home"),
		Client: openai.New(openai.Config{Model: "bench", BaseURL: j.URL, ContextWindow: 100_000_000}),
		Bounds: journal.Bounds{Turns: 10 * j.Turns, Tokens: 1 << 50, WallMS: 1 << 40},
		Observe: func(e journal.Event) {
			moments = append(moments, moment{e.Type, time.Now().UnixNano()})
		},
	})
	if err != nil {
		return err
	}
	if result.Exit != loop.ExitUnverified || result.Turns != j.Turns+1 {
		return fmt.Errorf("the run ended after %d turns with exit %d: %s", result.Turns, result.Exit, result.Reason)
	}
	b, err := json.Marshal(moments)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.Dir, momentsName), b, 0o600)
}

const momentsName = "moments.json"

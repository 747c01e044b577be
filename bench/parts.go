package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"belay/journal"
)

// price is what single parts cost here and now, in milliseconds, measured in turns.
type price struct {
	Sync float64 // one durable append over one that is not
	Bare float64 // the shell and its line by os/exec
}

const samples = 150

// parts measures the price list and prints it as JSON.
func parts(j job) error {
	log, _, err := journal.Create(filepath.Join(j.Dir, "home"), journal.NewRunID(), nil)
	if err != nil {
		return err
	}
	defer log.Close()
	argv := []string{"bash", "--norc", "--noprofile", "-c", "--", "echo step-1"}
	entry := journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "some words that fill a line of the journal"}}
	var failed error
	took := func(times *[]float64, do func() error) {
		began := time.Now()
		if err := do(); err != nil && failed == nil {
			failed = err
		}
		*times = append(*times, time.Since(began).Seconds()*1000)
	}
	var durable, written, bare []float64
	for range samples {
		took(&durable, func() error { _, err := log.Append(entry); return err })
		took(&written, func() error { _, err := log.Write(entry); return err })
		took(&bare, func() error { return exec.Command(argv[0], argv[1:]...).Run() })
	}
	if failed != nil {
		return failed
	}
	return json.NewEncoder(os.Stdout).Encode(price{Sync: typical(durable) - typical(written), Bare: typical(bare)})
}

// typical is the mean without the lowest and the highest tenth. Parts of a turn add up to it; medians do not.
func typical(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	cut := len(sorted) / 10
	sum, n := 0.0, 0
	for _, v := range sorted[cut : len(sorted)-cut] {
		sum, n = sum+v, n+1
	}
	return sum / max(1, float64(n))
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

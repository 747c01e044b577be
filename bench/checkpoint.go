package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"belay/checkpoint"
	"belay/internal/snapshot"
)

// checkpoints compares checkpoints with `git status` in the same tree of so many files, and measures what a hundred of
// them take. The aims: 0.8, 1.0 and 3.5 times git status; 10 MB at 100,000 files.
func checkpoints(files int) error {
	dir, err := os.MkdirTemp("", "bench-checkpoint-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "tree")
	name := func(i int) string {
		return filepath.Join(root, fmt.Sprintf("d%03d/e%02d/file%d.txt", i/1000, i/50%20, i))
	}
	version := 0
	write := func(i int) error {
		version++
		return os.WriteFile(name(i), fmt.Appendf(nil, "file %d\n%0800d\n", i, version), 0o644)
	}
	for i := range files {
		if err := os.MkdirAll(filepath.Dir(name(i)), 0o755); err != nil {
			return err
		}
		if err := write(i); err != nil {
			return err
		}
	}
	git := func(args ...string) error {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		return cmd.Run()
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0", "commit", "-qm", "a"}, {"repack", "-adq"}, {"status", "--porcelain"}} {
		if err := git(args...); err != nil {
			return fmt.Errorf("git %v: %w", args, err)
		}
	}
	store, err := snapshot.Open(snapshot.Config{Home: filepath.Join(dir, "home"), Workspace: root})
	if err != nil {
		return err
	}
	take := func() (time.Duration, error) {
		started := time.Now()
		_, err := store.Take(context.Background(), checkpoint.Note{Reason: "bench"})
		return time.Since(started), err
	}
	first, err := take()
	if err != nil {
		return err
	}
	fmt.Printf("%d files; the first checkpoint %d ms\n| changed | git status, ms | checkpoint, ms | ratio |\n| --- | --- | --- | --- |\n", files, first.Milliseconds())
	time.Sleep(50 * time.Millisecond) // files written just now are read again
	const rounds = 9
	for _, changed := range []int{0, 10, 1000} {
		var ours, theirs []time.Duration
		for range rounds {
			for k := range changed {
				if err := write(k * files / changed); err != nil {
					return err
				}
			}
			d, err := take()
			if err != nil {
				return err
			}
			ours = append(ours, d)
			started := time.Now()
			if err := git("status", "--porcelain"); err != nil {
				return err
			}
			theirs = append(theirs, time.Since(started))
			if _, err := take(); err != nil { // what was just written is settled
				return err
			}
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		a, b := ours[rounds/2], theirs[rounds/2]
		fmt.Printf("| %d | %d | %d | %.2f |\n", changed, b.Milliseconds(), a.Milliseconds(), float64(a)/float64(b))
	}
	before, err := store.Use()
	if err != nil {
		return err
	}
	for n := range 100 {
		for k := range 10 {
			if err := write((n*7919 + k*104729) % files); err != nil {
				return err
			}
		}
		if _, err := take(); err != nil {
			return err
		}
	}
	after, err := store.Use()
	fmt.Printf("\n100 checkpoints of ten changes each: %.1f MB\n", float64(after.Bytes-before.Bytes)/1e6)
	return err
}

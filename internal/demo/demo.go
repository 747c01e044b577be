// Package demo holds what "belay demo" plays with: a small Go project with a real bug and a failing test, and the script of the model that repairs it at the second try.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Task is what a person would type.
const Task = "The tests of this package fail. Find the bug and fix it."

// ScriptName stands for the script's file in messages.
const ScriptName = "demo/rehearsal.yaml"

//go:embed rehearsal.yaml
var script []byte

//go:embed testdata/bill
var project embed.FS

// Script returns the rehearsal (format: docs/rehearsal.md) that repairs the project.
func Script() []byte { return append([]byte(nil), script...) }

// Unpack writes the project into dir, which is created where it is missing and must be empty.
func Unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpack the demo project: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("unpack the demo project: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("unpack the demo project: %s is not empty (it holds %s); choose a new folder", dir, entries[0].Name())
	}
	files, err := fs.Sub(project, "testdata/bill")
	if err != nil {
		return fmt.Errorf("unpack the demo project: %w", err)
	}
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return fmt.Errorf("unpack the demo project: %w", err)
		}
		// A folder with a go.mod cannot be embedded, so it has another name here.
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimSuffix(path, ".txt")))
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return fmt.Errorf("unpack the demo project: %w", err)
		}
		return nil
	})
}

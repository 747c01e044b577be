package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/internal/archive"
	"belay/internal/redact"
	"belay/journal"
)

// archiveDir is where packed runs lie.
func archiveDir(home string) string { return filepath.Join(home, "archive") }

// kept is what the commands that move or delete a run print with --json.
type kept struct {
	RunID string `json:"run_id"`
	File  string `json:"file,omitempty"` // the archive
	Bytes int64  `json:"bytes,omitempty"`
}

func (a *app) runsArchiveCommand() *cobra.Command {
	return a.keepCommand("archive RUN", "Pack a run into one compressed file",
		`Pack a run into one file below `+"`archive`"+` in belay's state, checked before the run itself is removed. restore brings it back. The
values of its secrets stay in belay's vault.`,
		"  belay runs archive r_01k5\n  belay runs restore r_01k5",
		func(home, name string) (kept, string, error) {
			runID, _, err := a.find(name)
			if err != nil {
				return kept{}, "", err
			}
			k := kept{RunID: runID, File: filepath.Join(archiveDir(home), runID+archive.Ext)}
			err = journal.Remove(home, runID, func(dir string) error {
				if _, findings, err := journal.Check(dir); err != nil || len(findings) > 0 {
					return errors.Join(err, errors.New("it is damaged: `"+self()+" journal verify "+runID+"` says how. An archive must be sound"))
				}
				if err := os.MkdirAll(archiveDir(home), 0o700); err != nil {
					return err
				}
				if err := archive.Pack(dir, k.File); err != nil {
					return err
				}
				return proveArchive(home, k.File, runID)
			})
			if err != nil {
				return k, "", err
			}
			info, err := os.Stat(k.File)
			if err == nil {
				k.Bytes = info.Size()
			}
			return k, "archived", err
		})
}

// proveArchive unpacks an archive beside the runs and throws it away again: nothing is removed on a hope.
func proveArchive(home, file, runID string) error {
	trial := filepath.Join(home, "staging", runID+".trial")
	os.RemoveAll(trial)
	if err := os.MkdirAll(filepath.Dir(trial), 0o700); err != nil {
		return err
	}
	err := archive.Unpack(file, runID, trial)
	if err != nil {
		os.Remove(file)
	}
	return errors.Join(err, os.RemoveAll(trial))
}

func (a *app) runsRestoreCommand() *cobra.Command {
	return a.keepCommand("restore RUN", "Bring an archived run back", `Take a run out of its archive, which is then removed. The whole id is needed.`,
		"  belay runs restore r_01k5",
		func(home, name string) (kept, string, error) {
			packed, err := filepath.Glob(filepath.Join(archiveDir(home), "r_*"+archive.Ext))
			if err != nil {
				return kept{}, "", err
			}
			var ids []string
			for i := len(packed) - 1; i >= 0; i-- {
				ids = append(ids, strings.TrimSuffix(filepath.Base(packed[i]), archive.Ext))
			}
			if len(ids) == 0 {
				return kept{}, "", usagef("no run is archived in %s", archiveDir(home))
			}
			runID, err := resolve(name, ids)
			if err != nil {
				return kept{}, "", err
			}
			file := filepath.Join(archiveDir(home), runID+archive.Ext)
			dir, fresh := filepath.Join(journal.RunsDir(home), runID), filepath.Join(home, "staging", runID+".back")
			if _, err := os.Stat(dir); err == nil {
				return kept{}, "", usagef("there is a run %s already", runID)
			}
			os.RemoveAll(fresh)
			if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.MkdirAll(filepath.Dir(fresh), 0o700), archive.Unpack(file, runID, fresh)); err != nil {
				return kept{}, "", err
			}
			if err := os.Rename(fresh, dir); err != nil {
				return kept{}, "", err
			}
			if _, findings, err := journal.Check(dir); err != nil || len(findings) > 0 {
				return kept{}, "", errors.Join(err, errors.New("the run came back damaged; the archive "+file+" is still there"))
			}
			return kept{RunID: runID}, "restored", os.Remove(file)
		})
}

func (a *app) runsRemoveCommand() *cobra.Command {
	return a.keepCommand("rm RUN", "Delete a run for good",
		`Delete a run, its journal and its blobs, for good. A run that a process writes, or that others were forked from, stays.`,
		"  belay runs rm r_01k5",
		func(home, name string) (kept, string, error) {
			runID, _, err := a.find(name)
			if err != nil {
				return kept{}, "", err
			}
			if err := journal.Remove(home, runID, nil); err != nil {
				return kept{}, "", err
			}
			return kept{RunID: runID}, "removed", redact.Forget(home, runID)
		})
}

// keepCommand is a command that does one thing to one run.
func (a *app) keepCommand(use, short, long, example string, do func(home, name string) (kept, string, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: oneRun, ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			k, done, err := do(home, args[0])
			if errors.Is(err, journal.ErrBusy) {
				err = usagef("%w", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(k)
			}
			line := a.screen().Good(done) + "  " + k.RunID
			if k.File != "" {
				line += a.screen().Dim("  " + k.File)
			}
			return a.lines(line)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

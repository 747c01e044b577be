// Package checkpoint is contract 4: what a checkpoint restores, namely files, a position in the journal and the list of effects that stay, and the store that keeps the files.
package checkpoint

import (
	"context"
	"errors"
	"time"
)

// Version is the version of the manifest that this package writes.
const Version = 1

// Manifest is one checkpoint.
type Manifest struct {
	V         int         `json:"v"`
	ID        string      `json:"id"` // "c_" and 16 hex digits; ids rise with time
	Run       string      `json:"run,omitempty"`
	Seq       int64       `json:"seq,omitempty"` // of the last event before it
	Turn      int         `json:"turn,omitempty"`
	Step      string      `json:"step,omitempty"`
	Workspace string      `json:"workspace"` // absolute
	Time      time.Time   `json:"time"`
	Tree      string      `json:"tree"`                  // object id of the root tree, hex
	Base      string      `json:"base_commit,omitempty"` // the repository's head, hex
	Reason    string      `json:"reason"`
	Green     bool        `json:"green,omitempty"` // the verifiers pass on this tree
	PlanHash  string      `json:"plan_hash,omitempty"`
	Covered   Total       `json:"covered"`
	Uncovered []Uncovered `json:"uncovered,omitempty"` // sorted by path
	Effects   []string    `json:"effects_since,omitempty"`
}

// Total counts files and their bytes.
type Total struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Uncovered is a path, relative with slashes, that the checkpoint does not restore.
type Uncovered struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"` // at least
	Why   string `json:"why"`
}

// Note is what the caller knows about a checkpoint.
type Note struct {
	Run, Step, Reason, PlanHash string
	Seq                         int64
	Turn                        int
	Green                       bool
	Effects                     []string
}

// Kind says how a path differs between two trees.
type Kind string

const (
	Added    Kind = "added"
	Deleted  Kind = "deleted"
	Modified Kind = "modified" // content, mode or kind
)

// Change is one path that differs. A mode is git's: 0o100000 with permissions is a file, 0o120000 a link, 0o040000
// with permissions a folder; 0 where there is nothing.
type Change struct {
	Path     string `json:"path"`
	Kind     Kind   `json:"kind"`
	Was, Now string `json:"-"` // object ids
	WasMode  uint32 `json:"-"`
	NowMode  uint32 `json:"-"`
}

// Errors that a caller branches on.
var (
	ErrUnknown = errors.New("there is no such checkpoint")
	// ErrConflict says that a restore would destroy what no checkpoint holds.
	ErrConflict = errors.New("what is there now is in no checkpoint and would be lost")
)

// Store keeps the files of one workspace. Objects are named by their content. It never changes anything of the
// user's repository.
type Store interface {
	// Take keeps the workspace as it is now. When it returns, the checkpoint is durable.
	Take(ctx context.Context, n Note) (Manifest, error)
	// Get finds a checkpoint by its id or a unique beginning of it; ErrUnknown where there is none.
	Get(id string) (Manifest, error)
	// List is every checkpoint, oldest first.
	List() ([]Manifest, error)
	// Diff lists what differs from one tree to another, sorted by path.
	Diff(from, to string) ([]Change, error)
	// Read is the content of an object: a file's bytes or a link's target.
	Read(id string) ([]byte, error)
	// Restore makes the workspace, which is as in from, as in to: only paths that differ are touched. Where what is
	// there is not as in from it refuses with ErrConflict before anything is changed, unless forced. What to does
	// not cover stays. Paths where it did something are returned, sorted; an interrupted Restore is finished by
	// another one.
	Restore(ctx context.Context, from, to Manifest, force bool) ([]string, error)
}

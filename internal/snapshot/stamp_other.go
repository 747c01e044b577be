//go:build !linux

package snapshot

import "io/fs"

// stamp is what changes when a file's content does.
type stamp struct{ size, mtime int64 } // bytes, nanoseconds

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime().UnixNano()} }

//go:build !linux

package snapshot

import "io/fs"

// stamp is what changes when a file's content does.
type stamp struct{ Size, Mtime int64 } // bytes, nanoseconds

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime().UnixNano()} }

//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// ownerOf says who owns a file.
func ownerOf(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

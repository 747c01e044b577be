package snapshot

import (
	"io/fs"
	"syscall"
)

// stamp is what changes when a file's content does.
type stamp struct {
	size, mtime, ctime int64 // bytes, nanoseconds, nanoseconds
	inode              uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ctime, s.inode = st.Ctim.Nano(), st.Ino
	}
	return s
}

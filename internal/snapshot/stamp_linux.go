package snapshot

import (
	"io/fs"
	"syscall"
)

// stamp is what changes when a file's content does.
type stamp struct {
	Size, Mtime, Ctime int64 // bytes, nanoseconds, nanoseconds
	Inode              uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ctime, s.Inode = st.Ctim.Nano(), st.Ino
	}
	return s
}

package sandbox

import (
	"io/fs"
	"syscall"
	"time"
)

// changed is when a file, or what is known about it, was changed last. No command can set that.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec))
	}
	return info.ModTime()
}

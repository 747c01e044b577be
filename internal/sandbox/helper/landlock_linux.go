//go:build amd64 || arm64

package helper

import (
	"syscall"
	"unsafe"
)

// Landlock system calls; the numbers are the same on every architecture.
const (
	sysLandlockCreate   = 444
	sysLandlockAdd      = 445
	sysLandlockRestrict = 446
)

// Rights of Landlock over files.
const (
	landExecute   = 1 << 0
	landWriteFile = 1 << 1
	landReadFile  = 1 << 2
	landReadDir   = 1 << 3
	landMakeChar  = 1 << 6
	landMakeBlock = 1 << 11
	landTruncate  = 1 << 14
	landIoctlDev  = 1 << 15
	landOnFile    = landExecute | landWriteFile | landReadFile | landTruncate | landIoctlDev
)

// confine has Landlock say a second time what the mounts say: everything can be read, only what is named can be
// written, and nothing can be done with a file outside this root, whoever handed in a descriptor of it.
func confine(l *Landlock) string {
	if l.Files == 0 {
		return ""
	}
	attr := [3]uint64{l.Files, 0, l.Scope}
	size := unsafe.Sizeof(attr)
	if l.Scope == 0 {
		size = 8
	}
	set, _, e := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return "making a Landlock ruleset: " + e.Error()
	}
	defer syscall.Close(int(set))
	rule := func(path string, rights uint64) string {
		fd, err := syscall.Open(path, oPath|cloexec, 0)
		if err == syscall.ENOENT {
			return ""
		}
		if err != nil {
			return "a Landlock rule for " + path + ": " + err.Error()
		}
		defer syscall.Close(fd)
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != nil {
			return "a Landlock rule for " + path + ": " + err.Error()
		}
		if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			rights &= landOnFile
		}
		// The kernel's struct is packed: eight bytes and four.
		beneath := struct {
			rights [2]uint32
			fd     int32
		}{[2]uint32{uint32(rights & l.Files), uint32((rights & l.Files) >> 32)}, int32(fd)}
		if _, _, e := syscall.RawSyscall6(sysLandlockAdd, set, 1, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); e != 0 {
			return "a Landlock rule for " + path + ": " + e.Error()
		}
		return ""
	}
	if msg := rule("/", landExecute|landReadFile|landReadDir); msg != "" {
		return msg
	}
	for _, path := range [2]string{"/dev", "/proc"} {
		if msg := rule(path, landWriteFile|landTruncate|landIoctlDev); msg != "" {
			return msg
		}
	}
	for _, path := range l.Writable {
		if msg := rule(path, ^uint64(landMakeChar|landMakeBlock)); msg != "" {
			return msg
		}
	}
	if _, _, e := syscall.RawSyscall(sysLandlockRestrict, set, 0, 0); e != 0 {
		return "entering the Landlock domain: " + e.Error()
	}
	return ""
}

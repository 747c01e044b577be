//go:build amd64 || arm64

package helper

import (
	"syscall"
	"unsafe"
)

// The mount interface of Linux 5.12 and later; the numbers are the same on every architecture.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysFsopen       = 430
	sysFsconfig     = 431
	sysFsmount      = 432
	sysOpenat2      = 437
	sysMountSetattr = 442

	atFdcwd       = -100
	atEmptyPath   = 0x1000
	atRecursive   = 0x8000
	openTreeClone = 1
	cloexec       = syscall.O_CLOEXEC
	oPath         = 0x200000

	fromEmpty = 0x4
	toEmpty   = 0x40

	configSetFlag   = 0
	configSetString = 1
	configCreate    = 6

	attrReadOnly = 1
	attrNosuid   = 2
	attrNodev    = 4
	attrNoexec   = 8

	resolveBeneath   = 0x8
	resolveNoSymlink = 0x4
	resolveNoMagic   = 0x2

	mntDetach = 2
)

// open opens a path of the new root without following any symbolic link.
func (r *root) open(path string) (int, syscall.Errno) {
	how := [3]uint64{oPath | cloexec | syscall.O_NOFOLLOW, 0, resolveBeneath | resolveNoSymlink | resolveNoMagic}
	rel := path[1:]
	if rel == "" {
		rel = "."
	}
	b, err := syscall.BytePtrFromString(rel)
	if err != nil {
		return -1, syscall.EINVAL
	}
	for {
		fd, _, e := syscall.RawSyscall6(sysOpenat2, uintptr(r.fd), uintptr(unsafe.Pointer(b)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
		if e == syscall.EAGAIN { // a rename somewhere else at the same time
			continue
		}
		return int(fd), e
	}
}

// filesystem makes a detached file system with comma-separated options.
func filesystem(kind, options string, attrs uint64) (int, syscall.Errno) {
	fs, e := fsopen(kind)
	if e != 0 {
		return -1, e
	}
	defer syscall.Close(fs)
	for options != "" {
		opt := options
		options = ""
		for i := range len(opt) {
			if opt[i] == ',' {
				opt, options = opt[:i], opt[i+1:]
				break
			}
		}
		key, value, cmd := opt, "", configSetFlag
		for i := range len(opt) {
			if opt[i] == '=' {
				key, value, cmd = opt[:i], opt[i+1:], configSetString
				break
			}
		}
		if e := fsconfig(fs, cmd, key, value); e != 0 {
			return -1, e
		}
	}
	return mountOf(fs, attrs)
}

func mountOf(fs int, attrs uint64) (int, syscall.Errno) {
	if e := fsconfig(fs, configCreate, "", ""); e != 0 {
		return -1, e
	}
	fd, _, e := syscall.RawSyscall(sysFsmount, uintptr(fs), 1, uintptr(attrs))
	return int(fd), e
}

func fsopen(kind string) (int, syscall.Errno) {
	b, _ := syscall.BytePtrFromString(kind)
	fd, _, e := syscall.RawSyscall(sysFsopen, uintptr(unsafe.Pointer(b)), 1, 0)
	return int(fd), e
}

func fsconfig(fs, cmd int, key, value string) syscall.Errno {
	var k, v *byte
	if key != "" {
		k, _ = syscall.BytePtrFromString(key)
	}
	if cmd == configSetString {
		v, _ = syscall.BytePtrFromString(value)
	}
	_, _, e := syscall.RawSyscall6(sysFsconfig, uintptr(fs), uintptr(cmd), uintptr(unsafe.Pointer(k)), uintptr(unsafe.Pointer(v)), 0, 0)
	return e
}

func openTree(at int, path string) (int, syscall.Errno) {
	b, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, syscall.EINVAL
	}
	fd, _, e := syscall.RawSyscall(sysOpenTree, uintptr(at), uintptr(unsafe.Pointer(b)), openTreeClone|cloexec|atRecursive)
	if e != 0 {
		return -1, e
	}
	return int(fd), 0
}

func cloneAt(at int) (int, syscall.Errno) {
	b := [1]byte{}
	fd, _, e := syscall.RawSyscall(sysOpenTree, uintptr(at), uintptr(unsafe.Pointer(&b)), openTreeClone|cloexec|atRecursive|atEmptyPath)
	return int(fd), e
}

// moveTo attaches the mount fd at path, or at the descriptor at itself where path is empty.
func moveTo(fd, at int, path string) syscall.Errno {
	from := [1]byte{}
	to, err := syscall.BytePtrFromString(path)
	if err != nil {
		return syscall.EINVAL
	}
	flags := uintptr(fromEmpty)
	if path == "" {
		flags |= toEmpty
	}
	_, _, e := syscall.RawSyscall6(sysMoveMount, uintptr(fd), uintptr(unsafe.Pointer(&from)), uintptr(at), uintptr(unsafe.Pointer(to)), flags, 0)
	return e
}

func setattr(fd int, set uint64, flags uintptr) syscall.Errno {
	b := [1]byte{}
	attr := [4]uint64{set}
	_, _, e := syscall.RawSyscall6(sysMountSetattr, uintptr(fd), uintptr(unsafe.Pointer(&b)), atEmptyPath|flags, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	return e
}

func symlinkat(target string, parent int, name string) syscall.Errno {
	t, err := syscall.BytePtrFromString(target)
	if err != nil {
		return syscall.EINVAL
	}
	n, err := syscall.BytePtrFromString(name)
	if err != nil {
		return syscall.EINVAL
	}
	_, _, e := syscall.RawSyscall(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(t)), uintptr(parent), uintptr(unsafe.Pointer(n)))
	return e
}

// cut splits at the first NUL.
func cut(s string) (before, after string) {
	for i := range len(s) {
		if s[i] == 0 {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return syscall.EIO
}

func itoa(n int) string {
	if n < 10 {
		return string([]byte{'0' + byte(n)})
	}
	return itoa(n/10) + string([]byte{'0' + byte(n%10)})
}

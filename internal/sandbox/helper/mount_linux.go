//go:build amd64 || arm64

package helper

import "syscall"

// failure says which step failed. It is no fmt error: package fmt would bring half of the standard library
// in front of this one.
type failure struct {
	what, path string
	errno      syscall.Errno
}

func (f *failure) Error() string { return f.what + " " + f.path + ": " + f.errno.Error() }

// root is the new root while it is built.
//
// Few descriptors are open at any time: the kernel makes a process with several threads wait for milliseconds
// when its table grows beyond 64.
type root struct {
	fd    int
	null  int    // the host's /dev/null, to hide files behind
	stage string // where the new root is mounted before it becomes the root
}

// stages are directories that every system has some of. One that no source lies in is taken.
var stages = []string{"/mnt", "/srv", "/media", "/opt", "/sys", "/boot", "/run", "/var", "/tmp", "/home"}

// lay makes the beginning of every room, what all commands see, and says where it is mounted: nothing of base
// and steps comes from there.
func lay(base, steps []Step) (stage string, err error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return "", &failure{"making mounts private at", "/", errno(err)}
	}
	for _, d := range stages {
		var st syscall.Stat_t
		if syscall.Lstat(d, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR && !inUse(base, d) && !inUse(steps, d) {
			stage = d
			break
		}
	}
	if stage == "" {
		return "", &failure{"finding", "an unused directory to build in, such as /mnt", syscall.ENOENT}
	}
	fd, e := filesystem("tmpfs", "mode=0755,size=16m", attrNosuid|attrNodev)
	if e != 0 {
		return "", &failure{"making", "tmpfs", e}
	}
	defer syscall.Close(fd)
	if e := moveTo(fd, atFdcwd, stage); e != 0 {
		return "", &failure{"mounting the new root at", stage, e}
	}
	if err := onto(stage, base); err != nil {
		syscall.Unmount(stage, mntDetach)
		return "", err
	}
	return stage, nil
}

// enter finishes the room at stage and moves into it.
func enter(stage string, steps []Step) error {
	if err := onto(stage, steps); err != nil {
		return err
	}
	if err := syscall.Chdir(stage); err != nil {
		return &failure{"entering", "the new root", errno(err)}
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return &failure{"changing to", "the new root", errno(err)}
	}
	if err := syscall.Unmount(".", mntDetach); err != nil {
		return &failure{"leaving", "the old root", errno(err)}
	}
	if err := syscall.Chdir("/"); err != nil {
		return &failure{"entering", "/", errno(err)}
	}
	return nil
}

// onto takes steps on the root that is mounted at stage.
func onto(stage string, steps []Step) error {
	fd, err := syscall.Open(stage, oPath|cloexec|syscall.O_DIRECTORY, 0)
	if err != nil {
		return &failure{"opening", stage, errno(err)}
	}
	defer syscall.Close(fd)
	null, e := openTree(atFdcwd, "/dev/null")
	if e != 0 {
		return &failure{"opening", "/dev/null", e}
	}
	defer syscall.Close(null)
	r := &root{fd: fd, null: null, stage: stage}
	for _, s := range steps {
		if e := r.do(s); e != 0 && (s.Flags&Optional == 0 || e != syscall.ENOENT) {
			path := s.A
			if s.B != "" && s.Code != Tmpfs {
				path = s.B
			}
			return &failure{stepName(s.Code), path, e}
		}
	}
	return nil
}

// inUse says whether a source lies in dir.
func inUse(steps []Step, dir string) bool {
	for _, s := range steps {
		if s.Code != Bind && s.Code != Overlay {
			continue
		}
		for _, list := range [2]string{s.A, s.C} {
			for list != "" {
				var path string
				path, list = cut(list)
				if path == dir || len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/' {
					return true
				}
			}
		}
	}
	return false
}

func stepName(c Code) string {
	switch c {
	case Dir:
		return "making the directory"
	case Bind:
		return "mounting"
	case Tmpfs:
		return "mounting a tmpfs at"
	case Proc:
		return "mounting proc at"
	case Pts:
		return "mounting devpts at"
	case Link, File:
		return "making"
	case Overlay:
		return "mounting an overlay at"
	case Pin:
		return "pinning"
	case Mask:
		return "hiding"
	}
	return "sealing"
}

func (r *root) do(s Step) syscall.Errno {
	switch s.Code {
	case Dir:
		fd, e := r.ensure(s.A, true)
		if e != 0 {
			return e
		}
		syscall.Close(fd)
		return 0
	case Bind:
		source, e := openTree(atFdcwd, s.A)
		if e != 0 {
			return e
		}
		var st syscall.Stat_t
		if err := syscall.Fstat(source, &st); err != nil {
			return errno(err)
		}
		return r.attach(source, s.B, st.Mode&syscall.S_IFMT == syscall.S_IFDIR, attributes(s.Flags))
	case Overlay:
		fd, e := r.overlay(s)
		if e != 0 {
			return e
		}
		return r.attach(fd, s.B, true, attributes(s.Flags))
	case Tmpfs:
		fd, e := filesystem("tmpfs", s.B, 0)
		if e != 0 {
			return e
		}
		return r.attach(fd, s.A, true, attributes(s.Flags))
	case Proc:
		return r.proc(s.A)
	case Pts:
		fd, e := filesystem("devpts", "newinstance,mode=0620,ptmxmode=0666", 0)
		if e != 0 {
			return e
		}
		return r.attach(fd, s.A, true, attrNosuid|attrNoexec)
	case Link, File:
		parent, base, e := r.parent(s.B)
		if e != 0 {
			return e
		}
		defer syscall.Close(parent)
		if s.Code == Link {
			return symlinkat(s.A, parent, base)
		}
		fd, err := syscall.Openat(parent, base, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|cloexec, s.Flags)
		if err != nil {
			return errno(err)
		}
		_, err = syscall.Write(fd, []byte(s.A))
		syscall.Close(fd)
		return errno(err)
	case Pin, Mask, Seal:
		at, e := r.open(s.A)
		if e != 0 {
			return e
		}
		switch s.Code {
		case Pin:
			return r.pin(at, attributes(s.Flags))
		case Mask:
			return r.mask(at)
		}
		e = setattr(at, attrReadOnly, 0)
		syscall.Close(at)
		return e
	}
	return syscall.EINVAL
}

// pin mounts what at is on itself, and closes at.
func (r *root) pin(at int, attrs uint64) syscall.Errno {
	fd, e := cloneAt(at)
	if e != 0 {
		return e
	}
	return attach(fd, at, attrs)
}

// proc puts a proc at path, in which this process and its threads do not exist, as a command cannot trace them: they
// show the host's mounts, and some of their files can be written by their user. A root without capabilities could still write to /proc/sys and the like, as the
// kernel looks only at the owner there: those parts are read-only. What shows the host is hidden.
func (r *root) proc(path string) syscall.Errno {
	fd, e := filesystem("proc", "hidepid=ptraceable", 0)
	if e != 0 {
		return e
	}
	if e := r.attach(fd, path, true, attrNosuid|attrNodev|attrNoexec); e != 0 {
		return e
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "mtrr", "scsi"} {
		at, e := r.open(path + "/" + name)
		if e == syscall.ENOENT {
			continue
		}
		if e != 0 {
			return e
		}
		if e := r.pin(at, attrReadOnly|attrNosuid|attrNodev|attrNoexec); e != 0 {
			return e
		}
	}
	for _, name := range []string{"kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug", "kallsyms"} {
		at, e := r.open(path + "/" + name)
		if e == syscall.ENOENT {
			continue
		}
		if e != 0 {
			return e
		}
		if e := r.mask(at); e != 0 {
			return e
		}
	}
	return 0
}

func (r *root) mask(at int) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Fstat(at, &st); err != nil {
		return errno(err)
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		fd, e := filesystem("tmpfs", "mode=0555,size=4k", 0)
		if e != 0 {
			return e
		}
		return attach(fd, at, attrReadOnly|attrNosuid|attrNodev|attrNoexec)
	}
	fd, e := cloneAt(r.null)
	if e != 0 {
		return e
	}
	return attach(fd, at, attrReadOnly|attrNosuid|attrNoexec)
}

// attach puts the detached mount fd at path, which is made where it is missing, and closes fd.
func (r *root) attach(fd int, path string, dir bool, attrs uint64) syscall.Errno {
	at, e := r.ensure(path, dir)
	if e != 0 {
		return e
	}
	return attach(fd, at, attrs)
}

func attach(fd, at int, attrs uint64) syscall.Errno {
	e := setattr(fd, attrs, atRecursive)
	if e == 0 {
		e = moveTo(fd, at, "")
	}
	syscall.Close(fd)
	syscall.Close(at)
	return e
}

// ensure opens path and makes it, and its parents, where it is missing.
func (r *root) ensure(path string, dir bool) (int, syscall.Errno) {
	fd, e := r.open(path)
	if e != syscall.ENOENT {
		return fd, e
	}
	parent, base, e := r.parent(path)
	if e != 0 {
		return -1, e
	}
	defer syscall.Close(parent)
	if dir {
		e = errno(syscall.Mkdirat(parent, base, 0o755))
	} else {
		var err error
		if fd, err = syscall.Openat(parent, base, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|cloexec, 0o644); err == nil {
			syscall.Close(fd)
		}
		e = errno(err)
	}
	if e != 0 && e != syscall.EEXIST {
		return -1, e
	}
	return r.open(path)
}

// parent opens the directory that holds path, made where it is missing.
func (r *root) parent(path string) (int, string, syscall.Errno) {
	i := len(path) - 1
	for path[i] != '/' {
		i--
	}
	dir := path[:i]
	if dir == "" {
		dir = "/"
	}
	fd, e := r.ensure(dir, true)
	return fd, path[i+1:], e
}

func attributes(flags uint32) uint64 {
	a := uint64(attrNosuid)
	if flags&ReadOnly != 0 {
		a |= attrReadOnly
	}
	if flags&NoExec != 0 {
		a |= attrNoexec
	}
	if flags&Devices == 0 {
		a |= attrNodev
	}
	return a
}

// overlay makes a detached overlay of s. Layers are named by descriptor, so that no character of a path means
// anything to the kernel's option parser.
func (r *root) overlay(s Step) (int, syscall.Errno) {
	var open []int
	defer func() {
		for _, fd := range open {
			syscall.Close(fd)
		}
	}()
	layer := func(path string) (string, syscall.Errno) {
		fd, err := syscall.Open(path, oPath|cloexec|syscall.O_DIRECTORY, 0)
		if err == nil {
			open = append(open, fd)
		}
		return "/proc/self/fd/" + itoa(fd), errno(err)
	}
	first, lower := "", ""
	for rest := s.A; rest != ""; {
		var path string
		path, rest = cut(rest)
		fd, e := layer(path)
		if e != 0 {
			return -1, e
		}
		if lower == "" {
			first, lower = fd, fd
		} else {
			lower += ":" + fd
		}
	}
	upper, work := "", ""
	var e syscall.Errno
	if s.C == "" {
		tmp, e := filesystem("tmpfs", "mode=0700", attrNosuid|attrNodev)
		if e != 0 {
			return -1, e
		}
		open = append(open, tmp)
		if e := moveTo(tmp, atFdcwd, r.stage); e != 0 {
			return -1, e
		}
		// The overlay holds on to the layer by itself; nobody else shall see it.
		defer syscall.Unmount(r.stage, mntDetach)
		upper, work = r.stage+"/u", r.stage+"/w"
		for _, d := range []string{upper, work} {
			if err := syscall.Mkdir(d, 0o700); err != nil {
				return -1, errno(err)
			}
		}
		// The top directory of the overlay is the upper one: it looks like the lower one.
		var st syscall.Stat_t
		if err := syscall.Stat(first, &st); err != nil {
			return -1, errno(err)
		}
		if err := syscall.Chown(upper, int(st.Uid), int(st.Gid)); err != nil && err != syscall.EPERM && err != syscall.EINVAL {
			return -1, errno(err)
		}
		if err := syscall.Chmod(upper, st.Mode&0o7777); err != nil {
			return -1, errno(err)
		}
	} else {
		u, w := cut(s.C)
		if upper, e = layer(u); e != 0 {
			return -1, e
		}
		if work, e = layer(w); e != 0 {
			return -1, e
		}
	}
	fs, e := fsopen("overlay")
	if e != 0 {
		return -1, e
	}
	defer syscall.Close(fs)
	for _, kv := range [][2]string{{"lowerdir", lower}, {"upperdir", upper}, {"workdir", work}} {
		if e := fsconfig(fs, configSetString, kv[0], kv[1]); e != 0 {
			return -1, e
		}
	}
	if e := fsconfig(fs, configSetFlag, "userxattr", ""); e != 0 {
		return -1, e
	}
	// The upper layer is a cache or is thrown away: no reason to wait for the disk.
	fsconfig(fs, configSetFlag, "volatile", "")
	return mountOf(fs, 0)
}

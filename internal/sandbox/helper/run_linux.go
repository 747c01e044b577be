//go:build amd64 || arm64

package helper

import (
	"syscall"
	"unsafe"
)

func init() {
	if syscall.Getpid() != 1 {
		return
	}
	if v, _ := syscall.Getenv(Marker); v != "1" {
		return
	}
	run()
}

// Constants that package syscall does not have on every architecture.
const (
	prSetPdeathsig   = 1
	prSetDumpable    = 4
	prCapbsetDrop    = 24
	prSetNoNewPrivs  = 38
	prCapAmbient     = 47
	prCapAmbientZero = 4

	sysCloseRange      = 436
	seccompSetFilter   = 1
	seccompFilterTsync = 1
)

// run is the whole life of the helper. It is on the main thread, to which package initialisation is locked;
// what is dropped here is dropped for the command, which is forked from this thread.
func run() {
	// From here on the death of the thread that started us takes this namespace's first process, and with
	// it all others. Had it died before, the control socket is at its end and reading the program fails.
	prctl(prSetPdeathsig, uintptr(syscall.SIGKILL), 0)
	syscall.CloseOnExec(ControlFD)
	p := receive()
	if err := build(p.Steps); err != nil {
		fail(err.Error())
	}
	loopback()
	// Whatever is left open from here or from outside goes.
	if _, _, e := syscall.RawSyscall(sysCloseRange, ControlFD+1, uintptr(^uint32(0)), 0); e != 0 {
		fail("closing descriptors: " + e.Error())
	}
	// Nothing in the sandbox may look into this process: it has the host's program file open, and its other
	// threads keep their capabilities over these namespaces.
	prctl(prSetDumpable, 0, 0)
	drop(p)
	pid, code, msg := start(p)
	if pid == 0 {
		syscall.Write(2, []byte(msg+"\n"))
		ended(syscall.WaitStatus(code << 8))
	}
	// The command holds its own copies: a reader of the output waits for it, not for us.
	for fd := range 3 {
		syscall.Close(fd)
	}
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			fail("waiting for the command: " + err.Error())
		}
		if got == pid {
			ended(ws)
		}
	}
}

func receive() *Program {
	head := make([]byte, 4)
	if !readFull(head) {
		syscall.Exit(1)
	}
	b := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16|int(head[3])<<24)
	if !readFull(b) {
		syscall.Exit(1)
	}
	p, ok := Decode(b)
	if !ok || len(p.Argv) == 0 {
		fail("the program that the parent sent makes no sense")
	}
	return p
}

func readFull(b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(ControlFD, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// drop takes away what the command must not have: capabilities, privileges to be gained, system calls.
func drop(p *Program) {
	for _, l := range p.Limits {
		lim := syscall.Rlimit{Cur: l.Value, Max: l.Value}
		var old syscall.Rlimit
		if syscall.Getrlimit(int(l.Resource), &old) == nil && old.Max < l.Value {
			lim = syscall.Rlimit{Cur: old.Max, Max: old.Max}
		}
		if err := syscall.Setrlimit(int(l.Resource), &lim); err != nil {
			fail("setting a limit: " + err.Error())
		}
	}
	for c := uintptr(0); c < 64; c++ {
		if e := prctl(prCapbsetDrop, c, 0); e != 0 {
			if e == syscall.EINVAL && c > 0 {
				break // the kernel has no more
			}
			fail("dropping a capability: " + e.Error())
		}
	}
	if e := prctl(prCapAmbient, prCapAmbientZero, 0); e != 0 {
		fail("dropping ambient capabilities: " + e.Error())
	}
	if e := clearInheritable(); e != 0 {
		fail("dropping inheritable capabilities: " + e.Error())
	}
	if e := prctl(prSetNoNewPrivs, 1, 0); e != 0 {
		fail("forbidding new privileges: " + e.Error())
	}
	if n := len(p.Filter) / 8; n > 0 {
		prog := struct {
			len    uint16
			filter unsafe.Pointer
		}{uint16(n), unsafe.Pointer(&p.Filter[0])}
		_, _, e := syscall.RawSyscall(sysSeccomp, seccompSetFilter, seccompFilterTsync, uintptr(unsafe.Pointer(&prog)))
		if e != 0 {
			fail("installing the system call filter: " + e.Error())
		}
	}
}

func clearInheritable() syscall.Errno {
	const inheritable = 2 // after effective and permitted
	hdr := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var d [2][3]uint32
	if _, _, e := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&d)), 0); e != 0 {
		return e
	}
	d[0][inheritable], d[1][inheritable] = 0, 0
	_, _, e := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&d)), 0)
	return e
}

// start runs the command. When it cannot, pid is 0 and code and msg say why in the manner of a shell.
func start(p *Program) (pid, code int, msg string) {
	var st syscall.Stat_t
	if err := syscall.Stat(p.Dir, &st); err != nil {
		return 0, 126, "belay: cannot enter " + p.Dir + ": " + err.Error()
	}
	path, code, msg := look(p.Argv[0], p.Env)
	if path == "" {
		return 0, code, msg
	}
	attr := &syscall.ProcAttr{Dir: p.Dir, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if p.SetIDs {
		attr.Sys.Credential = &syscall.Credential{Uid: p.UID, Gid: p.GID}
	}
	pid, err := syscall.ForkExec(path, p.Argv, attr)
	if err == syscall.ENOEXEC {
		// A script without an interpreter line: what every shell does.
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", path}, p.Argv[1:]...), attr)
	}
	if err != nil {
		return 0, 126, "belay: " + path + ": " + err.Error()
	}
	return pid, 0, ""
}

func look(name string, env []string) (path string, code int, msg string) {
	for i := range len(name) {
		if name[i] == '/' {
			var st syscall.Stat_t
			if name[0] == '/' && syscall.Stat(name, &st) == syscall.ENOENT {
				return "", 127, "belay: " + name + ": no such file in the sandbox"
			}
			return name, 0, ""
		}
	}
	search := ""
	for _, e := range env {
		if len(e) > 5 && e[:5] == "PATH=" {
			search = e[5:]
		}
	}
	for rest := search; rest != ""; {
		dir := rest
		rest = ""
		for i := range len(dir) {
			if dir[i] == ':' {
				dir, rest = dir[:i], dir[i+1:]
				break
			}
		}
		if dir == "" {
			continue
		}
		full := dir + "/" + name
		var st syscall.Stat_t
		if syscall.Stat(full, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Mode&0o111 != 0 {
			return full, 0, ""
		}
	}
	return "", 127, "belay: " + name + ": command not found; the sandbox has PATH=" + search
}

func prctl(op, a, b uintptr) syscall.Errno {
	_, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, op, a, b, 0, 0, 0)
	return e
}

func ended(ws syscall.WaitStatus) {
	send([]byte{Ended, byte(ws), byte(ws >> 8), byte(ws >> 16), byte(ws >> 24)})
}

func fail(msg string) { send(append([]byte{Failed}, msg...)) }

// send says how it went and ends, and with it every process of the namespace.
func send(b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(ControlFD, b)
		if err != nil && err != syscall.EINTR {
			break
		}
		b = b[max(n, 0):]
	}
	syscall.Exit(0)
}

// loopback brings up lo. Where that fails there is no network at all, which is no less safe.
func loopback() {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	req := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{name: [16]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req)))
	syscall.Close(fd)
}

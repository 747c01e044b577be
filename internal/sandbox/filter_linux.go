//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// refused are the system calls that answer EPERM: looking into other processes, changing mounts or name
// spaces, loading code into the kernel, and large interfaces that no build or test needs.
var refused = append([]uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, 467, // open_tree_attr
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_VHANGUP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}, refusedHere...)

// missing answer ENOSYS, so that libraries fall back to what can be judged: some take their flags by pointer.
var missing = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_FCHMODAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// families of sockets that exist inside; others but netlink's routes answer EAFNOSUPPORT.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets in struct seccomp_data.
const (
	dataNr   = 0
	dataArch = 4
	dataArg0 = 16 // low word, little endian
	dataArg1 = 24
	dataArg2 = 32
	dataArg3 = 40
)

// withMode is a system call that can give a file the right to run as its owner. A command that runs as the
// owner of the workspace could leave such a program for others to start outside.
type withMode struct{ nr, mode, flags uint32 } // where the mode is; where the open flags are, 0 for none

var setID = append([]withMode{
	{unix.SYS_FCHMOD, dataArg1, 0}, {unix.SYS_FCHMODAT, dataArg2, 0}, {unix.SYS_MKNODAT, dataArg2, 0}, {unix.SYS_OPENAT, dataArg3, dataArg2},
}, setIDHere...)

// ofOthers are system calls that change how a process runs and can name one by its number. They may name the caller
// only: the sandbox's first process belongs to the same user, and what is done to it every later command inherits.
// What a command can see of that process, and of its threads, is closed in the helper's proc; signals it drops.
var ofOthers = []struct {
	nr   uint32
	args []argument // what the arguments must be
}{
	{unix.SYS_PRLIMIT64, []argument{{dataArg0, 0}}},
	{unix.SYS_SCHED_SETSCHEDULER, []argument{{dataArg0, 0}}},
	{unix.SYS_SCHED_SETPARAM, []argument{{dataArg0, 0}}},
	{unix.SYS_SCHED_SETATTR, []argument{{dataArg0, 0}}},
	{unix.SYS_SETPRIORITY, []argument{{dataArg0, unix.PRIO_PROCESS}, {dataArg1, 0}}},
	{unix.SYS_IOPRIO_SET, []argument{{dataArg0, 1}, {dataArg1, 0}}}, // IOPRIO_WHO_PROCESS
}

type argument struct{ offset, value uint32 }

// tracing are the calls of refused that debuggers need. What is traced keeps its own filter.
var tracing = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV}

// filter is the seccomp program, encoded for the kernel. It answers with errors and never kills. With debug, programs
// may look into other processes of the sandbox.
func filter(debug bool) []byte {
	var prog []unix.SockFilter
	emit := func(code uint16, k uint32, jt, jf uint8) {
		prog = append(prog, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
	}
	load := func(offset uint32) { emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
	ret := func(k uint32) { emit(unix.BPF_RET|unix.BPF_K, k, 0, 0) }
	fail := func(e unix.Errno) { ret(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	const (
		eq  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		set = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	)
	load(dataArch)
	emit(eq, auditArch, 1, 0)
	fail(unix.ENOSYS) // another ABI: 32 bit calls have other numbers
	load(dataNr)
	emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0x40000000, 0, 1) // x32
	fail(unix.ENOSYS)
	for _, nr := range missing {
		emit(eq, nr, 0, 1)
		fail(unix.ENOSYS)
	}
	emit(eq, unix.SYS_FALLOCATE, 0, 1)
	fail(unix.EOPNOTSUPP) // what it takes is not counted as written: libraries then write zeros
	for _, nr := range refused {
		if debug && slices.Contains(tracing, nr) {
			continue
		}
		emit(eq, nr, 0, 1)
		fail(unix.EPERM)
	}
	for _, c := range ofOthers {
		n := uint8(len(c.args))
		emit(eq, c.nr, 0, 2*n+2)
		for i, a := range c.args {
			load(a.offset)
			emit(eq, a.value, 0, 2*(n-uint8(i))-1)
		}
		ret(unix.SECCOMP_RET_ALLOW)
		fail(unix.EPERM)
	}
	emit(eq, unix.SYS_CLONE, 0, 4)
	load(dataArg0)
	emit(set, newNamespaces, 0, 1)
	fail(unix.EPERM)
	ret(unix.SECCOMP_RET_ALLOW)
	emit(eq, unix.SYS_IOCTL, 0, 5)
	load(dataArg1)
	emit(eq, unix.TIOCSTI, 1, 0)
	emit(eq, 0x541c, 0, 1) // TIOCLINUX
	fail(unix.EPERM)
	ret(unix.SECCOMP_RET_ALLOW)
	for _, c := range setID {
		emit(eq, c.nr, 0, 6)
		if c.flags != 0 {
			prog[len(prog)-1].Jf = 8
			load(c.flags)
			emit(set, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 0, 5)
		}
		load(c.mode)
		emit(set, unix.S_ISUID, 2, 0)
		emit(set, unix.S_ISGID, 1, 0)
		ret(unix.SECCOMP_RET_ALLOW)
		fail(unix.EPERM)
		load(dataNr)
	}
	for _, nr := range []uint32{unix.SYS_SOCKETPAIR, unix.SYS_SOCKET} {
		n := uint8(len(families))
		emit(eq, nr, 0, n+7)
		load(dataArg0)
		for i, f := range families {
			emit(eq, f, n+4-uint8(i), 0)
		}
		emit(eq, unix.AF_NETLINK, 1, 0)
		fail(unix.EAFNOSUPPORT)
		load(dataArg2) // of netlink only what tells about addresses and routes
		emit(eq, unix.NETLINK_ROUTE, 1, 0)
		fail(unix.EPROTONOSUPPORT)
		ret(unix.SECCOMP_RET_ALLOW)
	}
	ret(unix.SECCOMP_RET_ALLOW)

	out := make([]byte, 0, 8*len(prog))
	for _, p := range prog {
		out = binary.NativeEndian.AppendUint16(out, p.Code)
		out = append(out, p.Jt, p.Jf)
		out = binary.NativeEndian.AppendUint32(out, p.K)
	}
	return out
}

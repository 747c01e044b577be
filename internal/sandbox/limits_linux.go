//go:build amd64 || arm64

package sandbox

import (
	"time"

	"golang.org/x/sys/unix"

	"belay/internal/sandbox/helper"
)

// Defaults of Limits.
const (
	defaultProcesses = 4096
	defaultDisk      = 16 << 30
	defaultFiles     = 500_000
	defaultOpenFiles = 65536
)

// effective fills in the defaults, which depend on what this machine has.
func (s *Sandbox) effective(l Limits) Limits {
	l = l.merge(s.cfg.Limits)
	var info unix.Sysinfo_t
	if l.Memory == 0 && unix.Sysinfo(&info) == nil {
		l.Memory = int64(info.Totalram) * int64(info.Unit) / 4 * 3
	}
	var fs unix.Statfs_t
	known := unix.Statfs(s.workspace, &fs) == nil
	if l.Disk == 0 {
		l.Disk = defaultDisk
		if free := int64(fs.Bavail) * fs.Bsize / 2; known && free < l.Disk {
			l.Disk = max(free, 1<<20)
		}
	}
	if l.Files == 0 {
		l.Files = defaultFiles
		if free := int64(fs.Ffree) / 2; known && fs.Files > 0 && free < l.Files {
			l.Files = max(free, 1000)
		}
	}
	if l.Processes == 0 {
		l.Processes = defaultProcesses
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = defaultOpenFiles
	}
	return l
}

// helperThreads is how many threads the helper has at most: they count as the user's.
const helperThreads = 12

// rlimits are the limits that the kernel holds for each process or user. A hard limit of the host that is lower stays.
func (l Limits) rlimits(grouped bool) []helper.Limit {
	limits := []helper.Limit{
		{Resource: unix.RLIMIT_CORE, Value: 0},
		{Resource: unix.RLIMIT_NOFILE, Value: uint64(l.OpenFiles)},
		{Resource: unix.RLIMIT_NPROC, Value: uint64(l.Processes + helperThreads)},
		{Resource: unix.RLIMIT_MEMLOCK, Value: 8 << 20},
		{Resource: unix.RLIMIT_MSGQUEUE, Value: 819200},
		{Resource: unix.RLIMIT_FSIZE, Value: uint64(l.Disk)},
	}
	if l.CPU > 0 {
		limits = append(limits, helper.Limit{Resource: unix.RLIMIT_CPU, Value: uint64((l.CPU + time.Second - 1) / time.Second)})
	}
	if !grouped {
		// One process alone cannot go far beyond, also not between two looks. Stacks and reserved heaps of threads count
		// here without being used, so there is room for them.
		limits = append(limits, helper.Limit{Resource: unix.RLIMIT_DATA, Value: uint64(2*l.Memory + 1<<28)})
	}
	return limits
}

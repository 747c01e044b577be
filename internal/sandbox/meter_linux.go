//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"belay/tool"
)

// What the kernel does not limit for a whole call is looked at again and again while the call runs: the memory and the
// number of processes where there are no cgroups; processor time, what is written to disks and the files that are made
// everywhere. Between two looks a command can go beyond a limit by what it manages in that time.

const (
	firstLook   = 30 * time.Millisecond // most commands are over by then
	betweenLook = 50 * time.Millisecond
)

// meter looks at one call.
type meter struct {
	helper    int // process id
	limits    Limits
	group     *group
	grouped   map[string]bool
	workspace string
	began     time.Time
	fsFiles   int64 // free files of the workspace's file system in the beginning; -1 where it does not say
	killed    int64 // of the memory group, in the beginning
	orphans   atomic.Int64

	stop chan struct{}
	done sync.WaitGroup
}

// start looks until end is called, and calls exceed at most once, with what is beyond its limit.
func (m *meter) start(exceed func(what string)) {
	m.began, m.stop = time.Now(), make(chan struct{})
	m.killed = m.group.kills("memory")
	m.fsFiles = -1
	var st unix.Statfs_t
	if unix.Statfs(m.workspace, &st) == nil && st.Files > 0 {
		m.fsFiles = int64(st.Ffree)
	}
	m.done.Go(func() {
		timer := time.NewTimer(firstLook)
		defer timer.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-timer.C:
			}
			from := time.Now()
			if what := m.look(); what != "" {
				exceed(what)
				return
			}
			timer.Reset(max(betweenLook, 3*time.Since(from)))
		}
	})
}

// signs says which limit a call has met that ended by itself, where that can be told.
func (m *meter) signs(exit tool.Exit) []string {
	switch {
	case len(exit.Denied) > 0 && strings.HasPrefix(exit.Denied[0], "limit "):
	case m.group.kills("memory") > m.killed:
		return []string{m.memory()}
	case exit.Code == 128+int(unix.SIGXFSZ):
		return []string{m.disk()}
	case m.limits.CPU > 0 && (exit.Code == 128+int(unix.SIGXCPU) || exit.Code == 128+int(unix.SIGKILL) && exit.Duration >= m.limits.CPU && !exit.TimedOut):
		return []string{m.cpu()}
	}
	return nil
}

func (m *meter) cpu() string {
	return fmt.Sprintf("limit cpu: all processes together used more than %s of processor time", m.limits.CPU)
}

// meter prepares to look at a call, and has the kernel hold what it can.
func (h *standing) meter(limits Limits, workspace string) *meter {
	<-h.entered
	m := &meter{helper: h.process.Pid, limits: limits, group: h.group, workspace: workspace, grouped: map[string]bool{}}
	m.grouped["memory"] = h.group.limit("memory", limits.Memory)
	m.grouped["pids"] = h.group.limit("pids", int64(limits.Processes+helperThreads))
	return m
}

func (m *meter) end() {
	close(m.stop)
	m.done.Wait()
}

// look says what is beyond its limit, "" is nothing.
func (m *meter) look() string {
	if m.group.kills("memory") > m.killed {
		return m.memory()
	}
	var use usage
	use.add(m.helper, true)
	switch {
	case m.limits.CPU > 0 && use.cpu > m.limits.CPU:
		return m.cpu()
	case !m.grouped["memory"] && use.memory > m.limits.Memory:
		return m.memory()
	case use.processes > m.limits.Processes && !m.grouped["pids"]:
		return fmt.Sprintf("limit pids: there were more than %d processes and threads", m.limits.Processes)
	case use.written+m.orphans.Load() > m.limits.Disk:
		return m.disk()
	}
	var st unix.Statfs_t
	if m.fsFiles >= 0 && unix.Statfs(m.workspace, &st) == nil && m.fsFiles-int64(st.Ffree) > m.limits.Files && m.made() > m.limits.Files {
		return fmt.Sprintf("limit files: more than %d files and directories were made", m.limits.Files)
	}
	return ""
}

func (m *meter) memory() string {
	return "limit memory: all processes together needed more than " + bytesText(m.limits.Memory)
}

func (m *meter) disk() string {
	return "limit disk: more than " + bytesText(m.limits.Disk) + " were written"
}

// made counts what is new in the workspace, up to the limit: others on this machine make files too.
func (m *meter) made() (n int64) {
	began := m.began.Add(-time.Second)
	filepath.WalkDir(m.workspace, func(_ string, d fs.DirEntry, err error) error {
		if d == nil || err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if changed(info).After(began) {
			n++
		}
		if n > m.limits.Files {
			return fs.SkipAll
		}
		return nil
	})
	return n
}

// usage is what a tree of processes uses.
type usage struct {
	processes int // and threads
	cpu       time.Duration
	memory    int64 // bytes that are nobody else's
	written   int64 // bytes
}

// ticks is how many parts of a second the kernel counts processor time in, on every architecture.
const ticks = 100

// add adds a process and all that have come from it. Of the helper itself, the first, only what it has waited for counts.
func (u *usage) add(pid int, first bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // from the third: the state
	if len(fields) < 18 {
		return
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i-3], 10, 64); return n }
	spent := number(16) + number(17) // of children that were waited for
	if !first {
		spent += number(14) + number(15)
		u.processes += int(number(20))
		if statm, err := os.ReadFile(dir + "/statm"); err == nil {
			if f := strings.Fields(string(statm)); len(f) > 2 {
				resident, _ := strconv.ParseInt(f[1], 10, 64)
				shared, _ := strconv.ParseInt(f[2], 10, 64)
				u.memory += (resident - shared) * int64(os.Getpagesize())
			}
		}
		if io, err := os.ReadFile(dir + "/io"); err == nil {
			for line := range strings.Lines(string(io)) {
				if v, ok := strings.CutPrefix(line, "write_bytes: "); ok {
					n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
					u.written += n
				}
			}
		}
	}
	u.cpu += time.Duration(spent) * time.Second / ticks
	threads, _ := os.ReadDir(dir + "/task")
	for _, t := range threads {
		children, _ := os.ReadFile(dir + "/task/" + t.Name() + "/children")
		for _, c := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(c); err == nil {
				u.add(n, false)
			}
		}
	}
}

// bytesText is a number of bytes for a person.
func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(unit.size), 'f', 1, 64), ".0") + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

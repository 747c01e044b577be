//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// controllers are the kernel's controllers that limit a call, by the names of Level.Groups.
var controllers = []string{"memory", "pids"}

// knobs are the files of a controller in both versions of cgroups.
type knobs struct{ limit, swap, kills string }

var knobsOf = map[bool]map[string]knobs{ // by: is it version 2
	false: {"memory": {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"}, "pids": {"pids.max", "", "pids.events"}},
	true:  {"memory": {"memory.max", "memory.swap.max", "memory.events"}, "pids": {"pids.max", "", "pids.events"}},
}

// hierarchy is where groups of one controller can be made.
type hierarchy struct {
	parent string
	v2     bool
}

// hierarchies finds, once, where this process may make groups.
var hierarchies = sync.OnceValue(func() map[string]hierarchy {
	found := map[string]hierarchy{}
	own := ownGroups()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 || r[0] != "cgroup" && r[0] != "cgroup2" {
			continue
		}
		for _, name := range controllers {
			v2 := r[0] == "cgroup2"
			if !v2 && !slices.Contains(strings.Split(r[2], ","), name) {
				continue
			}
			if _, known := found[name]; known {
				continue
			}
			path := own[name]
			if v2 {
				path = own[""]
			}
			if parent := groupParent(l[4], l[3], path, name, v2); parent != "" {
				found[name] = hierarchy{parent, v2}
			}
		}
	}
	for _, h := range found {
		sweep(h.parent)
	}
	return found
})

// ownGroups are the groups of this process by controller; "" is that of version 2.
func ownGroups() map[string]string {
	own := map[string]string{}
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 {
			for _, name := range strings.Split(parts[1], ",") {
				own[name] = parts[2]
			}
		}
	}
	return own
}

// groupParent is the directory below which a group with the controller can be made and filled: this process's own
// group or, since one of version 2 that holds processes hands on no controllers, one above it.
func groupParent(mount, root, own, controller string, v2 bool) string {
	rel, ok := strings.CutPrefix(own, strings.TrimSuffix(root, "/"))
	if !ok {
		rel = ""
	}
	for dir := filepath.Join(mount, rel); within(dir, mount); dir = filepath.Dir(dir) {
		try := filepath.Join(dir, fmt.Sprintf("%s%d-probe", groupPrefix, os.Getpid()))
		if os.Mkdir(try, 0o755) != nil {
			if dir == mount {
				break
			}
			continue
		}
		err := os.WriteFile(filepath.Join(try, knobsOf[v2][controller].limit), []byte("1048576"), 0)
		os.Remove(try)
		if err == nil {
			return dir
		}
		if dir == mount {
			break
		}
	}
	return ""
}

const groupPrefix = "belay-sandbox-"

// sweep removes the empty groups of processes that were killed.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() && syscall.Kill(n, 0) == syscall.ESRCH {
			os.Remove(dir)
		}
	}
}

var groupNumber atomic.Int64

// group holds a helper and all of its commands.
type group struct {
	dirs map[string]string // by controller
	v2   map[string]bool
	set  map[string]int64 // limits that hold now
}

// newGroup makes a group and puts a process in. What cannot be had is left out.
func newGroup(pid int, wanted []string) *group {
	g := &group{dirs: map[string]string{}, v2: map[string]bool{}, set: map[string]int64{}}
	name := fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groupNumber.Add(1))
	for _, c := range wanted {
		h, ok := hierarchies()[c]
		if !ok {
			continue
		}
		dir := filepath.Join(h.parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			os.Remove(dir)
			continue
		}
		if h.v2 && c == "memory" {
			os.WriteFile(filepath.Join(dir, "memory.oom.group"), []byte("1"), 0)
		}
		g.dirs[c], g.v2[c] = dir, h.v2
	}
	return g
}

// limit has the kernel hold a limit. It says whether that is so.
func (g *group) limit(controller string, n int64) bool {
	dir, ok := g.dirs[controller]
	if !ok {
		return false
	}
	if g.set[controller] == n {
		return true
	}
	k := knobsOf[g.v2[controller]][controller]
	value := []byte(strconv.FormatInt(n, 10))
	if k.swap != "" && !g.v2[controller] {
		os.WriteFile(filepath.Join(dir, k.swap), []byte("-1"), 0) // never below the limit without swap
	}
	if os.WriteFile(filepath.Join(dir, k.limit), value, 0) != nil {
		return false
	}
	switch {
	case k.swap == "":
	case g.v2[controller]:
		os.WriteFile(filepath.Join(dir, k.swap), []byte("0"), 0)
	default:
		os.WriteFile(filepath.Join(dir, k.swap), value, 0)
	}
	g.set[controller] = n
	return true
}

// kills counts how often the limit made the kernel kill or refuse something.
func (g *group) kills(controller string) (n int64) {
	dir, ok := g.dirs[controller]
	if !ok {
		return 0
	}
	data, _ := os.ReadFile(filepath.Join(dir, knobsOf[g.v2[controller]][controller].kills))
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "oom_kill" || controller == "pids" && name == "max" {
			n, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return n
}

// remove removes a group whose processes are gone.
func (g *group) remove() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		os.Remove(dir)
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory runs belay once more and looks at its process tree all the time. It returns the highest sum of
// resident pages that it saw, in MB: as the system counts it for each process, and with shared pages once.
func (d *driver) memory(turns int) (peak, shared float64, err error) {
	s, err := newServer(turns, d.line)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	dir, err := d.fresh()
	if err != nil {
		return 0, 0, err
	}
	cmd, _, err := d.start("agent", job{URL: s.url, Dir: dir, Turns: turns, Line: d.line})
	if err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err == nil && peak == 0 {
				err = fmt.Errorf("the memory of a process cannot be seen here: there is no /proc")
			}
			return peak, shared, err
		case <-time.After(3 * time.Millisecond):
		}
		var all, once float64
		for _, pid := range tree(cmd.Process.Pid) {
			rss, pss := resident(pid)
			all, once = all+rss, once+pss
		}
		peak, shared = max(peak, all), max(shared, once)
	}
}

// tree is a process and all below it.
func tree(pid int) []int {
	pids := []int{pid}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		b, _ := os.ReadFile(file) // it may have ended since
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, tree(child)...)
			}
		}
	}
	return pids
}

// resident gives a process's resident memory in MB, and its proportional share of it.
func resident(pid int) (rss, pss float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(b)) {
		field := strings.Fields(line)
		if len(field) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(field[1], 64)
		switch field[0] {
		case "Rss:":
			rss = kb / 1000
		case "Pss:":
			pss = kb / 1000
		}
	}
	return rss, pss
}

//go:build failpoint && !windows

package failpoint

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// On says whether this program was built to be killed.
const On = true

var (
	name, times = chosen()
	hits        atomic.Int64
)

// chosen reads BELAY_FAILPOINT, "NAME:N": the process ends at the N-th passage of the moment NAME.
func chosen() (string, int64) {
	name, count, _ := strings.Cut(os.Getenv("BELAY_FAILPOINT"), ":")
	n, _ := strconv.ParseInt(count, 10, 64)
	return name, n
}

// Hit ends the process by SIGKILL where this moment was chosen.
func Hit(moment string) {
	if !slices.Contains(Names, moment) {
		panic("failpoint: no moment is called " + moment)
	}
	if moment == name && hits.Add(1) == times {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

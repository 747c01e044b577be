package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"belay/internal/redact"
	"belay/internal/render"
	"belay/loop"
)

// crashed writes what a bug report needs into a file and tells the person one line. Arguments are left out:
// they may hold what nobody wants in a report.
func (a *app) crashed(v any, args []string) int {
	verb := ""
	if len(args) > 0 {
		verb = args[0]
		for _, c := range a.root().Commands() {
			if c.Name() == verb {
				verb = c.CommandPath()
			}
		}
		if verb == args[0] {
			verb = "an unknown command"
		}
	}
	report := fmt.Sprintf("belay %s, %s, %s/%s\ncommand: %s\ntime: %s\n\npanic: %v\n\n%s", version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH, verb, time.Now().UTC().Format(time.RFC3339), v, debug.Stack())
	path, err := a.storeCrash(redact.Scrub(report, os.Environ()))
	where := "the report is in " + path
	if err != nil {
		where = "no report could be written (" + err.Error() + ")"
	}
	line := render.Cut(render.Line(fmt.Sprintf("belay has a bug: %v", v)), 200) + "; " + where
	if wantsJSON(args) {
		a.json(failure{Error: line, Exit: int(loop.ExitFault)})
	} else {
		fmt.Fprintln(a.err, line)
	}
	return int(loop.ExitFault)
}

func (a *app) storeCrash(report string) (string, error) {
	dir, err := a.safeHome()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		dir = os.TempDir()
	}
	file, err := os.CreateTemp(dir, "crash-"+time.Now().UTC().Format("20060102T150405")+"-*.txt")
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		file, err = os.CreateTemp("", "belay-crash-*.txt")
	}
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(report)
	path, _ := filepath.Abs(file.Name())
	return path, errors.Join(err, file.Close())
}

// safeHome is the state directory, found even while something panics.
func (a *app) safeHome() (dir string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return a.home()
}

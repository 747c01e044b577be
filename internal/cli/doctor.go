package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"belay/internal/config"
	"belay/internal/keys"
	"belay/internal/render"
	"belay/internal/sandbox"
	"belay/loop"
	"belay/model"
	"belay/model/openai"
)

// health is what a finding means for runs.
type health string

const (
	healthy health = "ok"
	weak    health = "warn" // runs are possible, and less than they could be
	broken  health = "fail" // runs are impossible
)

// finding is one thing that doctor looked at.
type finding struct {
	Name   string   `json:"name"`
	Status health   `json:"status"`
	Detail string   `json:"detail"`
	Holds  []string `json:"holds,omitempty"` // of the sandbox: what it makes impossible
	Lacks  []string `json:"lacks,omitempty"` // of the sandbox: what it does not limit
	Advice string   `json:"advice,omitempty"`
}

// diagnosis is what --json prints.
type diagnosis struct {
	Version  string    `json:"version"`
	OK       bool      `json:"ok"` // runs are possible
	Findings []finding `json:"findings"`
}

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what works on this machine, what does not, and what to do about it",
		Long: `Look at everything that a run in the current folder needs: the sandbox and what it holds, the state directory, the
disk, programs, keys (by name, never their values), model servers on this machine, settings and whether the project is
trusted, and the model. Each is ok, warn or fail, with advice. Exit 0 unless something makes runs impossible, then 7.`,
		Annotations: map[string]string{exitStatus: "0 runs are possible · 7 something makes them impossible · 2 usage"},
		Example:     "  belay doctor\n  belay doctor --json | jq '.findings[] | select(.status != \"ok\")'",
		Args:        exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.doctor(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	d := diagnosis{Version: version(), OK: true}
	servers := make(chan []model.Spec, 1)
	go func() { servers <- localServers(ctx, openai.LocalAddrs) }()
	d.add(finding{Name: "belay", Status: healthy, Detail: fmt.Sprintf("%s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)})
	d.add(sandboxFinding(sandbox.Probe(ctx)))
	home, err := a.home()
	if err == nil {
		err = writable(home)
	}
	if err != nil {
		d.add(finding{Name: "state", Status: broken, Detail: err.Error(), Advice: "set BELAY_HOME to a folder that you can write to"})
	} else {
		d.add(stateFinding(home), diskFinding(home))
	}
	d.add(program("bash", "the model's shell commands run in it"), program("git", "what a run changed is easiest to see in a repository"))
	s, notices, unset := a.settings("", config.Settings{})
	for _, provider := range []string{"anthropic", "openai", "gemini"} {
		d.add(keyFinding(provider, s.KeyFiles))
	}
	local := <-servers
	d.add(serverFinding(local))
	if unset != nil {
		d.add(finding{Name: "settings", Status: broken, Detail: unset.Error(), Advice: "mend it where it says"})
	} else {
		d.add(a.projectFinding(), a.trifectaFinding(s))
		d.add(settingFindings(s, notices)...)
		d.add(modelFinding(s, local))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if asJSON {
		err = a.json(d)
	} else {
		err = a.lines(d.lines(a.screen())...)
	}
	if err == nil && !d.OK {
		return outcome(loop.ExitEnvironment)
	}
	return err
}

func (d *diagnosis) add(findings ...finding) {
	for _, f := range findings {
		d.Findings = append(d.Findings, f)
		d.OK = d.OK && f.Status != broken
	}
}

func (d *diagnosis) lines(s render.Screen) []string {
	var lines []string
	for _, f := range d.Findings {
		word := s.Good("ok  ")
		switch f.Status {
		case weak:
			word = s.Alarm("warn")
		case broken:
			word = s.Bad("fail")
		}
		lines = append(lines, fmt.Sprintf("%s  %s  %s", word, s.Bold(fmt.Sprintf("%-9s", f.Name)), render.Line(f.Detail)))
		for _, part := range []struct {
			name string
			list []string
		}{{"holds", f.Holds}, {"gap  ", f.Lacks}} {
			for _, item := range part.list {
				lines = append(lines, "                 "+s.Dim(part.name)+" "+render.Line(item))
			}
		}
		if f.Advice != "" {
			lines = append(lines, "                 "+s.Dim("→")+" "+render.Line(f.Advice))
		}
	}
	if d.OK {
		return append(lines, "", s.Bold("runs are possible"))
	}
	return append(lines, "", s.Bold("runs are not possible before what failed is mended"))
}

func sandboxFinding(level sandbox.Level) finding {
	if level.Isolation == sandbox.None {
		return finding{Name: "sandbox", Status: weak, Detail: "none: runs are refused, or read-only with --sandbox best-effort", Advice: level.Reason}
	}
	return finding{Name: "sandbox", Status: healthy, Detail: string(level.Isolation) + ", " + level.Name(), Holds: level.Holds, Lacks: level.Lacks}
}

// writable makes the folder and a file in it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString("belay doctor was here\n")
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

func stateFinding(home string) finding {
	f := finding{Name: "state", Status: healthy, Detail: home}
	if info, err := os.Stat(home); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		f.Status, f.Detail = weak, fmt.Sprintf("%s has mode %04o: others on this machine can look into your runs", home, info.Mode().Perm())
		f.Advice = "chmod 700 " + home
	}
	return f
}

// Free space below which a journal may soon be cut short, and below which doctor warns, in bytes.
const (
	diskNeeded = 64 << 20
	diskWanted = 1 << 30
)

func diskFinding(home string) finding {
	free, known := diskFree(home)
	f := finding{Name: "disk", Status: healthy, Detail: gigabytes(free) + " free for journals and caches"}
	switch {
	case !known:
		f.Detail = "how much is free cannot be told on this system"
	case free < diskNeeded:
		f.Status, f.Advice = broken, "make room, or set BELAY_HOME to another disk"
	case free < diskWanted:
		f.Status, f.Advice = weak, "make room: build caches grow"
	}
	return f
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// program says whether an executable is found. What it is for is said where it is missing.
func program(name, why string) finding {
	path, err := exec.LookPath(name)
	if err != nil {
		return finding{Name: name, Status: weak, Detail: "not found: " + why, Advice: "install " + name}
	}
	return finding{Name: name, Status: healthy, Detail: path}
}

// keyFinding says whether a provider's key is there, by name alone.
func keyFinding(provider string, files map[string]string) finding {
	f := finding{Name: "key", Status: healthy}
	_, err := keys.Find(provider, keys.Config{Files: files})
	switch name := keys.EnvName(provider); {
	case errors.Is(err, keys.ErrMissing) && files[provider] == "":
		f.Detail = "none for " + provider + " (" + name + ")"
	case err != nil:
		f.Status, f.Detail, f.Advice = weak, "the key for "+provider+" cannot be used", err.Error()
	case strings.TrimSpace(os.Getenv(name)) != "":
		f.Detail = provider + ", from " + name
	default:
		f.Detail = provider + ", from its key file"
	}
	return f
}

// localServers asks each address for a model.
func localServers(ctx context.Context, addrs []string) []model.Spec {
	found := make([]model.Spec, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() { found[i], _ = openai.Discover(ctx, addr) }) // nobody there is an answer too
	}
	asked.Wait()
	var specs []model.Spec
	for _, spec := range found {
		if spec.Name != "" {
			specs = append(specs, spec)
		}
	}
	return specs
}

func serverFinding(specs []model.Spec) finding {
	if len(specs) == 0 {
		return finding{Name: "servers", Status: healthy, Detail: "no model server answers on this machine"}
	}
	var names []string
	for _, spec := range specs {
		names = append(names, spec.String())
	}
	return finding{Name: "servers", Status: healthy, Detail: strings.Join(names, " · "), Advice: "to use it: --model " + names[0]}
}

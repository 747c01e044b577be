package cli

import (
	"fmt"
	"os"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/render"
	"belay/model"
	"belay/policy"
)

// settings reads files, environment and flags. The flags hold what was given and nothing else. A mistake in a source
// is the person's.
func (a *app) settings(workspace string, flags config.Settings) (config.Settings, []config.Notice, error) {
	src, err := a.sources(workspace)
	if err != nil {
		return config.Settings{}, nil, usagef("%w", err)
	}
	src.Flags = flags
	s, notices, err := config.Load(src)
	if err != nil {
		return s, nil, usagef("%w", err)
	}
	return s, notices, nil
}

// sources says where settings come from. A workspace that is no folder has none; the harness says what is wrong with it.
func (a *app) sources(workspace string) (config.Sources, error) {
	dir, err := a.userDir()
	if err != nil {
		return config.Sources{}, err
	}
	if workspace == "" {
		workspace = "."
	}
	if info, err := os.Stat(workspace); err != nil || !info.IsDir() {
		workspace = ""
	}
	return config.Sources{
		Workspace: workspace, UserDir: dir, Environ: a.environ, Tools: harness.ToolNames(),
		Defaults: config.Settings{Mode: policy.Edit, Bounds: harness.DefaultBounds},
	}, nil
}

// configure is what flags, environment and files together ask for. What they ask for in vain is told.
func (a *app) configure(f *runFlags, given func(string) bool) (harness.Config, error) {
	cfg, err := f.config(given)
	if err != nil {
		return cfg, err
	}
	s, notices, err := a.settings(cfg.Workspace, config.Settings{Model: cfg.Model, Light: cfg.Roles.Light, Judge: cfg.Roles.Judge, Fallback: cfg.Roles.Fallback, Mode: cfg.Mode, Verify: cfg.Verify, Bounds: cfg.Bounds, Tools: cfg.Only})
	if err != nil {
		return cfg, err
	}
	a.tell(notices)
	cfg.Model, cfg.Mode, cfg.Verify, cfg.Bounds = s.Model, s.Mode, s.Verify, s.Bounds
	cfg.Checks, cfg.Hidden, cfg.Notify.Line = s.Checks, s.Hidden, s.Notify
	cfg.Roles = harness.Roles{Light: s.Light, Judge: s.Judge, Fallback: s.Fallback}
	cfg.Only, cfg.Protect, cfg.KeyFiles = s.Tools, s.Protect, s.KeyFiles
	if cfg.Known, err = a.known(); err != nil {
		return cfg, err
	}
	cfg.HookFiles, err = a.hookFiles(cfg.Workspace)
	return cfg, err
}

// known is what the person's own file says of models.
func (a *app) known() (map[string]model.Info, error) {
	dir, err := a.userDir()
	if err != nil {
		return nil, err
	}
	models, err := config.Models(dir)
	if err != nil {
		return nil, usagef("%w", err)
	}
	known := map[string]model.Info{}
	for name, m := range models {
		known[name] = model.Info{ContextWindow: m.ContextWindow, Price: m.Price, Images: m.Images}
	}
	return known, nil
}

// tell says on standard error what is not as somebody set it.
func (a *app) tell(notices []config.Notice) {
	for _, n := range notices {
		fmt.Fprintln(a.err, "belay: "+render.Line(n.String()))
	}
}

package harness

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
	"belay/internal/committable"
	"belay/internal/sandbox"
	"belay/internal/verifier"
	"belay/verify"
)

// checks are the verifiers that the configuration describes.
func (a *agent) checks(cfg Config, box *sandbox.Sandbox) ([]verify.Verifier, error) {
	for i, folder := range cfg.Hidden {
		if !filepath.IsAbs(folder) {
			return nil, fmt.Errorf("hidden tests %s: the path must be absolute", folder)
		}
		if real, err := filepath.EvalSymlinks(folder); err != nil {
			return nil, fmt.Errorf("hidden tests: %w", err)
		} else if within(real, a.place.Workspace) {
			return nil, fmt.Errorf("hidden tests %s lie in the workspace, where the agent reads them: put them elsewhere", folder)
		} else {
			cfg.Hidden[i] = real
		}
	}
	world := verifier.World{Workspace: a.place.Workspace, Changed: a.changedFiles,
		Env: a.secrets.Output(box.VerifierEnv(effect.Grant{Workspace: effect.Discard}, a.place.Workspace))}
	names := map[string]bool{}
	var all []verify.Verifier
	for _, c := range cfg.Checks {
		level, known := verify.CheckTypes[c.Type]
		name := cmp.Or(c.Name, c.Run, c.Type)
		switch {
		case !known:
			return nil, fmt.Errorf("there is no check of type %q", c.Type)
		case names[name]:
			return nil, fmt.Errorf("two checks are called %q", name)
		case c.Level != 0 && c.Level < level:
			return nil, fmt.Errorf("the check %s claims level %d; its type is of level %d", name, c.Level, level)
		}
		names[name] = true
		switch c.Type {
		case "schema", "diff_bound", "forbidden", "metamorphic":
			c.Name = name
			all = append(all, &verifier.Inspect{Spec: c, World: world})
		case "judge", "person":
			return nil, fmt.Errorf("the check %s: verifiers of type %s are not run by this version; leave it out", name, c.Type)
		default:
			if strings.TrimSpace(c.Run) == "" {
				return nil, fmt.Errorf("the check %s names no command to run", name)
			}
			all = append(all, a.command(cfg, box, verifier.Command{Line: c.Run, Chosen: true, Kind: cmp.Or(c.Level, level), MustCount: c.Type == "tests"}))
		}
	}
	return all, nil
}

// changedFiles are those that a run changed; without a run, those that the repository's last commit does not hold so.
func (a *agent) changedFiles(ctx context.Context) ([]string, error) {
	if a.base != nil {
		return a.base.changed(ctx)
	}
	return committable.Changed(ctx, a.place.Workspace)
}

// changed lists the files that are not as they were before the run's first change.
func (b *base) changed(ctx context.Context) ([]string, error) {
	k, err := b.read()
	if err != nil {
		return nil, nil // nothing that could change anything was ever allowed
	}
	now, err := b.sums(ctx)
	if err != nil {
		return nil, err
	}
	var changed []string
	for name, sum := range now {
		if k.Files[name] != sum {
			changed = append(changed, name)
		}
	}
	for name := range k.Files {
		if now[name] == "" {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, nil
}

package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"belay/internal/smallfile"
	"belay/journal"
	"belay/model"
)

// hashMax is the size in bytes above which a file's content is not followed.
const hashMax = 64 << 20

// fileHash is what a file of the workspace is now, "" where it is no readable regular file of the workspace.
func fileHash(workspace, path string) string {
	rel := path
	if filepath.IsAbs(path) {
		var err error
		if rel, err = filepath.Rel(workspace, path); err != nil {
			return ""
		}
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return ""
	}
	defer root.Close()
	content, err := smallfile.Read(root, rel, hashMax)
	if err != nil {
		return ""
	}
	return shortHash(content)
}

func shortHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// sameRepository refuses a workspace that is not the one the run worked in: acting on a stranger's files would succeed
// and be wrong. Where git cannot be asked, the path and the repository's being there must do.
func (p past) sameRepository(ctx context.Context) error {
	if p.start.Head == "" {
		return nil
	}
	workspace := p.start.Workspace
	wrong := func(why string) error {
		return &UsageError{fmt.Errorf("%s is not the repository that this run worked in: %s. To go on there nevertheless, say --other-repository", workspace, why)}
	}
	if _, err := os.Stat(filepath.Join(workspace, ".git")); err != nil {
		return wrong("it had one on commit " + p.start.Head + ", and there is none now")
	}
	if headOf(workspace) == p.start.Head {
		return nil
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	// Nothing of the repository's own settings is run by this: it looks one object up.
	ask := exec.CommandContext(ctx, git, "-C", workspace, "cat-file", "-e", p.start.Head+"^{commit}")
	ask.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	ask.Stdout, ask.Stderr = io.Discard, io.Discard
	if err := ask.Run(); err != nil {
		if exit, ok := err.(*exec.ExitError); ok && (exit.ExitCode() == 1 || exit.ExitCode() == 128) && !dubious(ctx, git, workspace) {
			return wrong("it was on commit " + p.start.Head + ", which is not in it")
		}
	}
	return nil
}

// dubious says that git refuses to look into the repository at all, whatever is asked.
func dubious(ctx context.Context, git, workspace string) bool {
	return exec.CommandContext(ctx, git, "-C", workspace, "rev-parse", "--git-dir").Run() != nil
}

// changes lists what is not as it was when the run stopped: the repository's head, the model, the program, what the
// model would be told by a new run, and the files that it has read or written.
func (p past) changes(a *agent, version string) []journal.Change {
	var all []journal.Change
	note := func(what, name, was, is string) {
		if before, told := p.told[what+" "+name]; was != is && !(told && before == is) {
			all = append(all, journal.Change{What: what, Name: name, Was: was, Is: is})
		}
	}
	note("head", "", p.start.Head, headOf(a.place.Workspace))
	note("model", "", p.start.Model.ID, a.loop.Client.Info().ID())
	note("belay", "", p.start.Version, version)
	note("system", "", shortHash([]byte(p.start.System)), shortHash([]byte(a.system)))
	was, is := toolHashes(p.tools), toolHashes(a.specs)
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		note("tool", name, was[name], is[name])
	}
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		note("file", path, p.files[path], fileHash(a.place.Workspace, path))
	}
	return all
}

func toolHashes(tools []model.Tool) map[string]string {
	hashes := map[string]string{}
	for _, t := range tools {
		text, err := json.Marshal(t)
		if err != nil {
			panic(err) // every schema was parsed before
		}
		hashes[t.Name] = shortHash(text)
	}
	return hashes
}

// changeText is a change in a person's words.
func changeText(c journal.Change) string {
	switch c.What {
	case "head":
		return fmt.Sprintf("the repository was on commit %q and is now on %q", c.Was, c.Is)
	case "model":
		return fmt.Sprintf("the model was %s and is now %s", c.Was, c.Is)
	case "belay":
		return fmt.Sprintf("it was belay %q and is now %q", c.Was, c.Is)
	case "system":
		return "a new run would get another system prompt (other instructions, tools or checks); this one goes on under its own"
	case "tool":
		return fmt.Sprintf("the tool %s is declared otherwise than the model was told", c.Name)
	case "file":
		if c.Is == "" {
			return c.Name + " was read or written, and is gone"
		}
		return c.Name + " was changed since it was read or written"
	}
	return c.What + " changed"
}

// toldMax is how many changed files the model is told by name.
const toldMax = 50

// news is what the model must know of the changes: what it has read does not hold any more. "" is nothing.
func news(changes []journal.Change, workspace string) string {
	var lines []string
	for _, c := range changes {
		if c.What != "file" && c.What != "head" {
			continue
		}
		if rel, err := filepath.Rel(workspace, c.Name); err == nil && c.Name != "" {
			c.Name = filepath.ToSlash(rel)
		}
		lines = append(lines, "- "+changeText(c))
	}
	if len(lines) == 0 {
		return ""
	}
	if more := len(lines) - toldMax; more > 0 {
		lines = append(lines[:toldMax], fmt.Sprintf("- and %d more files", more))
	}
	return "You were interrupted, and meanwhile something has changed. What you know of it does not hold any more: read it again before you rely on it.\n" + strings.Join(lines, "\n")
}

//go:build amd64 || arm64

package sandbox

import (
	"path/filepath"
	"testing"
)

// TestNewRepositories makes repositories that would run programs on the host, and some that would not.
func TestNewRepositories(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		repository bool     // the workspace has one before
		gone       []string // what is taken away
	}{
		{"harmless", "git init -q && git add . && git commit -qm first && git remote add origin https://example.org/x && git log", false, nil},
		{"monitor", "git init -q && git config core.fsmonitor 'touch /tmp/x'", false, []string{".git/config"}},
		{"on one line", "git init -q && echo '[core] fsmonitor = x' >> .git/config", false, []string{".git/config"}},
		{"include", "git init -q && git config include.path ../evil", false, []string{".git/config"}},
		{"alias", "git init -q && git config alias.st '!x'", false, []string{".git/config"}},
		{"hook", "git init -q && cp /usr/bin/env .git/hooks/pre-commit", false, []string{".git/hooks/pre-commit"}},
		{"no hook", "git init -q && echo x > .git/hooks/notes && chmod -x .git/hooks/notes", false, nil},
		{"linked hooks", "git init -q && rm -rf .git/hooks && ln -s ../evil .git/hooks", false, []string{".git/hooks"}},
		{"linked config", "git init -q && mv .git/config evil && ln -s ../evil .git/config", false, []string{".git/config"}},
		{"pipe", "git init -q && rm .git/config && mkfifo .git/config", false, []string{".git/config"}},
		{"elsewhere", "git init -q evil && echo 'gitdir: evil/.git' > .git", false, []string{".git"}},
		{"link", "git init -q evil && ln -s evil/.git .git", false, []string{".git"}},
		{"module", "git init -q sub && mkdir -p .git/modules && mv sub/.git .git/modules/sub && git config -f .git/modules/sub/config core.fsmonitor x", true, []string{".git/modules/sub/config"}},
		{"harmless module", "git init -q sub && mkdir -p .git/modules/a && mv sub/.git .git/modules/a/sub && git config -f .git/modules/a/sub/config core.worktree ../../../../sub", true, nil},
		{"module elsewhere", "git init -q evil && mkdir -p .git/modules && ln -s ../../evil .git/modules/sub", true, []string{".git/modules/sub"}},
		{"module called HEAD", "git init -q sub && mkdir -p .git/modules && mv sub/.git .git/modules/HEAD && cp /usr/bin/env .git/modules/HEAD/hooks/post-checkout", true, []string{".git/modules/HEAD/hooks/post-checkout"}},
		{"known module", "git config -f .git/modules/known/config core.abbrev 9", true, nil},
		{"changed module", "git config -f .git/modules/known/config filter.lfs.process evil", true, []string{".git/modules/known/config"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSandbox(t, nil)
			needIsolation(t, s)
			t.Cleanup(s.Close)
			put(t, filepath.Join(s.workspace, "file"), "1\n")
			if tc.repository {
				outside(t, s.workspace, "git", "init", "-q")
				outside(t, s.workspace, "git", "init", "-q", "--bare", ".git/modules/known")
				outside(t, s.workspace, "git", "config", "-f", ".git/modules/known/config", "filter.lfs.process", "git-lfs filter-process")
			}
			out, exit := sh(t, s.Env(write, ""), tc.line)
			if exit.Code != 0 || len(exit.Denied) != len(tc.gone) {
				t.Errorf("%+v %s", exit, out)
			}
			for _, path := range tc.gone {
				if exists(filepath.Join(s.workspace, path)) {
					t.Errorf("%s stayed", path)
				}
			}
			if !exists(filepath.Join(s.workspace, ".git")) && tc.gone == nil {
				t.Error("a harmless repository was taken away")
			}
			if _, exit := sh(t, s.Env(write, ""), "true"); exit.Code != 0 || len(exit.Denied) > 0 {
				t.Errorf("the next command: %+v", exit)
			}
		})
	}
}

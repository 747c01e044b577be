//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/tool"
)

// program puts a shell script on the host that says who it is.
func program(t *testing.T, path, says string) {
	t.Helper()
	put(t, path, "#!/bin/sh\necho "+says+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// TestVerifiersPath puts directories of the workspace in front of PATH in all the ways a host has, and looks which
// program a verifier then runs.
func TestVerifiersPath(t *testing.T) {
	for _, tc := range []struct {
		name string
		path func(ws, out string) string // what comes before out/bin, which holds the true one
	}{
		{"in the workspace", func(ws, out string) string { return ws + "/bin" }},
		{"the workspace", func(ws, out string) string { return ws }},
		{"not clean", func(ws, out string) string {
			return out + "/../" + filepath.Base(out) + "//.." + ws[strings.LastIndex(ws, "/"):] + "/bin/"
		}},
		{"a link to it", func(ws, out string) string { link(t, ws+"/bin", out+"/linked"); return out + "/linked" }},
		{"a link through it", func(ws, out string) string {
			program(t, out+"/other/tool", "evil")
			link(t, out+"/other", ws+"/way")
			link(t, ws+"/way", out+"/through")
			return out + "/through"
		}},
		{"a link in it", func(ws, out string) string {
			program(t, out+"/other/tool", "evil")
			link(t, out+"/other", ws+"/way")
			return ws + "/way"
		}},
		{"a program that links to it", func(ws, out string) string {
			link(t, ws+"/bin/tool", out+"/linking/tool")
			program(t, out+"/linking/neighbour", "neighbour")
			return out + "/linking"
		}},
		{"relative", func(ws, out string) string { return "bin" }},
		{"here", func(ws, out string) string { return "." }},
		{"empty", func(ws, out string) string { return "" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSandbox(t, func(c *Config) {
				out := filepath.Join(filepath.Dir(c.Workspace), "out")
				program(t, filepath.Join(c.Workspace, "bin", "tool"), "evil")
				program(t, filepath.Join(c.Workspace, "tool"), "evil")
				program(t, filepath.Join(out, "bin", "tool"), "honest")
				c.Environ = []string{"HOME=" + t.TempDir(), "PATH=" + tc.path(c.Workspace, out) + ":" + out + "/bin:/usr/bin:/bin"}
			})
			needIsolation(t, s)
			e := s.VerifierEnv(discard, "")
			if out := must(t, e, "tool"); out != "honest" {
				t.Errorf("a verifier ran the program that said %q; its PATH is %s", out, must(t, e, "echo $PATH"))
			}
			if out := must(t, e, "cd bin; tool"); out != "honest" {
				t.Errorf("in bin, a verifier ran the program that said %q", out)
			}
			if out := must(t, e, "./bin/tool"); out != "evil" {
				t.Errorf("a program named by its path said %q", out)
			}
			if strings.Contains(tc.name, "links to it") {
				if out, _ := sh(t, e, "neighbour; for d in $(echo $PATH | tr : ' '); do ln -sf $PWD/bin/tool $d/tool; done 2>/dev/null; tool"); out != "neighbour\nhonest" {
					t.Errorf("the program beside it, and what a command put there, said %q", out)
				}
			}
		})
	}
}

// TestAgentsPath keeps what direnv and the like have set up for the agent.
func TestAgentsPath(t *testing.T) {
	s := newSandbox(t, func(c *Config) {
		program(t, filepath.Join(c.Workspace, "node_modules", ".bin", "tool"), "mine")
		c.Environ = []string{"HOME=" + t.TempDir(), "PATH=" + c.Workspace + "/node_modules/.bin:/usr/bin:/bin"}
	})
	needIsolation(t, s)
	if out := must(t, s.Env(read, ""), "tool"); out != "mine" {
		t.Errorf("%q", out)
	}
}

// TestVerifiersEnvironment sets every variable by which a host could make a verifier load the workspace's code.
func TestVerifiersEnvironment(t *testing.T) {
	s := newSandbox(t, func(c *Config) {
		ws, out := c.Workspace, filepath.Join(filepath.Dir(c.Workspace), "out")
		put(t, filepath.Join(ws, "root", "lib", "x"), "")
		link(t, ws+"/root", out+"/root")
		evil := ws + "/evil"
		c.Environ = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "LANG=C.UTF-8", "TZ=:" + ws + "/zone",
			"GOFLAGS=-toolexec=" + evil + " -trimpath -exec=" + evil + " -overlay=" + evil + " -modfile=" + evil, "GOROOT=" + ws + "/root", "JAVA_HOME=" + out + "/root",
			"GOENV=" + evil, "GOWORK=" + evil, "GOCACHEPROG=" + evil, "GOTOOLDIR=" + evil, "GOMODCACHE=" + ws + "/root", "GOPATH=" + ws, "GOCACHE=" + ws + "/root", "CC=" + evil,
			"XDG_CACHE_HOME=" + ws, "XDG_CONFIG_HOME=" + ws, "PYTHONPATH=" + evil, "PYTHONHOME=" + evil, "PYTHONSTARTUP=" + evil, "NODE_OPTIONS=--require=" + evil, "NODE_PATH=" + evil,
			"GIT_DIR=" + evil, "GIT_CONFIG_GLOBAL=" + evil, "GIT_EXEC_PATH=" + evil, "GIT_SSH_COMMAND=" + evil, "MAKEFLAGS=--eval=x", "MAKEFILES=" + evil, "LD_PRELOAD=" + evil, "LD_LIBRARY_PATH=" + ws,
			"BASH_ENV=" + evil, "ENV=" + evil, "RUSTC_WRAPPER=" + evil, "CARGO_HOME=" + ws, "RUSTUP_TOOLCHAIN=" + evil, "JAVA_TOOL_OPTIONS=-javaagent:" + evil, "PERL5LIB=" + evil, "RUBYOPT=-r" + evil, "PROMPT_COMMAND=" + evil}
	})
	needIsolation(t, s)
	var got []string
	for line := range strings.Lines(must(t, s.VerifierEnv(discard, ""), "cd /; env -u PWD -u OLDPWD")) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), "="); strings.Contains(line, s.workspace) || strings.Contains(line, "evil") || strings.HasPrefix(name, "GIT_") && !strings.Contains(name, "PAGER") && name != "GIT_TERMINAL_PROMPT" {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff([]string(nil), got); diff != "" {
		t.Error(diff)
	}
	if out := must(t, s.VerifierEnv(discard, ""), "echo $GOFLAGS $LANG$GOROOT$JAVA_HOME$TZ; ls -A $GOCACHE | grep -v ^..$; true"); !strings.HasPrefix(out, "-trimpath C.UTF-8") || strings.Contains(out, "lib") {
		t.Errorf("%q", out)
	}
}

// TestVerifiersForget has commands that prove work leave something in every cache, and looks for it from the next one.
func TestVerifiersForget(t *testing.T) {
	for _, overlay := range []bool{true, false} {
		s := newSandbox(t, nil)
		needIsolation(t, s)
		s.level.Overlay = s.level.Overlay && overlay
		for _, grant := range []struct{ a, b string }{{"verify", "verify"}, {"verify", "agent"}, {"agent", "verify"}} {
			envOf := map[string]func() string{
				"verify": func() string {
					return must(t, s.VerifierEnv(discard, ""), "find $XDG_CACHE_HOME -name 'left*'; mkdir -p $XDG_CACHE_HOME/npm $GOCACHE/ab; for d in $XDG_CACHE_HOME $XDG_CACHE_HOME/npm $GOCACHE/ab; do echo x > $d/left-verify; cat $d/left-verify; done")
				},
				"agent": func() string {
					return must(t, s.Env(write, ""), "find $XDG_CACHE_HOME -name 'left-verify*'; mkdir -p $XDG_CACHE_HOME/npm $GOCACHE/ab; for d in $XDG_CACHE_HOME $XDG_CACHE_HOME/npm $GOCACHE/ab; do echo x > $d/left-agent; cat $d/left-agent; done")
				},
			}
			envOf[grant.a]()
			if out := envOf[grant.b](); out != "x\nx\nx" {
				t.Errorf("overlay %v: after %s, %s found %q", overlay, grant.a, grant.b, out)
			}
		}
		s.Close()
	}
}

// TestHostCacheInReach leaves out a build cache of the host that commands could write by its own path.
func TestHostCacheInReach(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cache func(c *Config) string
		used  bool
	}{
		{"apart", func(c *Config) string { return c.Workspace + ".cache" }, true},
		{"in the workspace", func(c *Config) string { return filepath.Join(c.Workspace, ".cache") }, false},
		{"around the workspace", func(c *Config) string { return filepath.Dir(c.Workspace) }, false},
		{"in belay's state", func(c *Config) string { return filepath.Join(c.Home, "cache", "x") }, false},
		{"by a link in the workspace", func(c *Config) string {
			link(t, c.Workspace+".cache", filepath.Join(c.Workspace, "link"))
			return filepath.Join(c.Workspace, "link")
		}, false},
	} {
		s := newSandbox(t, func(c *Config) {
			cache := tc.cache(c)
			put(t, filepath.Join(c.Workspace+".cache", "ab", "entry"), "")
			if err := os.MkdirAll(cache, 0o755); err != nil {
				t.Fatal(err)
			}
			c.Environ = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "GOCACHE=" + cache}
		})
		if got := s.host.goCache != ""; got != tc.used {
			t.Errorf("%s: the host's cache is used: %v", tc.name, got)
		}
	}
}

// TestStandardLibrary needs a package of the standard library that the host has not compiled: it is compiled once, and
// neither verifier nor agent compiles it again, nor a second sandbox of the same state.
func TestStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT", "GOCACHE").Output()
	if err != nil {
		t.Skip("go is not installed here")
	}
	goroot, gocache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	home := t.TempDir()
	var mu sync.Mutex
	var told []string
	sandbox := func() *Sandbox {
		s := newSandbox(t, func(c *Config) {
			// By this tag math/big is another package, which no ordinary build makes.
			c.Environ = []string{"PATH=" + goroot + "/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "GOCACHE=" + gocache, "GOFLAGS=-mod=mod -tags=math_big_pure_go"}
			c.Home = home
			c.Progress = func(what string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, what)
			}
			put(t, filepath.Join(c.Workspace, "go.mod"), "module tiny\n\ngo 1.21\n")
			put(t, filepath.Join(c.Workspace, "a_test.go"), "package tiny\n\nimport (\n_ \"math/big\"\n\"os\"\n\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.WriteFile(os.Getenv(\"GOCACHE\")+\"/evil\", nil, 0o644)\n\tos.Exit(m.Run())\n}\n")
		})
		t.Cleanup(s.Close)
		return s
	}
	s := sandbox()
	needIsolation(t, s)
	if !s.level.Overlay {
		must(t, s.VerifierEnv(discard, ""), "go test ./...") // without layers, and each time anew
		return
	}
	// compiled says how many packages of the standard library a test compiles.
	compiled := func(e tool.Env) string {
		return must(t, e, "go test -x ./... >log 2>&1 || cat log; test -e $GOCACHE/evil || echo not run; grep -c -- ' -std ' log || true")
	}
	unprepared := sandbox()
	unprepared.std.looked = map[string]bool{"": true}
	if out := compiled(unprepared.VerifierEnv(discard, "")); out == "0" {
		t.Error("the host has compiled math/big, so nothing was tested")
	}
	if out := compiled(s.VerifierEnv(discard, "")); out != "0" {
		t.Errorf("the first verification compiled %s", out)
	}
	if out := compiled(s.VerifierEnv(discard, "")); out != "0" {
		t.Errorf("the second verification compiled %s", out)
	}
	if out := compiled(s.Env(write, "")); out != "0" {
		t.Errorf("the agent compiled %s", out)
	}
	if out := compiled(sandbox().VerifierEnv(discard, "")); out != "0" {
		t.Errorf("another sandbox compiled %s", out)
	}
	if out, exit := sh(t, s.VerifierEnv(discard, ""), "test -e $GOCACHE/evil"); exit.Code == 0 {
		t.Errorf("project code has written to a cache that lasts: %q", out)
	}
	filepath.WalkDir(filepath.Join(home, "cache", "go-std"), func(path string, _ os.DirEntry, err error) error {
		if name := filepath.Base(path); err != nil || name == "evil" || name == "new" {
			t.Errorf("in the standard library: %s %v", path, err)
		}
		return nil
	})
	if diff := cmp.Diff([]string{"building the standard library for the verifiers, once"}, told); diff != "" {
		t.Error(diff)
	}
}

package policy

import (
	"path"
	"path/filepath"
	"strings"

	"belay/effect"
)

// inside says that a clean absolute path is dir or below it.
func inside(p, dir string) bool {
	if dir == "" || p == "" {
		return false
	}
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// systemFolders hold programs and settings that everybody may read and no agent may write.
var systemFolders = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/etc", "/opt", "/proc", "/sys", "/dev", "/boot", "/run", "/var",
	"/System", "/Library", "/Applications", "/private/etc", "/private/var/db", "/nix", "/snap"}

// toolchains are the folders below a home in which compilers and their dependencies lie.
var toolchains = []string{"go", ".cargo/registry", ".cargo/git", ".rustup", ".nvm", ".pyenv", ".rbenv", ".sdkman", ".local/lib", ".local/share/pnpm", ".m2/repository", ".gradle/caches", ".npm/_cacache", ".cache/go-build", ".asdf", ".volta", ".deno", ".bun/install", "sdk", ".local/share/uv", ".local/share/mise"}

// secretHomes are the folders and files below a home that hold credentials.
var secretHomes = []string{".ssh", ".aws", ".gnupg", ".netrc", "_netrc", ".azure", ".kube", ".config/gh", ".config/gcloud", ".config/hub", ".docker/config.json", ".npmrc", ".pypirc", ".git-credentials", ".config/git/credentials",
	".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials", ".pgpass", ".my.cnf", ".password-store", ".local/share/keyrings", "Library/Keychains", ".vault-token", ".terraform.d/credentials.tfrc.json", ".bash_history", ".zsh_history", ".mozilla", ".config/google-chrome", ".config/rclone", ".boto", ".s3cfg", ".claude.json", ".config/op"}

// startFiles are the files below a home that run at the next login, or that make other programs run things.
var startFiles = []string{".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".inputrc", ".gitconfig", ".config/git", ".config/fish", ".config/autostart", ".config/systemd", "Library/LaunchAgents", ".vimrc", ".config/nvim", ".emacs", ".emacs.d", ".tmux.conf", ".xprofile", ".config/belay", ".belay", ".claude", ".codex", ".gemini", ".vscode", ".config/Code", ".config/environment.d", ".pam_environment", ".ssh"}

// secretNames are names of files that hold credentials wherever they lie.
var secretNames = map[string]bool{".env": true, ".envrc": true, ".netrc": true, "_netrc": true, ".npmrc": true, ".pypirc": true, ".git-credentials": true, ".pgpass": true, "id_rsa": true, "id_dsa": true, "id_ecdsa": true, "id_ed25519": true, ".htpasswd": true, "credentials.json": true, "service-account.json": true, ".vault-token": true}

// examples are endings of files that show what a file of secrets looks like.
var examples = []string{".example", ".sample", ".template", ".dist", ".schema", ".defaults"}

// secret says that a path holds credentials. A pattern counts when it can match such a name on purpose.
func (s Situation) secret(p string) bool {
	base := strings.ToLower(path.Base(p))
	for _, ending := range examples {
		if strings.HasSuffix(base, ending) {
			return false
		}
	}
	if secretNames[base] || strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".pem") && strings.Contains(base, "key") || strings.HasSuffix(base, ".keychain") || strings.HasSuffix(base, ".p12") || strings.HasSuffix(base, ".pfx") {
		return true
	}
	if strings.ContainsAny(base, "*?[") && base[0] == '.' {
		for _, name := range []string{".env", ".env.local", ".netrc", ".npmrc"} {
			if ok, _ := path.Match(base, name); ok {
				return true
			}
		}
	}
	for _, part := range strings.Split(strings.ToLower(p), "/") {
		switch part {
		case ".ssh", ".aws", ".gnupg", ".password-store":
			return true
		}
	}
	if s.under(p, secretHomes) {
		return true
	}
	switch p {
	case "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/proc/kcore", "/proc/kmem", "/dev/mem", "/dev/kmem":
		return true
	}
	return inside(p, "/proc") && (base == "environ" || base == "mem") || inside(p, "/etc/ssl/private") || inside(p, "/etc/sudoers.d") || inside(p, "/run/secrets") || inside(p, "/var/run/secrets") || strings.HasPrefix(base, "ssh_host_") && strings.HasSuffix(base, "_key")
}

// under says that a path lies in one of the folders below the home.
func (s Situation) under(p string, folders []string) bool {
	if s.Home == "" {
		return false
	}
	for _, f := range folders {
		if inside(p, path.Join(s.Home, f)) {
			return true
		}
	}
	return false
}

func isSystem(p string) bool {
	for _, f := range systemFolders {
		if inside(p, f) {
			return true
		}
	}
	return false
}

func isTemp(p string) bool {
	return inside(p, "/tmp") || inside(p, "/var/tmp") || inside(p, "/private/tmp") || inside(p, "/var/folders") || inside(p, "/private/var/folders")
}

// state says that a path is belay's own: its state, or the policy and settings in a workspace.
func (s Situation) state(p string) bool {
	return inside(p, s.StateDir) || hasPart(p, ".belay")
}

// hasPart says that one of a path's parts has this name, in any case: some file systems do not tell them apart.
func hasPart(p, name string) bool {
	for _, part := range strings.Split(p, "/") {
		if strings.EqualFold(part, name) {
			return true
		}
	}
	return false
}

// protected says why a path may not be written: it decides what other programs run or what an agent may do.
func protected(p string) (why string, class effect.Class) {
	parts := strings.Split(strings.ToLower(p), "/")
	for i, part := range parts {
		rest := parts[i+1:]
		switch part {
		case ".claude", ".codex", ".gemini", ".cursor", ".agents":
			return "settings of an agent", effect.ClassConfiguration
		case ".vscode", ".idea", ".fleet", ".zed", ".devcontainer":
			return "settings of an editor", effect.ClassConfiguration
		case ".mcp.json", ".envrc", ".husky":
			return "a file that makes other programs run things", effect.ClassConfiguration
		case ".github", ".gitlab-ci.yml", ".circleci", ".buildkite", "jenkinsfile", ".travis.yml":
			return "what runs on a build machine", effect.ClassIrreversible
		case ".git":
			if len(rest) == 0 {
				return "the repository itself", effect.ClassConfiguration
			}
			switch {
			case rest[0] == "hooks", strings.HasPrefix(rest[0], "config"), rest[0] == "modules", rest[0] == "worktrees", rest[0] == "info", rest[0] == "commondir", rest[0] == "gitdir", strings.ContainsAny(rest[0], "*?["):
				return "what git runs", effect.ClassConfiguration
			}
			return "the repository's own data, which no checkpoint covers", effect.ClassIrreversible
		}
	}
	return "", 0
}

func (s Situation) classifyRead(e effect.Effect, reason string) finding {
	p := e.Target
	switch {
	case !filepath.IsAbs(p):
		return finding{class: effect.ClassRead, rule: "read: unknown path", reason: reason, ask: !s.Sandboxed}
	case s.state(p):
		return finding{class: effect.ClassConfiguration, rule: "protect: belay's own state", reason: reason + "; that is belay's own"}
	case s.secret(p):
		return finding{class: effect.ClassConfiguration, rule: "protect: secrets", reason: reason + "; that can hold secrets"}
	case inside(p, s.Workspace), s.under(p, toolchains), isSystem(p):
		return finding{class: effect.ClassRead, reason: reason}
	case s.Sandboxed && isTemp(p):
		return finding{class: effect.ClassRead, reason: reason}
	}
	return finding{class: effect.ClassRead, rule: "read: outside the workspace", reason: reason + "; that is outside the workspace and may be private", ask: true}
}

func (s Situation) classifyWrite(e effect.Effect, reason string) finding {
	p := e.Target
	if !filepath.IsAbs(p) {
		return finding{class: effect.ClassIrreversible, rule: "write: unknown path", reason: reason + "; use an explicit path"}
	}
	if e.Kind == effect.Delete {
		switch {
		case p == "/":
			return finding{effect.ClassIrreversible, "breaker: rm of the root", reason, true, false}
		case s.Home != "" && inside(s.Home, p):
			return finding{effect.ClassIrreversible, "breaker: rm of a home directory", reason, true, false}
		case s.Workspace != "" && inside(s.Workspace, p):
			return finding{effect.ClassIrreversible, "breaker: rm of the workspace or a parent", reason, true, false}
		}
	}
	if s.state(p) || s.StateDir != "" && e.Kind == effect.Delete && inside(s.StateDir, p) {
		return finding{class: effect.ClassConfiguration, rule: "protect: belay's own state", reason: reason + "; that is belay's own"}
	}
	if s.secret(p) {
		return finding{class: effect.ClassConfiguration, rule: "protect: secrets", reason: reason + "; that can hold secrets"}
	}
	if s.under(p, startFiles) {
		return finding{class: effect.ClassConfiguration, rule: "protect: start files", reason: reason + "; that runs at the next login or configures other programs"}
	}
	if s.Rules != nil {
		for _, r := range s.Rules.Protect {
			if r.path(s, p, true) {
				return finding{class: effect.ClassConfiguration, rule: "protect: " + r.Text, reason: reason + "; that is protected by the policy file"}
			}
		}
	}
	if inside(p, s.Workspace) {
		rel := p[len(strings.TrimSuffix(s.Workspace, "/")):]
		if why, class := protected(rel); why != "" {
			return finding{class: class, rule: "protect: " + why, reason: reason + "; that is " + why}
		}
		if e.Kind == effect.Delete && s.Covered != nil && !strings.ContainsAny(p, "*?[") && !s.Covered(p) {
			return finding{class: effect.ClassIrreversible, rule: "delete: not in a checkpoint", reason: reason + "; no checkpoint holds it"}
		}
		return finding{class: effect.ClassReversible, reason: reason}
	}
	if why, class := protected(p); class == effect.ClassConfiguration {
		return finding{class: class, rule: "protect: " + why, reason: reason + "; that is " + why}
	}
	if s.Sandboxed && isTemp(p) && strings.Count(p, "/") > 1 {
		return finding{class: effect.ClassReversible, reason: reason + "; the temporary directory is private and vanishes"}
	}
	if isSystem(p) {
		return finding{effect.ClassIrreversible, "breaker: system paths", reason, true, false}
	}
	return finding{class: effect.ClassIrreversible, rule: "write: outside the workspace", reason: reason + "; that is outside the workspace, where nothing restores it"}
}

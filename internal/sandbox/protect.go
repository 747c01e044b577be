package sandbox

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// hidden are workspace paths that neither commands nor file tools get to see: what decides about them.
var hidden = []string{".belay"}

// Names that stay as they are in every view: a change would make something outside run it later, or would let the
// agent rewrite what it is told.
var (
	// startNames take effect when a person opens the folder that holds them, in an editor, a shell or with an agent.
	startNames = []string{
		".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".continue", ".mcp.json", ".aider.conf.yml",
		".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", "*.code-workspace", "*.sublime-project",
		".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el",
		".envrc", ".mise.toml", "mise.toml", ".autoenv.zsh", ".autoenv",
	}
	// topNames take effect at the top of a repository: on servers that build it, and when git runs there.
	topNames = []string{
		".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".gitlab-ci.yml", ".gitlab/ci", ".circleci", ".travis.yml",
		"azure-pipelines.yml", ".azure-pipelines", "Jenkinsfile", ".buildkite", ".drone.yml", ".woodpecker", ".woodpecker.yml", "bitbucket-pipelines.yml",
		"appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".teamcity", ".semaphore",
		".husky", "lefthook.yml", ".lefthook.yml", ".pre-commit-config.yaml", ".gitlab-ci",
	}
	// gitNames are what in a repository's own directory makes git run programs, or look elsewhere.
	gitNames = []string{"hooks", "config", "info", "commondir", "config.worktree"}
	// foreign are directories of other people's packages, in which nobody opens an editor.
	foreignNames = []string{"node_modules", "vendor", "site-packages", ".venv", "venv"}
	// homeNames matter where the workspace is the person's home.
	homeNames = []string{
		".ssh", ".gnupg", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		".gitconfig", ".config/git", ".config/fish", ".config/autostart", ".config/systemd", ".config/belay", ".local/bin", ".npmrc", ".netrc", ".pypirc", ".inputrc", ".tmux.conf",
	}
)

// rules are the protected paths of one sandbox.
type rules struct {
	top   []string // paths from the workspace
	globs []*regexp.Regexp
}

// newRules reads the patterns of a Config. One without a wildcard is a path.
func newRules(patterns []string, atHome bool) (rules, error) {
	r := rules{}
	for _, name := range gitNames {
		r.top = append(r.top, ".git/"+name)
	}
	if atHome {
		r.top = append(r.top, homeNames...)
	}
	for _, p := range patterns {
		rel := path.Clean(strings.TrimPrefix(filepath.ToSlash(p), "./"))
		if !filepath.IsLocal(filepath.FromSlash(rel)) || rel == "." {
			return r, fmt.Errorf("protected path %q is not inside the workspace", p)
		}
		if !strings.ContainsAny(rel, "*?[{") {
			r.top = append(r.top, rel)
			continue
		}
		re, err := globExpression(rel)
		if err != nil {
			return r, fmt.Errorf("protected path %q: %w", p, err)
		}
		r.globs = append(r.globs, re)
	}
	return r, nil
}

// globExpression turns a glob into an expression: * and ? stay within a name, ** does not, {a,b} is either. A pattern
// that ends in /** is also the directory before it; one without a slash matches at the top only.
func globExpression(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`^(?s:`)
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "/**") && i+3 == len(glob):
			b.WriteString(`(?:/.*)?`)
			i += 2
		case strings.HasPrefix(glob[i:], "**/"):
			b.WriteString(`(?:[^/]+/)*`)
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(`.*`)
			i++
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			end := strings.IndexByte(glob[i+1:], ']')
			if end < 1 {
				return nil, fmt.Errorf("a [ without its ]")
			}
			set := strings.ReplaceAll(glob[i+1:i+1+end], `\`, `\\`)
			if set[0] == '!' {
				set = "^" + set[1:]
			}
			b.WriteString("[" + set + "]")
			i += end + 1
		case c == '{':
			depth++
			b.WriteString(`(?:`)
		case c == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case c == ',' && depth > 0:
			b.WriteString(`|`)
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(string(glob[i])))
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("a { without its }")
	}
	b.WriteString(`)$`)
	return regexp.Compile(b.String())
}

// matches says whether rel itself, with slashes, is protected. top says that the directory it lies in is the top of a
// repository, as far as that is known.
func (r *rules) matches(rel string, top bool) bool {
	if slices.Contains(r.top, rel) {
		return true
	}
	for _, re := range r.globs {
		if re.MatchString(rel) {
			return true
		}
	}
	dir, name := path.Split(rel)
	if isStart(name) && !inForeign(dir) {
		return true
	}
	if top || dir == "" {
		return slices.Contains(topNames, name)
	}
	return false
}

// below says whether a protected path with a slash in it lies in the directory rel at the top of a repository.
func topPaths(dir string) (paths []string) {
	for _, name := range topNames {
		if strings.Contains(name, "/") {
			paths = append(paths, path.Join(dir, name))
		}
	}
	return paths
}

func isStart(name string) bool {
	for _, pattern := range startNames {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func inForeign(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if slices.Contains(foreignNames, part) {
			return true
		}
	}
	return false
}

// guards says what protects a path of the workspace, relative and with the system's separators, from being changed.
func (s *Sandbox) guards(rel string) (string, bool) {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, part := range parts {
		at := strings.Join(parts[:i+1], "/")
		dir := strings.Join(parts[:i], "/")
		top := i == 0 || exists(filepath.Join(s.workspace, filepath.FromSlash(dir), ".git"))
		if s.rules.matches(at, top) {
			return at, true
		}
		for _, p := range topPaths("") {
			if n := strings.Count(p, "/"); i >= n && strings.Join(parts[i-n:i+1], "/") == p &&
				(i == n || exists(filepath.Join(s.workspace, filepath.FromSlash(strings.Join(parts[:i-n], "/")), ".git"))) {
				return at, true
			}
		}
		if part == ".git" && (i == len(parts)-1 || slices.Contains(gitNames, parts[i+1])) {
			return strings.Join(parts[:min(i+2, len(parts))], "/"), true
		}
		if part == ".git" && (parts[i+1] == "modules" || parts[i+1] == "worktrees") {
			return strings.Join(parts[:i+2], "/"), true
		}
	}
	return "", false
}

// covered says which of paths holds rel, or is it.
func covered(rel string, paths []string) (string, bool) {
	for _, p := range paths {
		if within(rel, filepath.FromSlash(p)) {
			return p, true
		}
	}
	return "", false
}

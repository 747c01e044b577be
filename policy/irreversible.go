package policy

import (
	"path"
	"slices"
	"strings"

	"belay/effect"
)

// irreversible says why a command changes what no checkpoint brings back, "" where it is not known to. A sandbox discounts
// unknown effects; these are known.
func irreversible(a Action) (command, why string) {
	for _, c := range a.Commands {
		for _, text := range append([]string{c.Text}, c.Inner...) {
			if why := destroys(strings.Fields(text)); why != "" {
				return text, why
			}
		}
	}
	return "", ""
}

// launchers run the program behind them, with options of their own before it.
var launchers = map[string]int{"npx": 0, "bunx": 0, "pnpx": 0, "bundle exec": 1, "uv run": 1, "poetry run": 1, "pipenv run": 1, "pnpm exec": 1, "yarn exec": 1, "npm exec": 1, "python -m": 1, "python3 -m": 1}

func destroys(words []string) string {
	for i, w := range words {
		words[i] = strings.Trim(w, `"'\`)
	}
	for len(words) > 1 {
		skip, ok := launchers[words[0]]
		if !ok {
			skip, ok = launchers[words[0]+" "+words[1]]
		}
		if !ok {
			break
		}
		if words = words[skip+1:]; len(words) > 1 && strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return ""
	}
	program, args := path.Base(words[0]), words[1:]
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(w string) bool {
			return slices.ContainsFunc(options, func(o string) bool { return isOption(w, o) })
		})
	}
	first := func(names ...string) bool { return len(args) > 0 && slices.Contains(names, args[0]) }
	const migrates = "it changes a database's schema or data, which no checkpoint holds"
	switch program {
	case "git":
		return rewrites(args)
	case "chmod", "chown", "chgrp", "setfacl":
		if has("-R", "--recursive") {
			return "it changes modes or owners of everything below"
		}
	case "python", "python3", "django-admin", "manage.py", "./manage.py":
		if len(args) > 0 && path.Base(args[0]) == "manage.py" {
			args = args[1:]
		} else if strings.HasPrefix(program, "python") {
			return ""
		}
		if first("migrate", "flush", "sqlflush", "reset_db", "loaddata") {
			return migrates
		}
	case "rails", "rake":
		if slices.ContainsFunc(args, func(w string) bool {
			return strings.HasPrefix(w, "db:") && w != "db:version" && w != "db:migrate:status" && w != "db:abort_if_pending_migrations"
		}) {
			return migrates
		}
	case "alembic":
		if first("upgrade", "downgrade", "stamp") {
			return migrates
		}
	case "flyway":
		if slices.ContainsFunc(args, func(w string) bool {
			return slices.Contains([]string{"migrate", "clean", "undo", "repair", "baseline"}, w)
		}) {
			return migrates
		}
	case "liquibase":
		if slices.ContainsFunc(args, func(w string) bool {
			return strings.HasPrefix(w, "update") || strings.HasPrefix(w, "rollback") || w == "drop-all" || w == "dropAll"
		}) {
			return migrates
		}
	case "prisma":
		if first("migrate") && !slices.Contains(args, "status") && !slices.Contains(args, "diff") || first("db") && !slices.Contains(args, "pull") {
			return migrates
		}
	case "knex", "sequelize", "sequelize-cli", "typeorm":
		if slices.ContainsFunc(args, func(w string) bool {
			return strings.Contains(w, ":") && (strings.HasPrefix(w, "migrat") || strings.HasPrefix(w, "db:") || strings.HasPrefix(w, "seed") || strings.HasPrefix(w, "schema:")) &&
				!strings.HasSuffix(w, ":status") && !strings.HasSuffix(w, ":make") && !strings.HasSuffix(w, ":generate") && !strings.HasSuffix(w, ":create") && !strings.HasSuffix(w, ":list")
		}) {
			return migrates
		}
	case "drizzle-kit":
		if first("push", "migrate", "drop") {
			return migrates
		}
	case "goose", "dbmate", "migrate", "sqlx", "diesel":
		if slices.ContainsFunc(args, func(w string) bool {
			return slices.Contains([]string{"up", "down", "drop", "reset", "redo", "rollback", "force", "goto", "up-to", "down-to", "run", "revert", "setup"}, w)
		}) {
			return migrates
		}
	case "dropdb", "dropuser":
		return migrates
	}
	return ""
}

// isOption says that a word is an option, a unique beginning of a long one, or holds it among short ones.
func isOption(w, option string) bool {
	switch {
	case w == option:
		return true
	case strings.HasPrefix(option, "--"):
		name, _, _ := strings.Cut(w, "=")
		return len(name) > 3 && strings.HasPrefix(option, name)
	}
	return len(w) > 2 && w[0] == '-' && w[1] != '-' && strings.Contains(w[1:], option[1:])
}

// rewrites says whether git rewrites or discards history, or what only the repository holds.
func rewrites(args []string) string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // git's own options
		n := 1
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}, args[0]) {
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	if len(args) == 0 {
		return ""
	}
	sub, args := args[0], args[1:]
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(w string) bool {
			return slices.ContainsFunc(options, func(o string) bool { return isOption(w, o) })
		})
	}
	const why = "it rewrites or discards what only the repository holds"
	yes := false
	switch sub {
	case "reset":
		yes = has("--hard", "--merge", "--keep")
	case "commit":
		yes = has("--amend")
	case "rebase":
		yes = !has("--abort", "--quit", "--show-current-patch")
	case "filter-branch", "filter-repo", "replace", "prune", "update-ref":
		yes = true
	case "branch":
		yes = has("-D", "-M", "-C", "-f", "--force")
	case "tag":
		yes = has("-d", "--delete", "-f", "--force")
	case "stash":
		yes = len(args) > 0 && (args[0] == "drop" || args[0] == "clear")
	case "reflog":
		yes = len(args) > 0 && (args[0] == "expire" || args[0] == "delete")
	case "gc":
		yes = has("--prune", "--aggressive")
	case "checkout", "switch":
		yes = has("-f", "--force", "-B", "--discard-changes", "-C")
	case "clean":
		yes = has("-x", "-X") && !has("-n", "--dry-run")
	case "worktree":
		yes = len(args) > 0 && args[0] == "remove" && has("-f", "--force")
	}
	if yes {
		return why
	}
	return ""
}

// known is what is known of a command that its effects do not say.
func (s Situation) known(a Action, own ownClass) (Decision, bool) {
	command, why := irreversible(a)
	if why == "" || own.known {
		return Decision{}, false
	}
	f := "it cannot be taken back: `" + command + "`: " + why
	return s.decide(effect.ClassIrreversible, "irreversible", f), true
}

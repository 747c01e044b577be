package policy

import (
	"strings"
	"testing"

	"belay/effect"
)

func TestIrreversible(t *testing.T) {
	for _, line := range []string{"git reset --hard HEAD~1", "git -C sub -c a.b=c reset --har", "git commit --amend --no-edit", "git commit -a --amend", "git rebase -i main", "git branch -D old", "git branch -fD old", "git tag -d v1",
		"git stash drop", "git stash clear", "git reflog expire --all", "git filter-branch x", "git clean -fdx", "git checkout -f main", "git update-ref -d refs/heads/x", "chmod -R 777 .", "chown --recursive me .", "chmod -Rv a .",
		"python manage.py migrate", "python3 ./manage.py flush", "./manage.py migrate", "bundle exec rails db:migrate", "rake db:drop", "alembic upgrade head", "npx prisma migrate deploy", "npx --yes prisma migrate reset", "npx knex migrate:latest",
		"npx sequelize db:migrate", "goose up", "sqlx migrate run", "diesel migration run", "dropdb app", "flyway -url=x clean", "uv run alembic downgrade -1", "python -m alembic upgrade head"} {
		if command, why := irreversible(Action{Commands: []effect.Command{{Text: "ls"}, {Text: line}}}); why == "" || command != line {
			t.Errorf("%s: %q", line, why)
		}
		if _, why := irreversible(Action{Commands: []effect.Command{{Text: "timeout 5 " + line, Inner: []string{line}}}}); why == "" {
			t.Errorf("wrapped: %s", line)
		}
		d := Judge(Action{Tool: "Bash", Commands: []effect.Command{{Text: line}}, Effects: effect.Set{{Kind: effect.Opaque, Target: strings.Fields(line)[0]}}}, Situation{Mode: Edit, Sandboxed: true, Workspace: "/w"})
		if d.Class != effect.ClassIrreversible || d.Verdict != effect.Ask {
			t.Errorf("%s: %+v", line, d)
		}
	}
	for _, line := range []string{"git reset HEAD a.go", "git reset --soft HEAD~1", "git commit -m 'git reset --hard'", "git commit -m x", "git rebase --abort", "git branch -d merged", "git branch new", "git tag v1", "git stash", "git stash pop", "git stash list",
		"git clean -n", "git checkout main", "git checkout -b x", "git switch -c x", "git gc", "git reflog", "chmod +x a", "chmod 755 a b", "python manage.py test", "python manage.py makemigrations", "python migrate.py", "rails db:version", "rails test", "alembic current",
		"npx prisma generate", "npx prisma migrate status", "prisma db pull", "npx knex migrate:make x", "goose status", "sqlx migrate info", "npm run migrate"} {
		if _, why := irreversible(Action{Commands: []effect.Command{{Text: line}}}); why != "" {
			t.Errorf("%s: %s", line, why)
		}
	}
}

func TestDeletesFolders(t *testing.T) {
	unknown := effect.Set{{Kind: effect.Delete}}
	for line, want := range map[string]bool{`rm -rf "$x"`: true, `rm -r "$x"`: true, `rm --rec "$x"`: true, `rm $x`: true, `rm "$x"`: false, `rm -f "$x"`: false, `find "$x" -delete`: true, `rm -f -- "$r"`: false} {
		d := Judge(Action{Tool: "Bash", Commands: []effect.Command{{Text: line}}, Effects: unknown}, Situation{Mode: Autonomous, Sandboxed: true, Workspace: "/w"})
		if got := d.Verdict == effect.Deny; got != want || want && !strings.Contains(d.Reason, "explicit path") {
			t.Errorf("%s: %+v", line, d)
		}
		if d := Judge(Action{Tool: "Bash", Commands: []effect.Command{{Text: line}}, Effects: effect.Set{{Kind: effect.Delete, Target: "/w/a"}}}, Situation{Mode: Autonomous, Sandboxed: true, Workspace: "/w"}); d.Verdict == effect.Deny {
			t.Errorf("known: %s: %+v", line, d)
		}
	}
}

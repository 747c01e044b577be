package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/internal/yaml"
	"belay/journal"
	"belay/message"
	"belay/policy"
)

// world is a user with a home and a project.
type world struct {
	t                   *testing.T
	home, user, project string
}

func newWorld(t *testing.T) world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, filepath.Join(base, "home"), filepath.Join(base, "home", ".config", "belay"), filepath.Join(base, "project")}
	for _, dir := range []string{w.user, w.project} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// write writes a file below a folder; no text is no file.
func (w world) write(dir, name, text string) {
	w.t.Helper()
	if text == "" {
		return
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) trust() Trust { return Trust{Dir: w.user} }

func (w world) grant() {
	w.t.Helper()
	p, err := ReadProject(w.project)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.trust().Grant(p, time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

var defaults = Settings{Mode: policy.Edit, Bounds: journal.Bounds{Turns: 40, Tokens: 2_000_000, Money: 3 * message.Dollar, WallMS: 1_800_000, MiB: 4096}}

func (w world) sources(env ...string) Sources {
	return Sources{Workspace: w.project, UserDir: w.user, Environ: append(env, "HOME="+w.home), Defaults: defaults,
		Tools: []string{"Bash", "Edit", "Grep", "Read", "TaskComplete"}}
}

// told are the keys that notices are about.
func told(notices []Notice) []string {
	var keys []string
	for _, n := range notices {
		keys = append(keys, n.Key)
	}
	return keys
}

// values are the settings as a file would say them, without those that nobody has changed.
func values(s Settings) map[string]string {
	all := map[string]string{}
	for _, row := range s.Rows() {
		if row.Value != "" && row.Origin.Layer != Default {
			all[row.Name] = row.Value + " < " + row.Origin.Layer.String()
		}
	}
	return all
}

const whole = `version: 1
model: "anthropic:some-model"
mode: autonomous
verify: ["go test ./...", "go vet ./..."]
bounds: {turns: 50, tokens: 3000000, usd: 4.5, timeout: 1h, journal_mb: 9000}
tools: [Bash, Read]
protect: [tests/golden, ./go.mod]
key_files: {anthropic: ~/keys/anthropic}
light_model: openai:small
judge_model: gemini:judge
fallback: [openai:big, "rehearsal:other.yaml"]
notify: {command: notify-send belay}
`

func TestEveryKeyIsRead(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, FileName, whole)
	got, notices, err := Load(w.sources())
	if err != nil || notices != nil {
		t.Fatal(err, notices)
	}
	path := filepath.Join(w.user, FileName)
	want := Settings{
		Model: "anthropic:some-model", Mode: policy.Autonomous, Verify: []string{"go test ./...", "go vet ./..."},
		Bounds: journal.Bounds{Turns: 50, Tokens: 3_000_000, Money: message.USD(4.5), WallMS: 3_600_000, MiB: 9000},
		Tools:  []string{"Bash", "Read"}, Protect: []string{"go.mod", "tests/golden"},
		KeyFiles: map[string]string{"anthropic": filepath.Join(w.home, "keys", "anthropic")},
		Notify:   "notify-send belay", Light: "openai:small", Judge: "gemini:judge", Fallback: []string{"openai:big", "rehearsal:" + filepath.Join(w.user, "other.yaml")},
		From: map[string]Origin{
			"model": {User, path + ":2:8"}, "mode": {User, path + ":3:7"}, "verify": {User, path + ":4:9"},
			"bounds.turns": {User, path + ":5:17"}, "bounds.tokens": {User, path + ":5:29"}, "bounds.usd": {User, path + ":5:43"}, "bounds.timeout": {User, path + ":5:57"}, "bounds.journal_mb": {User, path + ":5:73"},
			"tools": {User, path + ":6:8"}, "protect": {User, path + ":7:10"}, "key_files": {User, path + ":8:12"},
			"light_model": {User, path + ":9:14"}, "judge_model": {User, path + ":10:14"}, "fallback": {User, path + ":11:11"}, "notify.command": {User, path + ":12:19"},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, key := range Keys() {
		if _, ok := got.From[key.Name]; !ok || key.Doc == "" || key.Untrusted == "" {
			t.Errorf("%+v is not tested or not explained", key)
		}
	}
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name          string
		user, project string
		env           []string
		flags         Settings
		want          map[string]string
	}{
		{name: "nobody says anything", want: map[string]string{}},
		{name: "all commented out", user: "# mode: plan\n", project: "\n", want: map[string]string{}},
		{name: "the project before the user", user: "mode: plan\nmodel: a:b\n", project: "mode: manual\n",
			want: map[string]string{"mode": "manual < project", "model": `"a:b" < user`}},
		{name: "the environment before the project", project: "bounds: {turns: 5, usd: 0.5}\n", env: []string{"BELAY_MAX_TURNS=7"},
			want: map[string]string{"bounds.turns": "7 < environment", "bounds.usd": "0.5 < project"}},
		{name: "flags before all", user: "tools: [Bash]\nverify: [a]\n", project: "tools: [Read]\nverify: [b]\n", env: []string{"BELAY_TOOLS=Edit", "BELAY_VERIFY=c"},
			flags: Settings{Tools: []string{"Grep"}, Verify: []string{"d"}, Bounds: journal.Bounds{WallMS: 90_000}},
			want:  map[string]string{"tools": "[Grep] < flag", "verify": "[d] < flag", "bounds.timeout": "1m30s < flag"}},
		{name: "a trusted project may widen", user: "mode: plan\nbounds: {usd: 1}\ntools: [Read]\n", project: "mode: autonomous\nbounds: {usd: 100}\ntools: [Bash, Read]\nverify: [make test]\n",
			want: map[string]string{"mode": "autonomous < project", "bounds.usd": "100 < project", "tools": "[Bash, Read] < project", "verify": `["make test"] < project`}},
		{name: "protection adds up", user: "protect: [a]\n", project: "protect: [b, a]\n", want: map[string]string{"protect": "[a, b] < project"}},
		{name: "key files add up", user: "key_files: {one: /k/1, two: /k/2}\n", project: "key_files: {two: /k/3}\n",
			want: map[string]string{"key_files": `{one: "/k/1", two: "/k/3"} < project`}},
		{name: "every variable", env: []string{"BELAY_MODEL=a:b", "BELAY_MODE=Plan", "BELAY_VERIFY=go vet ./...\n\ngo test ./...", "BELAY_MAX_TURNS=1",
			"BELAY_MAX_TOKENS=2", "BELAY_BUDGET_USD=0.25", "BELAY_TIMEOUT=1.5s", "BELAY_TOOLS=Read, Grep,", "BELAY_HOME=/x", "BELAY_SANDBOX=1"},
			want: map[string]string{"model": `"a:b" < environment`, "mode": "plan < environment", "verify": `["go vet ./...", "go test ./..."] < environment`, "bounds.turns": "1 < environment",
				"bounds.tokens": "2 < environment", "bounds.usd": "0.25 < environment", "bounds.timeout": "1.5s < environment", "tools": "[Read, Grep] < environment"}},
		{name: "an empty variable says nothing", env: []string{"BELAY_MODE=", "BELAY_MODLE="}, want: map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.user, FileName, c.user)
			w.write(w.project, ".belay/config.yaml", c.project)
			w.grant()
			src := w.sources(c.env...)
			src.Flags = c.flags
			got, notices, err := Load(src)
			if err != nil || notices != nil {
				t.Fatal(err, notices)
			}
			if d := cmp.Diff(c.want, values(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUntrustedProject(t *testing.T) {
	for _, c := range []struct {
		name          string
		user, project string
		env           []string
		want          map[string]string
		told          []string
	}{
		{name: "its own word on everything", project: whole,
			want: map[string]string{"tools": "[Bash, Read] < project", "protect": `[go.mod, "tests/golden"] < project`},
			told: []string{"model", "mode", "verify", "bounds.turns", "bounds.tokens", "bounds.usd", "bounds.timeout", "bounds.journal_mb", "key_files", "light_model", "judge_model", "fallback", "notify.command", ""}},
		{name: "everything stricter", project: "mode: manual\nbounds: {turns: 39, tokens: 5, usd: 2.99, timeout: 1s}\n",
			want: map[string]string{"mode": "manual < project", "bounds.turns": "39 < project", "bounds.tokens": "5 < project", "bounds.usd": "2.99 < project", "bounds.timeout": "1s < project"}},
		{name: "the same as without it", project: "mode: edit\nbounds: {turns: 40}\n", want: map[string]string{}},
		{name: "stricter than the default, not than the user", user: "mode: plan\nbounds: {usd: 1}\n", project: "mode: manual\nbounds: {usd: 2}\n",
			want: map[string]string{"mode": "plan < user", "bounds.usd": "1 < user"}, told: []string{"mode", "bounds.usd", ""}},
		{name: "wider than the default, stricter than the user", user: "mode: autonomous\nbounds: {usd: 100}\n", project: "mode: edit\nbounds: {usd: 50}\n",
			want: map[string]string{"mode": "edit < project", "bounds.usd": "50 < project"}},
		{name: "it does not bind the person", project: "mode: plan\n", env: []string{"BELAY_MODE=autonomous"}, want: map[string]string{"mode": "autonomous < environment"}},
		{name: "what would not count anyway", project: "mode: autonomous\nverify: [x]\n", env: []string{"BELAY_MODE=plan", "BELAY_VERIFY=y"}, want: map[string]string{"mode": "plan < environment", "verify": "[y] < environment"}},
		{name: "fewer tools", user: "tools: [Bash, Read, Grep]\n", project: "tools: [Read, Grep]\n", want: map[string]string{"tools": "[Read, Grep] < project"}},
		{name: "fewer tools and another", user: "tools: [Bash, Read]\n", project: "tools: [Read, Grep]\n", want: map[string]string{"tools": "[Read] < project"}, told: []string{"tools", ""}},
		{name: "the same tools and another", user: "tools: [Read]\n", project: "tools: [Read, Grep]\n", want: map[string]string{"tools": "[Read] < user"}, told: []string{"tools", ""}},
		{name: "more protection", user: "protect: [a]\n", project: "protect: [b]\n", want: map[string]string{"protect": "[a, b] < project"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.user, FileName, c.user)
			w.write(w.project, ".belay/config.yaml", c.project)
			got, notices, err := Load(w.sources(c.env...))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, values(got)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.told, told(notices)); d != "" {
				t.Error(d, notices)
			}
			for _, n := range notices {
				if !strings.HasPrefix(n.Place, filepath.Join(w.project, ".belay", "config.yaml")) || !strings.Contains(n.Text, "not trusted") {
					t.Errorf("a notice that does not say where or why: %v", n)
				}
			}
		})
	}
}

// TestUntrustedNeverWidens says for every key that the untrusted rule is one that only narrows: of two projects
// that differ in one key only, the untrusted one never ends with more than a user who has no project.
func TestUntrustedNeverWidens(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, FileName, "model: my:own\nmode: manual\nverify: [mine]\nbounds: {turns: 10, tokens: 1000, usd: 1, timeout: 1m, journal_mb: 5}\ntools: [Read]\nprotect: [a]\nkey_files: {one: /k/1}\nlight_model: my:light\njudge_model: my:judge\nfallback: [my:other]\nnotify: {command: mine}\n")
	before, _, err := Load(w.sources())
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.project, ".belay/config.yaml", "model: their:own\nmode: autonomous\nverify: [theirs]\nbounds: {turns: 11, tokens: 1001, usd: 1.01, timeout: 61s, journal_mb: 6}\ntools: [Read, Bash]\nprotect: [b]\nkey_files: {one: /k/2, two: /k/3}\nlight_model: their:light\njudge_model: their:judge\nfallback: [their:other]\nnotify: {command: theirs}\n")
	after, notices, err := Load(w.sources())
	if err != nil {
		t.Fatal(err)
	}
	after.Protect, before.Protect = nil, nil
	after.From, before.From = nil, nil
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	if len(notices) != len(Keys()) { // all but protect, and the advice
		t.Error(notices)
	}
}

func TestNoticesSayWhatToDo(t *testing.T) {
	w := newWorld(t)
	w.write(w.project, ".belay/config.yaml", "verify: [exit 0]\nbounds:\n  usd: 500\n")
	_, notices, err := Load(w.sources())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.project, ".belay", "config.yaml")
	want := []string{
		path + ":1:9: verify is ignored: the project is not trusted, and a command of its own would be run, and could prove anything",
		path + ":3:8: bounds.usd is ignored: the project is not trusted, and it may only lower the bound of $3.00",
		path + ": this project is not trusted: nobody has said so. Its settings may tighten, never widen. Read them, then say `belay trust` if they may decide",
	}
	var got []string
	for _, n := range notices {
		got = append(got, n.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// allKeys are the keys of a file, at its top.
func allKeys() string {
	keys := []string{"version"}
	for _, k := range Keys() {
		if top, _, _ := strings.Cut(k.Name, "."); !slices.Contains(keys, top) {
			keys = append(keys, top)
		}
	}
	return strings.Join(keys, ", ")
}

func TestMistakesAreLocated(t *testing.T) {
	const secret = "sk-ant-REDACTED"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "modle: x\n", `:1:1: unknown key "modle" in the configuration; allowed: ` + allKeys() + `. Did you mean model?`},
		{"unknown key like none", "zzz: 1\n", `:1:1: unknown key "zzz" in the configuration; allowed: ` + allKeys() + "\n"},
		{"unknown bound", "bounds:\n  turn: 5\n", `:2:3: unknown key "turn" in bounds; allowed: turns, tokens, usd, timeout, journal_mb. Did you mean turns?`},
		{"a bound at the top", "timeout: 5m\n", `Did you mean timeout under bounds?`},
		{"a flag's name", "max_turns: 5\n", `Did you mean turns under bounds?`},
		{"a flag's name for tokens", "max_tokens: 5\n", `Did you mean tokens under bounds?`},
		{"a whole name with a dot", "bounds.turns: 5\n", `unknown key "bounds.turns" in the configuration; allowed: ` + allKeys() + `. Did you mean turns under bounds?`},
		{"duplicate key", "mode: plan\nmode: edit\n", `:2:1: not valid YAML`},
		{"not a mapping", "- mode\n", `:1:1: the configuration must be a mapping, not a list`},
		{"two documents", "mode: plan\n---\nmode: edit\n", `:3:1: a second YAML document; the configuration is one`},
		{"anchor", "mode: &m plan\n", `not an anchor`},
		{"version", "version: 2\n", `:1:10: version must be 1`},
		{"mode", "mode: yolo\n", `:1:7: there is no mode "yolo": it is plan, manual, edit or autonomous`},
		{"mode of another type", "mode: true\n", `:1:7: mode must be text (put it in quotes), not true or false`},
		{"model", "model: gpt\n", `:1:8: model must be PROVIDER:NAME`},
		{"model empty", "model:\n", `model must be text (put it in quotes), not empty`},
		{"model with a line break", `model: "a:b\n"` + "\n", `model must be one line of text`},
		{"model with a password", "model: openai:x@http://me:pw@host/v1\n", `must not carry a name or password`},
		{"verify as text", "verify: go test\n", `:1:9: verify must be a list, such as ["go test ./..."], not text`},
		{"verify empty", "verify: []\n", `:1:9: verify is empty; leave it out`},
		{"verify nothing", "verify: [a, ' ']\n", `:1:13: an entry of verify: an empty command would prove nothing`},
		{"verify a number", "verify: [1]\n", `:1:10: an entry of verify must be text (put it in quotes), not a number`},
		{"verify with an escape", `verify: ["a\e[2Jb"]` + "\n", `must not have control characters`},
		{"bounds empty", "bounds:\n", `bounds must be a mapping, not empty`},
		{"no turns", "bounds: {turns: 0}\n", `:1:17: bounds.turns must be a whole number from 1 to`},
		{"half a turn", "bounds: {turns: 1.5}\n", `bounds.turns must be a whole number`},
		{"turns as text", "bounds: {turns: '5'}\n", `bounds.turns must be a whole number from 1 to 1000000000000, not text`},
		{"tokens with underscores", "bounds: {tokens: 1_000}\n", `bounds.tokens must be a whole number`},
		{"free of charge", "bounds: {usd: 0}\n", `bounds.usd must be above 0`},
		{"less than nothing", "bounds: {usd: -1}\n", `bounds.usd must be a number from 0`},
		{"infinite money", "bounds: {usd: .inf}\n", `bounds.usd must be a number from 0`},
		{"duration as number", "bounds: {timeout: 30}\n", `:1:19: bounds.timeout must be a duration such as 90s, 30m or 2h, not a number`},
		{"bad duration", "bounds: {timeout: 30 minutes}\n", `:1:19: bounds.timeout: "30 minutes" must be a duration of 1ms or more`},
		{"negative duration", "bounds: {timeout: -5m}\n", `must be a duration of 1ms or more`},
		{"endless duration", "bounds: {timeout: 9000000h}\n", `must be a duration`},
		{"unknown tool", "tools: [Bash, Reed]\n", `:1:15: an entry of tools: there is no tool "Reed". Did you mean Read?`},
		{"not a tool", "tools: [\"a b\"]\n", `"a b" is not the name of a tool`},
		{"protect outside", "protect: [../x]\n", `:1:11: an entry of protect: "../x" is no path inside the workspace`},
		{"protect absolute", "protect: [/etc]\n", `is no path inside the workspace`},
		{"protect everything", "protect: [./]\n", `is no path inside the workspace`},
		{"protect a pattern", "protect: ['tests/**']\n", `is a pattern; name a file or a folder`},
		{"key file relative", "key_files: {anthropic: keys/anthropic}\n", `:1:24: the path of a key file is absolute or begins with ~/`},
		{"key files empty", "key_files: {}\n", `key_files is empty`},
		{"provider", "key_files: {'A b': /x}\n", `is not the name of a provider`},
		{"inline key", "key_files: {anthropic: " + secret + "}\n", `this looks like a key itself; put the key into a file of its own`},
		{"inline key of no known shape", "key_files: {x: 0123456789abcdef0123456789abcdef}\n", `this looks like a key itself`},
		{"inline key instead of the mapping", "key_files: " + secret + "\n", `key_files must be a mapping, not text`},
		{"inline key by its name", "api_key: abc\n", `a key or password does not belong into a configuration file; put the key into a file`},
		{"inline key by its look", "whatever: " + secret + "\n", `a key or password does not belong into a configuration file`},
		{"inline key as model", "model: " + secret + "\n", `model must be PROVIDER:NAME`},
		{"inline key in a line that is wrong", "mode: [" + secret + "\n", `not valid YAML`},
		{"inline key as mode", "mode: " + secret + "\n", `there is no mode "[key]"`},
		{"not UTF-8", "mode: \xff\n", `this line is not UTF-8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, where := range []struct{ dir, name string }{{w.project, ".belay/config.yaml"}, {w.user, FileName}} {
				w.write(where.dir, where.name, c.text)
				_, _, err := Load(w.sources())
				var e *yaml.Error
				if !errors.As(err, &e) {
					t.Fatalf("want *yaml.Error, got %v", err)
				}
				if path := filepath.Join(where.dir, where.name); e.File != path || !strings.Contains(err.Error()+"\n", c.want) {
					t.Errorf("got  %v\nwant %s%s", err, path, c.want)
				}
				if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "0123456789abcdef") || strings.Contains(err.Error(), ": abc") {
					t.Errorf("the error shows the key: %v", err)
				}
				if err := os.Remove(filepath.Join(where.dir, where.name)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestMistakesInVariables(t *testing.T) {
	for _, c := range []struct{ variable, want string }{
		{"BELAY_MODE=yolo", `BELAY_MODE: there is no mode "yolo": it is plan, manual, edit or autonomous`},
		{"BELAY_MODEL=x", `BELAY_MODEL: must be PROVIDER:NAME`},
		{"BELAY_MODEL=sk-ant-REDACTED", `BELAY_MODEL: must be PROVIDER:NAME`},
		{"BELAY_MAX_TURNS=0", `BELAY_MAX_TURNS: "0" must be a whole number from 1`},
		{"BELAY_MAX_TURNS=many", `BELAY_MAX_TURNS: "many" must be a whole number`},
		{"BELAY_MAX_TOKENS=1e6", `BELAY_MAX_TOKENS: "1e6" must be a whole number`},
		{"BELAY_BUDGET_USD=NaN", `BELAY_BUDGET_USD: "NaN" must be an amount above 0`},
		{"BELAY_BUDGET_USD=-1", `must be an amount above 0`},
		{"BELAY_BUDGET_USD=0.0000000001", `must be an amount above 0`},
		{"BELAY_TIMEOUT=5", `BELAY_TIMEOUT: "5" must be a duration`},
		{"BELAY_TOOLS=,", `BELAY_TOOLS: "," names nothing`},
		{"BELAY_TOOLS=bash", `BELAY_TOOLS: there is no tool "bash". Did you mean Bash?`},
		{"BELAY_MODLE=a:b", `the variable BELAY_MODLE is no setting of belay. Did you mean MODEL, after BELAY_?`},
		{"BELAY_MAX_TURN=5", `Did you mean MAX_TURNS`},
	} {
		t.Run(c.variable, func(t *testing.T) {
			_, _, err := Load(newWorld(t).sources(c.variable))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sk-ant") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	_, notices, err := Load(newWorld(t).sources("BELAY_QUX=1", "OTHER=1"))
	if err != nil || len(notices) != 1 || notices[0].Place != "BELAY_QUX" {
		t.Error(err, notices)
	}
}

func TestToolsThatLeaveNothing(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, FileName, "tools: [Read]\n")
	w.write(w.project, ".belay/config.yaml", "tools: [Bash]\n")
	_, _, err := Load(w.sources())
	if err == nil || !strings.Contains(err.Error(), "config.yaml:1:8: tools names none of those that are set without it (Read)") {
		t.Error(err)
	}
}

func TestPathsOfAFileStartWhereItSpeaks(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, FileName, "model: rehearsal:mine.yaml\n")
	if got, _, err := Load(w.sources()); err != nil || got.Model != "rehearsal:"+filepath.Join(w.user, "mine.yaml") {
		t.Error(got.Model, err)
	}
	w.write(w.project, ".belay/config.yaml", "model: rehearsal:scripts/ours.yaml\n")
	w.grant()
	if got, _, err := Load(w.sources()); err != nil || got.Model != "rehearsal:"+filepath.Join(w.project, "scripts", "ours.yaml") {
		t.Error(got.Model, err)
	}
	if got, _, err := Load(w.sources("BELAY_MODEL=rehearsal:here.yaml")); err != nil || got.Model != "rehearsal:here.yaml" {
		t.Error(got.Model, err)
	}
}

func TestKeyFileInTheWorkspace(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, FileName, "key_files: {one: "+filepath.ToSlash(filepath.Join(w.project, "key"))+"}\n")
	if _, _, err := Load(w.sources()); err == nil || !strings.Contains(err.Error(), "must not lie in the workspace") {
		t.Error(err)
	}
}

func TestUserConfigurationInTheWorkspaceIsTold(t *testing.T) {
	w := newWorld(t)
	src := w.sources()
	src.Workspace = w.home
	_, notices, err := Load(src)
	if err != nil || len(notices) != 1 || notices[0].Place != w.user {
		t.Error(notices, err)
	}
}

func TestUserFileMayBeALink(t *testing.T) {
	w := newWorld(t)
	w.write(w.home, "dotfiles/belay.yaml", "mode: plan\n")
	if err := os.Symlink("../../dotfiles/belay.yaml", filepath.Join(w.user, FileName)); err != nil {
		t.Fatal(err)
	}
	if got, _, err := Load(w.sources()); err != nil || got.Mode != policy.Plan {
		t.Error(got.Mode, err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(w world) error
		want string
	}{
		{"a folder", func(w world) error { return os.MkdirAll(filepath.Join(w.project, ".belay", FileName), 0o755) }, "not a regular file"},
		{"the user's is a folder", func(w world) error { return os.MkdirAll(filepath.Join(w.user, FileName), 0o755) }, "not a regular file"},
		{"a link", func(w world) error {
			w.write(w.project, ".belay/x", "mode: plan\n")
			return os.Symlink("x", filepath.Join(w.project, ".belay", FileName))
		}, "it is a symbolic link"},
		{".belay is a link", func(w world) error { return os.Symlink(w.user, filepath.Join(w.project, ".belay")) }, "must be a folder, not a symbolic link"},
		{".belay is a file", func(w world) error { return os.WriteFile(filepath.Join(w.project, ".belay"), nil, 0o644) }, "must be a folder, not a file"},
		{"5 GB", func(w world) error {
			w.write(w.project, ".belay/config.yaml", "x")
			return os.Truncate(filepath.Join(w.project, ".belay", FileName), 5<<30)
		}, "too large"},
		{"a loop for the user", func(w world) error { return os.Symlink(FileName, filepath.Join(w.user, FileName)) }, "too many links"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := c.make(w); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Load(w.sources()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestUserDir(t *testing.T) {
	abs := filepath.Join(t.TempDir(), "home")
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": abs}, filepath.Join(abs, ".config", "belay")},
		{map[string]string{"HOME": abs, "XDG_CONFIG_HOME": filepath.Join(abs, "x")}, filepath.Join(abs, "x", "belay")},
		{map[string]string{"HOME": abs, "XDG_CONFIG_HOME": "relative"}, filepath.Join(abs, ".config", "belay")},
	} {
		if got, err := UserDir(func(name string) string { return c.env[name] }); err != nil || got != c.want {
			t.Errorf("got %s, %v; want %s", got, err, c.want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("bounds:\n  timeout: 5m\n"))
	f.Add([]byte("key_files: {a: sk-ant-REDACTED}\n"))
	f.Add([]byte("tools: [a]\nx: &y {<<: *y}\n"))
	base := Settings{Mode: policy.Manual, Bounds: journal.Bounds{Turns: 10, Tokens: 1000, Money: message.Dollar, WallMS: 60_000}, Tools: []string{"Read", "Bash"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		r := reader{got: base}
		values, err := r.parse("f.yaml", string(filepath.Separator), data)
		if err != nil {
			var e *yaml.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 {
				t.Fatalf("not a located error: %#v", err)
			}
			if secretShape().MatchString(err.Error()) {
				t.Fatalf("a key is shown: %v", err)
			}
			return
		}
		for _, v := range values {
			if _, _, err := v.setting.tighten(&r.got, &v.settings); err != nil {
				continue
			}
		}
		got := r.got
		if got.Model != "" || got.Verify != nil || got.KeyFiles != nil || got.Mode != policy.Manual && got.Mode != policy.Plan ||
			got.Bounds.Turns > 10 || got.Bounds.Tokens > 1000 || got.Bounds.Money > message.Dollar || got.Bounds.WallMS > 60_000 || len(got.Tools) > 2 {
			t.Fatalf("an untrusted file has widened: %+v", got)
		}
	})
}

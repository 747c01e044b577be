package config

import (
	"fmt"
	"maps"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"belay/internal/yaml"
	"belay/message"
	"belay/policy"
)

// Rule is what a project that nobody trusts can do to a setting.
type Rule string

const (
	Ignored Rule = "nothing"            // it decides where data and money go, or what counts as proof
	Lower   Rule = "lower it"           //
	Tighter Rule = "make it stricter"   //
	Fewer   Rule = "take some away"     //
	More    Rule = "protect more paths" //
)

// Key is a setting as a person meets it.
type Key struct {
	Name      string // in a file; "bounds.turns" is turns under bounds
	Env, Flag string // "" where there is none
	Doc       string // one line
	Untrusted Rule   // what a project that nobody trusts may do
	Join      bool   // a source adds to those before it instead of replacing them
}

// Keys lists the settings in the order of a file.
func Keys() []Key {
	var keys []Key
	for _, s := range table {
		keys = append(keys, s.key())
	}
	return keys
}

// Row is one setting as it stands.
type Row struct {
	Key
	Value  string // as a file would say it; "" where nobody set it
	Origin Origin
}

// Rows lists all settings with their values.
func (s Settings) Rows() []Row {
	var rows []Row
	for _, t := range table {
		row := Row{Key: t.key(), Origin: s.From[t.key().Name]}
		if t.given(&s) {
			row.Value = t.show(&s)
		}
		rows = append(rows, row)
	}
	return rows
}

const (
	maxCount = 1_000_000_000_000
	maxUSD   = 1e9
	maxTime  = 365 * 24 * time.Hour
	maxItems = 1000 // of a list
)

// strictness of the modes, the strictest first.
var strictness = []policy.Mode{policy.Plan, policy.Manual, policy.Edit, policy.Autonomous}

// table is all there is to know about each setting.
var table = []setting{
	modelFor("model", "BELAY_MODEL", "--model", "which model does the work, as PROVIDER:NAME", func(s *Settings) *string { return &s.Model }),
	of[policy.Mode]{
		Key:   Key{Name: "mode", Env: "BELAY_MODE", Flag: "--mode", Doc: "what may happen without asking: " + modeNames(), Untrusted: Tighter},
		at:    func(s *Settings) *policy.Mode { return &s.Mode },
		isSet: func(v policy.Mode) bool { return v != "" },
		node: func(n yaml.Node, what string, _ place) (policy.Mode, error) {
			name, err := n.Text(what)
			if err == nil && !slices.Contains(strictness, policy.Mode(name)) {
				err = n.Errorf("there is no mode %q: it is %s", name, modeNames())
			}
			return policy.Mode(name), err
		},
		text: func(text string, _ place) (policy.Mode, error) {
			mode := policy.Mode(strings.ToLower(text))
			if !slices.Contains(strictness, mode) {
				return "", fmt.Errorf("there is no mode %q: it is %s", text, modeNames())
			}
			return mode, nil
		},
		narrow: func(have, want policy.Mode) (policy.Mode, string, error) {
			if have == "" {
				have = policy.Edit
			}
			if slices.Index(strictness, want) > slices.Index(strictness, have) {
				return have, "it may only make the mode stricter than " + string(have), nil
			}
			return want, "", nil
		},
		shown: func(m policy.Mode) string { return string(m) },
	},
	verification{of[[]string]{
		Key:   Key{Name: "verify", Env: "BELAY_VERIFY", Flag: "--verify", Doc: "shell commands that must pass before a task is done and proved", Untrusted: Ignored},
		at:    func(s *Settings) *[]string { return &s.Verify },
		isSet: func(v []string) bool { return v != nil },
		node: func(n yaml.Node, what string, _ place) ([]string, error) {
			return readList(n, what, `["go test ./..."]`, checkCommand)
		},
		text: func(text string, _ place) ([]string, error) { return split(text, "\n", checkCommand) },
		why:  "a command of its own would be run, and could prove anything",
	}},
	count[int]("turns", "BELAY_MAX_TURNS", "--max-turns", "turns of a session", func(s *Settings) *int { return &s.Bounds.Turns }),
	count[int64]("tokens", "BELAY_MAX_TOKENS", "--max-tokens", "tokens of a run, read and written", func(s *Settings) *int64 { return &s.Bounds.Tokens }),
	of[message.Cost]{
		Key:   Key{Name: "bounds.usd", Env: "BELAY_BUDGET_USD", Flag: "--budget-usd", Doc: "US dollars of a run", Untrusted: Lower},
		at:    func(s *Settings) *message.Cost { return &s.Bounds.Money },
		isSet: func(v message.Cost) bool { return v != 0 },
		node: func(n yaml.Node, what string, _ place) (message.Cost, error) {
			usd, err := n.Amount(what, maxUSD)
			if err == nil && message.USD(usd) <= 0 {
				err = n.Errorf("%s must be above 0", what)
			}
			return message.USD(usd), err
		},
		text: func(text string, _ place) (message.Cost, error) {
			usd, err := strconv.ParseFloat(text, 64)
			if err != nil || !(usd <= maxUSD && message.USD(usd) > 0) {
				return 0, fmt.Errorf("%q must be an amount above 0 and at most a billion, such as 2.50", text)
			}
			return message.USD(usd), nil
		},
		narrow: lower(message.Cost.String),
		shown:  func(v message.Cost) string { return strconv.FormatFloat(v.Dollars(), 'f', -1, 64) },
	},
	of[int64]{
		Key:   Key{Name: "bounds.timeout", Env: "BELAY_TIMEOUT", Flag: "--timeout", Doc: "how long a run may take, such as 90s, 30m or 2h", Untrusted: Lower},
		at:    func(s *Settings) *int64 { return &s.Bounds.WallMS },
		isSet: func(v int64) bool { return v != 0 },
		node: func(n yaml.Node, what string, _ place) (int64, error) {
			if n.Kind() != yaml.Text {
				return 0, n.Wrong(what, "a duration such as 90s, 30m or 2h")
			}
			text, _ := n.Literal()
			ms, err := parseTimeout(text)
			if err != nil {
				err = n.Errorf("%s: %v", what, err)
			}
			return ms, err
		},
		text:   func(text string, _ place) (int64, error) { return parseTimeout(text) },
		narrow: lower(showMS),
		shown:  showMS,
	},
	count[int64]("journal_mb", "BELAY_MAX_JOURNAL_MB", "--max-journal-mb", "MiB that a run may keep on the disk", func(s *Settings) *int64 { return &s.Bounds.MiB }),
	of[[]string]{
		Key:   Key{Name: "tools", Env: "BELAY_TOOLS", Flag: "--tools", Doc: "the only tools the model gets", Untrusted: Fewer},
		at:    func(s *Settings) *[]string { return &s.Tools },
		isSet: func(v []string) bool { return v != nil },
		node: func(n yaml.Node, what string, p place) ([]string, error) {
			return readList(n, what, "[Read, Grep]", func(name string) (string, error) { return p.checkTool(name) })
		},
		text: func(text string, p place) ([]string, error) {
			return split(text, ",", func(name string) (string, error) { return p.checkTool(name) })
		},
		narrow: func(have, want []string) ([]string, string, error) {
			if have == nil {
				return want, "", nil
			}
			var both, more []string
			for _, name := range want {
				if slices.Contains(have, name) {
					both = append(both, name)
				} else {
					more = append(more, name)
				}
			}
			switch {
			case both == nil:
				return have, "", fmt.Errorf("tools names none of those that are set without it (%s), so that none would be left", strings.Join(have, ", "))
			case more != nil:
				return both, "it may only take tools away, so that it does not bring " + strings.Join(more, ", "), nil
			}
			return both, "", nil
		},
	},
	of[[]string]{
		Key:   Key{Name: "protect", Doc: "files and folders of the workspace that no agent changes", Untrusted: More, Join: true},
		at:    func(s *Settings) *[]string { return &s.Protect },
		isSet: func(v []string) bool { return v != nil },
		node: func(n yaml.Node, what string, _ place) ([]string, error) {
			return readList(n, what, "[tests/golden]", checkProtected)
		},
		join:   union,
		narrow: func(have, want []string) ([]string, string, error) { return union(have, want), "", nil },
	},
	of[map[string]string]{
		Key:   Key{Name: "key_files", Doc: "files with API keys, as PROVIDER: PATH; never the keys themselves", Untrusted: Ignored, Join: true},
		at:    func(s *Settings) *map[string]string { return &s.KeyFiles },
		isSet: func(v map[string]string) bool { return v != nil },
		node:  readKeyFiles,
		join: func(have, want map[string]string) map[string]string {
			all := maps.Clone(have)
			if all == nil {
				all = map[string]string{}
			}
			maps.Copy(all, want)
			return all
		},
		why: "the file that it names would be sent to a model's provider",
		shown: func(v map[string]string) string {
			var all []string
			for _, provider := range slices.Sorted(maps.Keys(v)) {
				all = append(all, provider+": "+quote(v[provider]))
			}
			return "{" + strings.Join(all, ", ") + "}"
		},
	},
	modelFor("light_model", "BELAY_LIGHT_MODEL", "--light-model", "which model writes summaries and explanations; the model itself, unless named", func(s *Settings) *string { return &s.Light }),
	modelFor("judge_model", "BELAY_JUDGE_MODEL", "--judge-model", "which model judges; the model itself, unless named", func(s *Settings) *string { return &s.Judge }),
	of[[]string]{
		Key:   Key{Name: "fallback", Env: "BELAY_FALLBACK", Flag: "--fallback", Doc: "models that stand in, in turn, where the model cannot be reached", Untrusted: Ignored},
		at:    func(s *Settings) *[]string { return &s.Fallback },
		isSet: func(v []string) bool { return v != nil },
		node: func(n yaml.Node, what string, p place) ([]string, error) {
			return readList(n, what, "[openai:NAME]", p.modelItem)
		},
		text: func(text string, p place) ([]string, error) { return split(text, ",", p.modelItem) },
		why:  "a model is where your code and your key are sent",
	},
	of[string]{
		Key:   Key{Name: "notify.command", Env: "BELAY_NOTIFY_COMMAND", Doc: "shell command that is told of each question to a person, as JSON on its input; it may print an answer", Untrusted: Ignored},
		at:    func(s *Settings) *string { return &s.Notify },
		isSet: func(v string) bool { return v != "" },
		node: func(n yaml.Node, what string, _ place) (string, error) {
			text, err := n.Text(what)
			if err == nil {
				if text, err = checkCommand(text); err != nil {
					err = n.Errorf("%s: %v", what, err)
				}
			}
			return text, err
		},
		text:  func(text string, _ place) (string, error) { return checkCommand(text) },
		why:   "a command of its own would be run outside the sandbox, and could answer in your place",
		shown: quote,
	},
}

// modelFor is a setting that names a model.
func modelFor(name, env, flag, doc string, at func(*Settings) *string) setting {
	return of[string]{
		Key:   Key{Name: name, Env: env, Flag: flag, Doc: doc, Untrusted: Ignored},
		at:    at,
		isSet: func(v string) bool { return v != "" },
		node:  readModel,
		text:  func(text string, _ place) (string, error) { return text, checkModel(text) },
		why:   "the model is where your code and your key are sent",
		shown: quote,
	}
}

// modelItem checks a model in a list.
func (p place) modelItem(text string) (string, error) {
	if err := checkModel(text); err != nil {
		return "", err
	}
	return p.located(text), nil
}

// located makes the file of a rehearsal one of the place that names it: a file speaks of its own surroundings.
func (p place) located(text string) string {
	if file, ok := strings.CutPrefix(text, "rehearsal:"); ok && p.dir != "" && !filepath.IsAbs(file) {
		return "rehearsal:" + filepath.Join(p.dir, file)
	}
	return text
}

// count is a bound that is a whole number.
func count[T int | int64](name, env, flag, doc string, at func(*Settings) *T) setting {
	high := int64(min(maxCount, math.MaxInt)) // an int has 32 bits on some machines
	show := func(v T) string { return strconv.FormatInt(int64(v), 10) }
	return of[T]{
		Key:   Key{Name: "bounds." + name, Env: env, Flag: flag, Doc: doc, Untrusted: Lower},
		at:    at,
		isSet: func(v T) bool { return v != 0 },
		node: func(n yaml.Node, what string, _ place) (T, error) {
			v, err := n.Int(what, 1, high)
			return T(v), err
		},
		text: func(text string, _ place) (T, error) {
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil || v < 1 || v > high {
				return 0, fmt.Errorf("%q must be a whole number from 1 to %d", text, high)
			}
			return T(v), nil
		},
		narrow: lower(show),
		shown:  show,
	}
}

// lower lets a bound only go down. No bound so far is the widest.
func lower[T int | int64 | message.Cost](show func(T) string) func(have, want T) (T, string, error) {
	return func(have, want T) (T, string, error) {
		if have != 0 && want > have {
			return have, fmt.Sprintf("it may only lower the bound of %s", show(have)), nil
		}
		return want, "", nil
	}
}

func modeNames() string {
	names := make([]string, len(strictness))
	for i, m := range strictness {
		names[i] = string(m)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// showMS is a duration without its zeros: 30m instead of 30m0s.
func showMS(ms int64) string {
	s := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// parseTimeout returns milliseconds, rounded up.
func parseTimeout(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > maxTime {
		return 0, fmt.Errorf("%q must be a duration of 1ms or more, such as 90s, 30m or 2h", text)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond), nil
}

// readList reads a list of text. Check returns an item as it is kept.
func readList(n yaml.Node, what, example string, check func(string) (string, error)) ([]string, error) {
	if n.Kind() != yaml.List {
		return nil, n.Wrong(what, "a list, such as "+example)
	}
	nodes, err := n.List(what)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, n.Errorf("%s is empty; leave it out, or write for example %s", what, example)
	}
	if len(nodes) > maxItems {
		return nil, n.Errorf("%s has %d entries; at most %d are read", what, len(nodes), maxItems)
	}
	var all []string
	for _, node := range nodes {
		text, err := node.Text("an entry of " + what)
		if err != nil {
			return nil, err
		}
		item, err := check(text)
		if err != nil {
			return nil, node.Errorf("an entry of %s: %v", what, err)
		}
		all = append(all, item)
	}
	return all, nil
}

// split reads a list from a variable.
func split(text, by string, check func(string) (string, error)) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(text, by) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		item, err := check(part)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	if all == nil {
		return nil, fmt.Errorf("%q names nothing", text)
	}
	return all, nil
}

func union(have, want []string) []string {
	all := slices.Concat(have, want)
	slices.Sort(all)
	return slices.Compact(all)
}

func readModel(n yaml.Node, what string, p place) (string, error) {
	text, err := n.Text(what)
	if err != nil {
		return "", err
	}
	if err := checkModel(text); err != nil {
		return "", n.Errorf("%s %v", what, err)
	}
	return p.located(text), nil
}

// passwordInURL matches a model at a URL that carries a name or a password.
var passwordInURL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/]*@`) })

func checkModel(text string) error {
	switch provider, name, _ := strings.Cut(text, ":"); {
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || text != strings.TrimSpace(text):
		return fmt.Errorf("must be one line of text without spaces around it")
	case provider == "" || name == "":
		return fmt.Errorf("must be PROVIDER:NAME, such as rehearsal:script.yaml")
	case passwordInURL().MatchString(text):
		return fmt.Errorf("must not carry a name or password in its URL; %s", keyAdvice)
	}
	return nil
}

func checkCommand(line string) (string, error) {
	if strings.TrimSpace(line) == "" {
		return "", fmt.Errorf("an empty command would prove nothing")
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return "", fmt.Errorf("a command must not have control characters")
	}
	return strings.TrimSpace(line), nil
}

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`) })

func (p place) checkTool(name string) (string, error) {
	if !toolName().MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a tool", name)
	}
	if p.tools == nil || slices.Contains(p.tools, name) {
		return name, nil
	}
	if near := nearest(name, p.tools); near != "" {
		return "", fmt.Errorf("there is no tool %q. Did you mean %s?", name, near)
	}
	return "", fmt.Errorf("there is no tool %q; there are %s", name, strings.Join(p.tools, ", "))
}

func checkProtected(name string) (string, error) {
	name = path.Clean(filepath.ToSlash(name))
	switch {
	case strings.ContainsAny(name, "*?[{"):
		return "", fmt.Errorf("%q is a pattern; name a file or a folder", name)
	case !filepath.IsLocal(filepath.FromSlash(name)) || name == ".":
		return "", fmt.Errorf("%q is no path inside the workspace", name)
	}
	return name, nil
}

package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"belay/tool"
)

func memory(t testing.TB, cfg Config) *Redactor {
	t.Helper()
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The keys of these tests are put together here, so that no scanner of this repository takes them for real ones.
var (
	github = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	awsID  = "AKIA" + "IOSFODNN7EXAMPLE"
	awsKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
	claude = "sk-ant-" + "api03-AbCdEf0123456789-xyzXYZ_AA"
	jwtKey = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pemKey = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu\nKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n" + "-----END RSA PRIVATE KEY-----\n"
)

// Each line is a text with the secret in brackets; the rest must stay, and the secret must not.
func TestFinds(t *testing.T) {
	for _, text := range []string{
		"a key ⟦" + github + "⟧ in a sentence.",
		`esc \n⟦` + github + `⟧\n`,
		"red \x1b[31m⟦sk-proj-" + "abcDEF0123456789abcdef⟧\x1b[0m",
		"⟦" + awsID + "⟧",
		"[default]\naws_secret_access_key = ⟦" + awsKey + "⟧\n",
		"export AWS_SECRET_ACCESS_KEY=⟦" + awsKey + "⟧\n",
		`"AccountKey": "⟦Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==⟧"`,
		"AccountName=x;AccountKey=⟦Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==⟧;Suffix=core",
		"entra ⟦abc8Q~" + "abcdefghijklmnopqrstuvwxyz0123456⟧ x",
		"?sv=2022&⟦sig=abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG%3D⟧&se=1",
		"maps ⟦AIza" + "SyA1234567890abcdefghijklmnopqrstuv⟧\"",
		"⟦github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz⟧",
		"⟦glpat-" + "abcdefGHIJKL12345678⟧",
		"⟦xoxb-" + "123456789012-abcdefABCDEF⟧",
		"https://⟦hooks.slack.com/services/" + "T0000/B0000/abcdefghijklmnopqrst⟧",
		"⟦sk_live_" + "abcdefghijklmnop1234⟧",
		"⟦" + claude + "⟧",
		"⟦sk-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL⟧",
		"//registry.example.com/:_authToken=⟦npm_" + "abcdefghijklmnopqrstuvwxyz0123456789⟧",
		"⟦pypi-" + "AgEIcHlwaS5vcmcCJDAwMDAwMDAw⟧",
		"Cookie: ⟦" + jwtKey + "⟧; b=c",
		"Authorization: Bearer ⟦abcdef123456⟧",
		`curl -H "authorization: token ⟦abcdef123456⟧" host`,
		"Authorization: Basic ⟦dXNlcjpwYXNzd29yZDEyMw==⟧",
		`-H 'X-Api-Key: ⟦a1b2c3d4e5f6a7b8⟧'`,
		"postgres://app:⟦s3cr3t-pw⟧@db.internal:5432/x",
		"DB_PASSWORD=⟦correcthorsebattery⟧\nDB_HOST=localhost\n",
		"  12\tDB_PASSWORD=\"⟦p@ss w0rd;x⟧\"\n",
		"line\\nDB_PASSWORD=⟦hunter22pass⟧\\nnext",
		`password: "⟦hunter2!⟧"`,
		`{"apiKey":"⟦k9f8e7d6c5b4⟧"}`,
		`{\"client_secret\":\"⟦k9f8e7d6c5b4⟧\"}`,
		"spring.datasource.password=⟦x7Gh29kQz⟧\n",
		"mysql --password=⟦x7Gh29kQz⟧ -u root",
		"login --token ⟦x7Gh29kQz88⟧ now",
		"<password>⟦x7Gh29kQz⟧</password>",
		"FOO_TOKEN=⟦x7Gh29kQz88⟧ make test",
	} {
		r := memory(t, Config{})
		before, rest, _ := strings.Cut(text, "⟦")
		secret, after, _ := strings.Cut(rest, "⟧")
		plain := before + secret + after
		got := r.Hide(plain)
		if strings.Contains(got, secret) || !strings.HasPrefix(got, before+opening) || !strings.HasSuffix(got, closing+after) {
			t.Errorf("%q became %q", plain, got)
		}
		roundTrip(t, r, plain)
	}
}

// What only looks like a secret stays: hashes, ids, code, examples.
func TestLeaves(t *testing.T) {
	for _, text := range []string{
		"commit 9ba3a03c1f5d2e7b8a6c4d3e2f1a0b9c8d7e6f5a",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"550e8400-e29b-41d4-a716-446655440000",
		"h1:HVmqJ0D1e5kqdQ1hBtGk8C1F8MXNZqTmDv2xQ1Qvq0c=",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
		`password := os.Getenv("DB_PASSWORD")`,
		`token := p.next()`, `Token: tok1,`, `secret, err := readSecret(path)`, `var token string`,
		`errors.New("token: unexpected end of input")`, `func (t *Token) Password() string {`,
		`PASSWORD=$DB_PASSWORD`, `TOKEN=${{ secrets.GITHUB_TOKEN }}`, `API_KEY=<your key>`, `API_KEY=your-api-key-here`, `password: changeme`,
		`"password": "string"`, `type="password"`, `max_tokens: 4096000`, `next_page_token: abc123def456`, `keyboard = "qwerty123"`,
		`token = "access_token"`, `"public_key": "abcdef123456"`, "MAX_TOKENS=40960000",
		"http://localhost:8080/a@b", "git@github.com:owner/repo.git", "ssh://git@github.com/owner/repo", "https://user@host/x",
		"risk-abcdefghijklmnopqrstuvwxyz1", "sk-fading-circle-container", "task-0123456789abcdefghij",
		"a bearer of good news, and basic manners", "Authorization: required", "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
		"«secret:github:0123456789ab» stays", "« secret »",
	} {
		if got := memory(t, Config{}).Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func roundTrip(t *testing.T, r *Redactor, plain string) {
	t.Helper()
	hidden := r.Hide(plain)
	if again := r.Text(hidden); again != hidden {
		t.Errorf("hidden %.200q, hidden again %.200q", hidden, again)
	}
	if back, err := r.Restore(hidden); err != nil || back != plain {
		t.Errorf("%.200q came back as %.200q, %v", plain, back, err)
	}
}

// A private key keeps its lines, and each line is known alone: in a window of the file, or in a search.
func TestPEM(t *testing.T) {
	r := memory(t, Config{})
	got := r.Hide(pemKey)
	lines := strings.Split(got, "\n")
	if len(lines) != 5 || placeholderLen(lines[1]) != len(lines[1]) || placeholderLen(lines[2]) != len(lines[2]) || lines[1] == lines[2] {
		t.Fatalf("%q", got)
	}
	body := strings.Split(pemKey, "\n")[2]
	if got := r.Text("    3\t" + body); got != "    3\t"+lines[2] {
		t.Errorf("a line alone: %q", got)
	}
	escaped := strings.ReplaceAll(pemKey, "\n", `\n`)
	if got := memory(t, Config{}).Hide(`key = "` + escaped + `"`); strings.Contains(got, "MIIB") || strings.Contains(got, "KUpR") || !strings.Contains(got, `\n-----END`) {
		t.Errorf("on one line: %q", got)
	}
	numbered := "     1\t" + strings.Replace(strings.Replace(pemKey, "\nM", "\n     2\tM", 1), "\nK", "\n     3\tK", 1)
	if got := memory(t, Config{}).Text(numbered); strings.Contains(got, "MIIB") || strings.Contains(got, "KUpR") || !strings.Contains(got, "\n     3\t«") {
		t.Errorf("numbered: %q", got)
	}
	roundTrip(t, r, pemKey)
}

// One value has one placeholder, whatever stands around it, and is hidden alone once it was seen.
func TestOneName(t *testing.T) {
	r := memory(t, Config{})
	first := r.Text("API_TOKEN=x7Gh29kQz88LmN")
	name := strings.TrimPrefix(first, "API_TOKEN=")
	if got := r.Text("connecting with x7Gh29kQz88LmN!"); got != "connecting with "+name+"!" {
		t.Errorf("%q, %q", first, got)
	}
	// In one text too, where the place that tells comes after.
	if got := memory(t, Config{}).Text("Qz88LmNx7Gh29k! API_TOKEN=Qz88LmNx7Gh29k"); strings.Contains(got, "Qz88") {
		t.Error(got)
	}
	// A weak one is hidden in its place only, until it was used.
	weak := r.Text("DB_PASSWORD=postgres")
	if got := r.Text("postgres runs"); got != "postgres runs" {
		t.Error(got)
	}
	if _, err := r.Restore(weak); err != nil {
		t.Error(err)
	}
	if got := r.Text("postgres runs"); strings.Contains(got, "postgres") {
		t.Error(got)
	}
}

func TestKnown(t *testing.T) {
	const key = `local"key/1 2`
	r := memory(t, Config{Known: []string{key, "short", "lm-studio"}, Environ: []string{"DEPLOY_TOKEN=zz-top-88-11", "HOME=/home/someone", "SSH_AUTH_SOCK=/tmp/a-1", "PWD=/work1234", "DB_PASSWORD=postgres"}})
	for _, form := range []string{key, `local\"key/1 2`, "local%22key%2F1+2", "bG9jYWwia2V5LzEgMg==", "zz-top-88-11"} {
		if got := r.Text("a" + form + "b"); strings.Contains(got, form) {
			t.Errorf("%q became %q", form, got)
		}
	}
	for _, other := range []string{"short lm-studio /home/someone /tmp/a-1 postgres"} {
		if got := r.Text(other); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
}

func TestRestoreMistakes(t *testing.T) {
	r := memory(t, Config{})
	name := r.Text(github)
	for _, text := range []string{"«secret:github:000000000000»", name[:len(name)-3], "x «secret:", strings.ToUpper(name)} {
		_, err := r.Restore(text)
		var mistake *tool.Mistake
		if strings.Contains(text, opening) != errors.As(err, &mistake) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// What a file holds that looks like one is neither lost nor confused with one.
	for _, text := range []string{"«secret:github:000000000000»", name, "a " + name + github, "«secret:", "«secret:«secret:«secret:x:y»", "const opening = `«secret:`"} {
		roundTrip(t, r, text)
	}
}

func TestVault(t *testing.T) {
	home := t.TempDir()
	r := memory(t, Config{Home: home, RunID: "r_1"})
	text := r.Text("key " + github + " and API_TOKEN=x7Gh29kQz88LmN, DB_PASSWORD=\npostgres://a:postgres1@h")
	unused := r.Text(claude)
	path := filepath.Join(home, "vault", "r_1")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a vault before anything names a secret: %v", err)
	}
	for range 2 {
		if err := r.Keep(text); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("\n")) != 3 || bytes.Contains(data, []byte(github)) {
		t.Errorf("%v:\n%s", err, data)
	}
	for _, file := range []string{path, filepath.Join(home, "vault", "key")} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	// A torn end is cut; the rest is there again, under the same names.
	if err := os.WriteFile(path, append(data, `{"placeholder":"«sec`...), 0o600); err != nil {
		t.Fatal(err)
	}
	again := memory(t, Config{Home: home, RunID: "r_1"})
	if plain, err := again.Restore(text); err != nil || !strings.Contains(plain, github) || !strings.Contains(plain, "postgres1") {
		t.Errorf("%q, %v", plain, err)
	}
	if got := again.Text("x7Gh29kQz88LmN"); !strings.Contains(text, got) {
		t.Errorf("%q is not in %q", got, text)
	}
	if _, err := again.Restore(unused); err == nil {
		t.Error("a secret that nothing named was kept")
	}
	if got := memory(t, Config{Home: home, RunID: "r_2"}).Text(github); !strings.Contains(text, got) {
		t.Errorf("another run calls it %q", got)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, data) {
		t.Errorf("%q", after)
	}
	// Damage is not passed over.
	if err := os.WriteFile(path, append([]byte("{}\n"), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Home: home, RunID: "r_1"}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}

// A stream is hidden wherever it is cut.
func TestWriter(t *testing.T) {
	text := "start\nkey " + github + " end\n" + pemKey + strings.Repeat("filler line\n", 20) + "last " + claude
	want := ""
	for _, size := range []int{1, 2, 3, 7, 64, 1000, 1 << 20} {
		r := memory(t, Config{})
		var out bytes.Buffer
		w := &writer{r: r, w: &out}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			if size < 64 { // as if the block were full
				w.mu.Lock()
				if err := w.pass(w.safe()); err != nil {
					t.Fatal(err)
				}
				w.mu.Unlock()
			}
			rest = rest[n:]
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if back, err := r.Restore(out.String()); err != nil || back != text {
			t.Fatalf("size %d: %q, %v", size, back, err)
		}
		masked := mask(out.String())
		if want == "" {
			want = masked
		}
		if masked != want || strings.Contains(masked, "16C7e42F") || strings.Contains(masked, "MIIB") || strings.Contains(masked, "api03") {
			t.Errorf("size %d: %q", size, masked)
		}
	}
	// A line longer than any buffer.
	r := memory(t, Config{})
	var out bytes.Buffer
	w := &writer{r: r, w: &out}
	for range 20_000 {
		fmt.Fprint(w, "word ", github[:20])
		fmt.Fprint(w, github[20:])
	}
	if err := w.flush(); err != nil || strings.Contains(out.String(), github[:20]) {
		t.Error("a key in a long line came through", err)
	}
}

// mask makes the random ids of placeholders one.
func mask(s string) string {
	var b strings.Builder
	for at := nextPlaceholder(s); at >= 0; at = nextPlaceholder(s) {
		b.WriteString(s[:at] + opening + kindOf(s[at:]) + closing)
		s = s[at+placeholderLen(s[at:]):]
	}
	return b.String() + s
}

// TestFalsePositives bounds how many files of the Go source tree change: hashes, ids and test data must stay.
func TestFalsePositives(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, changed := 0, []string{}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		// A fresh redactor would cost more than the scan: only what shapes and places find is counted.
		if got := fpRedactor.find(string(data), nil); len(got) > 0 {
			changed = append(changed, fmt.Sprintf("%s: %.60q", path, string(data[got[0].start:got[0].end])))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d files change:\n%s", len(changed), files, strings.Join(changed, "\n"))
	if files < 1000 || len(changed)*100 > files {
		t.Errorf("%d of %d files change; at most 1 %% may", len(changed), files)
	}
}

var fpRedactor = func() *Redactor { r, _ := Open(Config{}); return r }()

// No text costs more than a small multiple of its size: one that did would not end before the tests are stopped.
func TestHostile(t *testing.T) {
	for _, part := range []string{"eyJ", "xoxb-", "sk-", "AKIA", "authorization=", "authorization: ", "bearer ", "api_key=", "api_key: ", "token=\"", "://a:", "-----BEGIN PRIVATE KEY-----", "«secret:", "sig=", "Q~", `\"password\":`, github + " ", "DB_PASSWORD=x7Gh29kQz\n", "ghp_", "key"} {
		text := strings.Repeat(part, 1<<16/len(part))
		roundTrip(t, memory(t, Config{}), text)
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "ghp_16C7e42F292c6912E7710c838347%08d\n", i)
	}
	roundTrip(t, memory(t, Config{}), many.String())
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"x " + github + " y", awsID + github, pemKey, "API_TOKEN=x7Gh29kQz88LmN " + jwtKey, "«secret:", "«secret:github:000000000000»", "https://a:b1234567@c", `{"password":"hunter22"}`, "Authorization: Basic dXNlcjpwYXNzd29yZDEyMw=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := memory(t, Config{Known: []string{"known-value-1"}})
		hidden := r.Hide(s)
		if again := r.Text(hidden); again != hidden {
			t.Errorf("hidden %q, hidden again %q", hidden, again)
		}
		text := r.Text(s)
		if again := r.Text(text); again != text {
			t.Errorf("%q, and again %q", text, again)
		}
		if back, err := r.Restore(hidden); err != nil || back != s {
			t.Errorf("%q came back as %q, %v", s, back, err)
		}
	})
}

func BenchmarkText(b *testing.B) {
	source, err := os.ReadFile("names.go")
	if err != nil {
		b.Fatal(err)
	}
	// A megabyte of code, of this very kind: dense in the words that secrets' names have.
	dense := string(bytes.Repeat(source, 1<<20/len(source)))
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog; 42 tests passed in 0.318s (cached)\n", 1<<20/80)
	for name, text := range map[string]string{"prose": prose, "dense": dense} {
		b.Run(name, func(b *testing.B) {
			r := memory(b, Config{})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Text(text)
			}
		})
	}
}

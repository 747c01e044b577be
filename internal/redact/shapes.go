package redact

import (
	"encoding/base64"
	"math"
	"strings"
	"sync"
)

// Sets of bytes that tokens are made of.
const (
	digits   = "0123456789"
	hexes    = digits + "abcdef"
	uppers   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowers   = "abcdefghijklmnopqrstuvwxyz"
	upperNum = uppers + digits
	alphaNum = uppers + lowers + digits
	urlSafe  = alphaNum + "-_"
	dotted   = urlSafe + "."
	base64s  = alphaNum + "+/="
)

// shape is a token that its maker gave a prefix, so that it is recognised wherever it stands.
type shape struct {
	kind     string
	prefix   string
	body     string // bytes that may follow the prefix
	min, max int    // how many of them
	loose    bool   // the prefix says so much that it may follow a letter or digit
	digit    bool   // at least one digit among them, since words may look like it
}

// shapes are the published forms of keys: GitHub's and GitLab's token prefixes, the providers' own documentation,
// and the rules of gitleaks and trufflehog for the rest. Lengths are lower bounds where makers have changed them.
var shapes = []shape{
	{kind: "aws", prefix: "AKIA", body: upperNum, min: 16, max: 16, loose: true},
	{kind: "aws", prefix: "ASIA", body: upperNum, min: 16, max: 16, loose: true},
	{kind: "aws", prefix: "ABIA", body: upperNum, min: 16, max: 16, loose: true},
	{kind: "aws", prefix: "ABSK", body: base64s, min: 109, max: 269},
	{kind: "gcp", prefix: "AIza", body: urlSafe, min: 35, max: 35},
	{kind: "gcp", prefix: "ya29.", body: urlSafe, min: 20},
	{kind: "gcp", prefix: "GOCSPX-", body: urlSafe, min: 20},
	{kind: "github", prefix: "ghp_", body: alphaNum, min: 20, loose: true},
	{kind: "github", prefix: "gho_", body: alphaNum, min: 20, loose: true},
	{kind: "github", prefix: "ghu_", body: alphaNum, min: 20, loose: true},
	{kind: "github", prefix: "ghs_", body: dotted, min: 20, loose: true},
	{kind: "github", prefix: "ghr_", body: alphaNum, min: 20, loose: true},
	{kind: "github", prefix: "github_pat_", body: alphaNum + "_", min: 20, loose: true},
	{kind: "gitlab", prefix: "glpat-", body: dotted, min: 16, loose: true},
	{kind: "gitlab", prefix: "gldt-", body: dotted, min: 16, digit: true},
	{kind: "gitlab", prefix: "glrt-", body: dotted, min: 16, digit: true},
	{kind: "gitlab", prefix: "glcbt-", body: dotted, min: 16, digit: true},
	{kind: "gitlab", prefix: "glptt-", body: dotted, min: 16, digit: true},
	{kind: "gitlab", prefix: "glsoat-", body: dotted, min: 16, digit: true},
	{kind: "gitlab", prefix: "glagent-", body: dotted, min: 16, digit: true},
	{kind: "slack", prefix: "xoxb-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xoxp-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xoxa-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xoxr-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xoxs-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xoxc-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xoxd-", body: urlSafe + "%+/=", min: 10, loose: true},
	{kind: "slack", prefix: "xoxe.xox", body: dotted, min: 10, loose: true},
	{kind: "slack", prefix: "xoxe-", body: urlSafe, min: 10, loose: true},
	{kind: "slack", prefix: "xapp-", body: urlSafe, min: 16, digit: true},
	{kind: "slack", prefix: "hooks.slack.com/services/", body: alphaNum + "/", min: 20, loose: true},
	{kind: "slack", prefix: "hooks.slack.com/workflows/", body: alphaNum + "/", min: 20, loose: true},
	{kind: "discord", prefix: "discord.com/api/webhooks/", body: urlSafe + "/", min: 40, loose: true},
	{kind: "stripe", prefix: "sk_live_", body: alphaNum, min: 10},
	{kind: "stripe", prefix: "sk_test_", body: alphaNum, min: 10},
	{kind: "stripe", prefix: "rk_live_", body: alphaNum, min: 10},
	{kind: "stripe", prefix: "rk_test_", body: alphaNum, min: 10},
	{kind: "stripe", prefix: "whsec_", body: alphaNum + "+/=", min: 20},
	{kind: "anthropic", prefix: "sk-ant-", body: urlSafe, min: 8, loose: true},
	{kind: "openai", prefix: "sk-proj-", body: urlSafe, min: 16, digit: true},
	{kind: "openai", prefix: "sk-svcacct-", body: urlSafe, min: 16, digit: true},
	{kind: "openai", prefix: "sk-admin-", body: urlSafe, min: 16, digit: true},
	{kind: "openrouter", prefix: "sk-or-v1-", body: urlSafe, min: 16},
	{kind: "key", prefix: "sk-", body: alphaNum, min: 20, digit: true},
	{kind: "groq", prefix: "gsk_", body: alphaNum, min: 20},
	{kind: "xai", prefix: "xai-", body: alphaNum, min: 40},
	{kind: "huggingface", prefix: "hf_", body: alphaNum, min: 30},
	{kind: "perplexity", prefix: "pplx-", body: alphaNum, min: 32},
	{kind: "replicate", prefix: "r8_", body: alphaNum, min: 32},
	{kind: "npm", prefix: "npm_", body: alphaNum, min: 30},
	{kind: "pypi", prefix: "pypi-", body: urlSafe, min: 50},
	{kind: "pypi", prefix: "pypi-AgE", body: urlSafe, min: 12},
	{kind: "sendgrid", prefix: "SG.", body: dotted, min: 40, digit: true},
	{kind: "twilio", prefix: "SK", body: hexes, min: 32, max: 32},
	{kind: "mailgun", prefix: "key-", body: hexes, min: 32, max: 32},
	{kind: "digitalocean", prefix: "dop_v1_", body: hexes, min: 40, loose: true},
	{kind: "digitalocean", prefix: "doo_v1_", body: hexes, min: 40, loose: true},
	{kind: "digitalocean", prefix: "dor_v1_", body: hexes, min: 40, loose: true},
	{kind: "docker", prefix: "dckr_pat_", body: urlSafe, min: 20, loose: true},
	{kind: "shopify", prefix: "shpat_", body: hexes + "ABCDEF", min: 32, loose: true},
	{kind: "shopify", prefix: "shpss_", body: hexes + "ABCDEF", min: 32, loose: true},
	{kind: "shopify", prefix: "shpca_", body: hexes + "ABCDEF", min: 32, loose: true},
	{kind: "linear", prefix: "lin_api_", body: alphaNum, min: 32, loose: true},
	{kind: "databricks", prefix: "dapi", body: hexes, min: 32, max: 34},
	{kind: "doppler", prefix: "dp.pt.", body: alphaNum, min: 40},
	{kind: "vault", prefix: "hvs.", body: urlSafe, min: 24},
	{kind: "vault", prefix: "hvb.", body: urlSafe, min: 24},
	{kind: "age", prefix: "AGE-SECRET-KEY-1", body: upperNum, min: 50, loose: true},
	{kind: "grafana", prefix: "glsa_", body: alphaNum + "_", min: 32},
	{kind: "grafana", prefix: "glc_", body: base64s, min: 32, digit: true},
	{kind: "newrelic", prefix: "NRAK-", body: upperNum, min: 20},
	{kind: "postman", prefix: "PMAK-", body: hexes + "-", min: 32},
	{kind: "rubygems", prefix: "rubygems_", body: hexes, min: 40, loose: true},
	{kind: "figma", prefix: "figd_", body: urlSafe, min: 32},
	{kind: "heroku", prefix: "HRKU-", body: urlSafe, min: 32},
	{kind: "supabase", prefix: "sbp_", body: hexes, min: 40},
	{kind: "supabase", prefix: "sb_secret_", body: urlSafe, min: 20},
	{kind: "planetscale", prefix: "pscale_tkn_", body: dotted, min: 30, loose: true},
	{kind: "planetscale", prefix: "pscale_pw_", body: dotted, min: 30, loose: true},
	{kind: "notion", prefix: "ntn_", body: alphaNum, min: 40},
	{kind: "sentry", prefix: "sntrys_", body: base64s + "_", min: 40, loose: true},
	{kind: "tailscale", prefix: "tskey-", body: urlSafe, min: 16, digit: true},
	{kind: "atlassian", prefix: "ATATT3", body: urlSafe + "=", min: 40, loose: true},
	{kind: "azure", prefix: "sig=", body: alphaNum + "%", min: 43},
}

// anchors are all that a scan stops at.
func anchors() []anchor {
	all := []anchor{
		{lit: "eyJ", find: jwt},
		{lit: "Q~", find: azureSecret},
		{lit: "-----BEGIN ", find: pem},
		{lit: "://", find: userInfo},
		{lit: "authorization", fold: true, find: authorization},
		{lit: "bearer ", fold: true, find: bearer},
		{lit: "basic ", fold: true, find: basic},
	}
	for _, word := range []string{"passw", "passphrase", "_pass", "pwd", "secret", "token", "key", "credential"} {
		all = append(all, anchor{lit: word, fold: true, find: named})
	}
	for _, s := range shapes {
		all = append(all, anchor{lit: s.prefix, find: s.find})
	}
	return all
}

func (s shape) find(t string, at int, spans []span) []span {
	if !s.loose && !fresh(t, at) {
		return spans
	}
	from := at + len(s.prefix)
	reach := t
	if s.max > 0 {
		reach = t[:min(len(t), from+s.max+1)]
	}
	to := run(reach, from, s.body)
	if s.max > 0 && to-from > s.max || to-from < s.min {
		return spans
	}
	if s.digit && !strings.ContainsAny(t[from:to], digits) {
		return spans
	}
	for to > from+s.min && strings.IndexByte(".-%", t[to-1]) >= 0 { // the end of a sentence
		to--
	}
	return append(spans, span{at, to, s.kind})
}

// fresh says that no word goes on at this place: what stands before is no letter or digit, or it is the end of an
// escape such as \n, %20, \u003d or a terminal's colour.
func fresh(t string, at int) bool {
	if at == 0 || !strings.ContainsRune(urlSafe, rune(t[at-1])) {
		return true
	}
	if at >= 2 && t[at-2] == '\\' || at >= 3 && t[at-3] == '%' || at >= 6 && t[at-6:at-4] == `\u` {
		return true
	}
	if t[at-1] == 'm' {
		i := at - 2
		for i >= 0 && at-i < 16 && (t[i] >= '0' && t[i] <= '9' || t[i] == ';' || t[i] == '[') {
			i--
		}
		return i >= 0 && t[i] == 0x1b
	}
	return false
}

// run is where the bytes of a set end, from a place on.
func run(t string, from int, set string) int {
	in := table(set)
	for from < len(t) && in[t[from]>>6]&(1<<(t[from]&63)) != 0 {
		from++
	}
	return from
}

var tables sync.Map // set -> its table

// table is a set of bytes as bits.
func table(set string) *[4]uint64 {
	if known, ok := tables.Load(set); ok {
		return known.(*[4]uint64)
	}
	var in [4]uint64
	for i := range len(set) {
		in[set[i]>>6] |= 1 << (set[i] & 63)
	}
	tables.Store(set, &in)
	return &in
}

// jwt finds a JSON Web Token: two parts that begin like JSON objects and a signature, or the five parts of an
// encrypted one.
func jwt(t string, at int, spans []span) []span {
	if !fresh(t, at) {
		return spans
	}
	end, parts := at, 0
	for ; parts < 5; parts++ {
		to := run(t, end, urlSafe)
		if parts < 1 && to-end < 10 || parts == 1 && to-end < 6 && !strings.HasPrefix(t[to:], ".") {
			return spans
		}
		end = to
		if end == len(t) || t[end] != '.' || parts == 4 {
			parts++
			break
		}
		end++
	}
	second := at + strings.IndexByte(t[at:end]+".", '.') + 1
	if parts < 3 || end-at < 36 || parts < 5 && !strings.HasPrefix(t[min(second, end):end], "eyJ") && end-at < 100 {
		return spans
	}
	return append(spans, span{at, end, "jwt"})
}

// azureSecret finds the secret of an Entra application: three bytes and a digit, "Q~", 31 to 34 more.
func azureSecret(t string, at int, spans []span) []span {
	const set = alphaNum + "_~.-"
	end := run(t[:min(len(t), at+2+35)], at+2, set)
	if n := end - at - 2; at < 4 || n < 31 || n > 34 || t[at-1] < '0' || t[at-1] > '9' || run(t, at-4, set) < at {
		return spans
	}
	return append(spans, span{at - 4, end, "azure"})
}

// pem finds the lines of a private key, one by one: each keeps its place and number, and is recognised alone later.
func pem(t string, at int, spans []span) []span {
	const maxBody = 32 << 10
	header := t[at:min(len(t), at+100)]
	if i := strings.Index(header, "PRIVATE KEY"); i < 0 || strings.ContainsAny(header[:i], "\n\\") {
		return spans
	}
	from := at + strings.Index(header, "PRIVATE KEY") + len("PRIVATE KEY")
	body := t[from:min(len(t), from+maxBody)]
	for _, mark := range []string{"-----END", "-----BEGIN"} {
		body, _, _ = strings.Cut(body, mark)
	}
	for i := 0; i < len(body); {
		to := run(body, i, base64s)
		if to == i {
			i++
			continue
		}
		start := i
		if start > 0 && body[start-1] == '\\' { // \n
			start++
		}
		i = to
		// What stands around the lines: their numbers, the rest of the header, and headers such as DEK-Info.
		if to-start < 8 || to < len(body) && (body[to] == ':' || body[to] == '-') || strings.HasPrefix(body[to:], ",") {
			continue
		}
		spans = append(spans, span{from + start, from + to, "pem"})
	}
	return spans
}

// userInfo finds the password in scheme://user:password@host.
func userInfo(t string, at int, spans []span) []span {
	from := at + len("://")
	colon := -1
	for i := from; i < len(t) && i-from < 512; i++ {
		switch c := t[i]; {
		case c == ':' && colon < 0:
			colon = i
		case c == '@':
			if colon < 0 {
				return spans
			}
			password, user := t[colon+1:i], t[from:colon]
			if len(password) < minValue || password == user || dummy(password) || interpolated(password) {
				return spans
			}
			return append(spans, span{colon + 1, i, "value"})
		case c <= ' ', c == '/', c == '"', c == '\'', c == '<', c == '>', c == '`', c == '\\', c == '?', c == '#':
			return spans
		}
	}
	return spans
}

// maxHeader is how many bytes of a header tell whether it holds credentials.
const maxHeader = 2 << 10

// authorization finds the credentials of an Authorization header.
func authorization(t string, at int, spans []span) []span {
	i := run(t, at+len("authorization"), `"'\`)
	i = run(t, i, " \t")
	if i >= len(t) || t[i] != ':' && t[i] != '=' && t[i] != ',' {
		return spans
	}
	i = run(t, i+1, " \t\"'\\")
	scheme := run(t, i, uppers+lowers)
	switch strings.ToLower(t[i:scheme]) {
	case "bearer", "basic", "token", "apikey", "key", "bot", "oauth", "splunk":
		i = run(t, scheme, " \t")
	default:
		scheme = i
	}
	end := run(t[:min(len(t), i+maxHeader)], i, dotted+"+/=~")
	if v := t[i:end]; len(v) < minValue || dummy(v) || scheme == i && !mixed(v) || word(v) {
		return spans
	}
	return append(spans, span{i, run(t, end, dotted+"+/=~"), "value"})
}

// bearer finds a token after the word alone.
func bearer(t string, at int, spans []span) []span {
	from := run(t, at+len("bearer "), " ")
	end := run(t, from, dotted+"+/=~")
	if v := t[from:end]; len(v) < 16 || !mixed(v) || word(v) {
		return spans
	}
	return append(spans, span{from, end, "value"})
}

// basic finds name and password in base64.
func basic(t string, at int, spans []span) []span {
	from := run(t, at+len("basic "), " ")
	end := run(t, from, base64s)
	plain, err := base64.StdEncoding.DecodeString(t[from:end])
	if end-from < 8 || err != nil || !strings.Contains(string(plain), ":") {
		return spans
	}
	return append(spans, span{from, end, "value"})
}

// shapeOf is the kind of a value that is one token of a known shape from its start to its end.
func shapeOf(value string) string {
	if spans := jwt(value, 0, nil); strings.HasPrefix(value, "eyJ") && len(spans) > 0 && spans[0].end == len(value) {
		return "jwt"
	}
	for _, s := range shapes {
		if !strings.HasPrefix(value, s.prefix) {
			continue
		}
		if spans := s.find(value, 0, nil); len(spans) > 0 && spans[0].end == len(value) {
			return s.kind
		}
	}
	return ""
}

// strong says that a value is so unlike anything else that it is hidden wherever it stands.
func strong(value, kind string) bool {
	if kind != "value" {
		return len(value) >= 12
	}
	return len(value) >= 12 && mixed(value) && entropy(value) >= 3
}

// mixed says that a text holds letters and digits.
func mixed(s string) bool {
	return strings.ContainsAny(s, digits) && strings.ContainsAny(s, uppers+lowers)
}

// entropy is Shannon's, in bits a byte, over the bytes of the text.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

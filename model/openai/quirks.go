package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// reasoning says what a server wants to see of earlier thinking.
type reasoning int

const (
	dropThinking   reasoning = iota
	echoThinking             // reasoning_content where there was some: templates of models that think between calls read it
	replayThinking           // reasoning_content with every assistant message, else the server refuses the conversation
	replayParts              // as the parts of content in which it came
	replayDetails            // reasoning_details, unchanged: they carry the signatures of who stands behind
)

// ids says which call ids a server takes.
type ids int

const (
	anyID   ids = iota // as the model gave them: Kimi wants "functions.bash:0" back
	shortID            // at most 40 characters
	nineID             // exactly nine letters and digits
)

// quirks are what differs between servers and models of this dialect.
type quirks struct {
	provider string // the name under which it is configured; "" is any
	host     string // suffix of the base URL's host; "" is any
	name     string // part of the model's name; "" is any

	limit     string // the field for the output limit
	keyHeader string // for the key, where it is not Authorization
	cacheKey  bool   // takes prompt_cache_key
	summaries bool   // takes reasoning.summary
	effort    string // the field for the effort: "reasoning_effort" where it is ""; "-" is none
	noUsage   bool   // does not know stream_options, and reports usage of its own accord
	reasoning reasoning
	ids       ids
	tags      bool // models may mark thinking by tags in the text
	tight     bool // after results only the assistant may speak: what the user's side adds goes behind the last result
	silentCut bool // drops the front of a prompt that does not fit, and says nothing
}

const newLimit, oldLimit = "max_completion_tokens", "max_tokens"

// servers is the quirk table; the first row that fits counts. State: 2026-11, from the vendors' pages and trackers.
var servers = []quirks{
	{host: "api.openai.com", limit: newLimit, cacheKey: true, summaries: true, ids: shortID},
	{provider: "azure", limit: newLimit, ids: shortID, keyHeader: "Api-Key", summaries: true},
	{host: "openai.azure.com", limit: newLimit, ids: shortID, keyHeader: "Api-Key", summaries: true},
	{host: "services.ai.azure.com", limit: newLimit, ids: shortID, keyHeader: "Api-Key"},
	{host: "googleapis.com", limit: oldLimit},
	{host: "amazonaws.com", limit: newLimit, ids: shortID, tags: true}, // no unknown fields
	{host: "mistral.ai", limit: oldLimit, ids: nineID, reasoning: replayParts, tags: true, tight: true, noUsage: true, effort: "-"},
	{host: "deepseek.com", limit: oldLimit, reasoning: replayThinking},
	{host: "moonshot.ai", limit: oldLimit, reasoning: replayThinking, effort: "-"},
	{host: "moonshot.cn", limit: oldLimit, reasoning: replayThinking, effort: "-"},
	{host: "kimi.com", limit: oldLimit, reasoning: replayThinking, effort: "-"},
	{host: "openrouter.ai", limit: oldLimit, reasoning: replayDetails, effort: "reasoning.effort"},
	{host: "groq.com", limit: newLimit},
	{host: "x.ai", limit: newLimit},
	{host: "z.ai", limit: oldLimit, effort: "-"},
	{host: "bigmodel.cn", limit: oldLimit, effort: "-"},
	{host: "minimax.io", limit: oldLimit, tags: true, effort: "-"},
	{host: "minimaxi.com", limit: oldLimit, tags: true, effort: "-"},
	{host: "aliyuncs.com", limit: oldLimit, effort: "-"},
	{provider: "ollama", name: "mistral", limit: oldLimit, ids: nineID, tags: true, tight: true, silentCut: true},
	{provider: "ollama", limit: oldLimit, tags: true, silentCut: true, reasoning: echoThinking},
	{name: "mistral", limit: oldLimit, ids: nineID, tags: true, tight: true}, // local servers take the id rule from the model's template
	{name: "devstral", limit: oldLimit, ids: nineID, tags: true, tight: true},
	{name: "magistral", limit: oldLimit, ids: nineID, tags: true, tight: true},
	{limit: oldLimit, tags: true, reasoning: echoThinking},
}

func quirksOf(provider, base, name string) quirks {
	host, name := "", strings.ToLower(name)
	port := ""
	if u, err := url.Parse(base); err == nil {
		host, port = u.Hostname(), u.Port()
	}
	if port == "11434" { // Ollama's own
		provider = "ollama"
	}
	for _, q := range servers {
		if (q.provider == "" || q.provider == provider) && (q.host == "" || host == q.host || strings.HasSuffix(host, "."+q.host)) && strings.Contains(name, q.name) {
			return q
		}
	}
	return quirks{}
}

// callID makes an id fit for the server.
func (q quirks) callID(id string) string {
	switch q.ids {
	case shortID:
		return short(id, 40)
	case nineID:
		return nine(id)
	}
	return id
}

// short keeps to so many characters.
func short(id string, most int) string {
	if len(id) <= most && id != "" {
		return id
	}
	h := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(h[:16])
}

// nine makes the nine letters and digits that Mistral wants.
func nine(id string) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	if len(id) == 9 && strings.Trim(strings.ToLower(id), digits) == "" {
		return id
	}
	h := sha256.Sum256([]byte(id))
	out := make([]byte, 9)
	for i := range out {
		out[i] = digits[int(h[i])%len(digits)]
	}
	return string(out)
}

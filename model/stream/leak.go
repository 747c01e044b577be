package stream

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"belay/message"
	"belay/model"
)

// The forms in which models write calls into their text when a server's parser, or they themselves, miss the right
// one: Qwen's and GLM's tags, Kimi's tokens, Anthropic's older XML, and bare JSON. Each names the tool.
var leakForms = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`<tool_call>\s*<function=([A-Za-z0-9_.:-]+)>`),
		regexp.MustCompile(`<tool_call>\s*\{[^{}]*"name"\s*:\s*"([A-Za-z0-9_.:-]+)"`),
		regexp.MustCompile(`<tool_call>\s*([A-Za-z0-9_.:-]+)\s*(?:\n|<arg_key>|</tool_call>)`),
		regexp.MustCompile(`<(?:antml:)?invoke name="([A-Za-z0-9_.:-]+)">`),
		regexp.MustCompile(`<\|tool_call_begin\|>\s*(?:functions\.)?([A-Za-z0-9_.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>`),
		regexp.MustCompile(`<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([A-Za-z0-9_.:-]+)`),
		regexp.MustCompile(`\[TOOL_CALLS\]\s*(?:\[\s*\{\s*"name"\s*:\s*")?([A-Za-z0-9_.:-]+)`),
		regexp.MustCompile(`(?:^|\n)<function=([A-Za-z0-9_.:-]+)>\s*(?:<parameter=|\{|</function>)`),
	}
})

// leakScan bounds how much of a text's end is looked at, in bytes: a leaked call ends its text.
const leakScan = 256 << 10

// leaked returns the names of tools whose calls stand in the text of a reply that holds no proper call. Only tools
// that the request offers count, since models also write about such things; thinking is looked at where there is no
// text. Text inside of code fences and in the middle of prose is no call.
func (r *Reply) leaked(blocks []message.Block) []string {
	text := message.PlainText(blocks)
	if strings.TrimSpace(text) == "" {
		for _, b := range blocks {
			if b.Kind == message.KindThinking {
				text += b.Text
			}
		}
	}
	if len(text) > leakScan {
		text = text[len(text)-leakScan:]
	}
	if strings.IndexByte(text, '<') < 0 && strings.IndexByte(text, '{') < 0 && !strings.Contains(text, "[TOOL_CALLS]") {
		return nil
	}
	text = unfenced(text)
	var names []string
	add := func(name string) {
		for _, known := range names {
			if known == name {
				return
			}
		}
		if r.offers(name) {
			names = append(names, name)
		}
	}
	for _, form := range leakForms() {
		for _, m := range form.FindAllStringSubmatch(text, 16) {
			add(m[1])
		}
	}
	var bare struct {
		Name       string          `json:"name"`
		Tool       string          `json:"tool"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
		Input      json.RawMessage `json:"input"`
		Args       json.RawMessage `json:"args"`
	}
	if whole := strings.TrimSpace(text); strings.HasPrefix(whole, "{") && json.Unmarshal([]byte(whole), &bare) == nil &&
		len(bare.Arguments)+len(bare.Parameters)+len(bare.Input)+len(bare.Args) > 0 {
		for _, name := range []string{bare.Name, bare.Tool} {
			if name != "" {
				add(name)
			}
		}
	}
	return names
}

// offers says whether the request offers a tool. One of the main loop without any says nothing about which there are;
// others, as for a summary, write about calls.
func (r *Reply) offers(name string) bool {
	for _, t := range r.req.Tools {
		if t.Name == name {
			return true
		}
	}
	return len(r.req.Tools) == 0 && r.req.Purpose == model.MainLoop
}

// unfenced drops what stands between lines of three backticks: it is shown, not said. A fence around the whole text
// is none.
func unfenced(text string) string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "```") && strings.HasSuffix(trimmed, "```") && strings.Count(trimmed, "```") == 2 {
		_, inner, _ := strings.Cut(strings.TrimSuffix(trimmed, "```"), "\n")
		return inner
	}
	if !strings.Contains(text, "```") {
		return text
	}
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
			continue
		}
		if !inside {
			out.WriteString(line)
		}
	}
	return out.String()
}

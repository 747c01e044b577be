package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"belay/model"
)

// overflows are the wordings of "the prompt does not fit", lower case, one or more for each kind of server.
var overflows = []string{
	"prompt is too long", "exceed context limit", "request_too_large", // Anthropic
	"input is too long for requested model",                                              // Bedrock
	"exceeds the context window", "context_length_exceeded", "maximum context length is", // OpenAI, OpenRouter, vLLM
	"model's maximum context length", "your prompt contains at least",
	"input token count", "maximum prompt length is", "reduce the length of the messages", // Gemini, xAI, Groq
	"exceeds the maximum allowed input length of", "is longer than the model's context length", // Poolside, Together
	"exceed_context_size_error", "exceeds the available context size", "context size has been exceeded", // llama.cpp
	"greater than the context length", "context window exceeds limit", "exceeded model token limit", // LM Studio, MiniMax, Kimi
	"too large for model with", "prompt too long; exceeded max context length", "exceeds max_seq_len", // Mistral, Ollama, Atlas
	"model_context_window_exceeded",
}

// notOverflows are wordings of rate limits that resemble one of overflows.
var notOverflows = []string{"rate limit", "too many requests", "throttl", "too many tokens, please wait"}

// quotas are codes and wordings of limits that waiting does not lift.
var quotas = []string{"insufficient_quota", "credit_balance_exhausted", "enforced_spend_limit_reached", "billing_error",
	"credit balance is too low", "billing_hard_limit_reached"}

// malformed are codes and wordings of a server that failed to read its own model's tool call.
var malformed = []string{"tool_use_failed", "error parsing tool call"}

// statuses are what an error's type or code means where there is no status: inside of a stream, or under 200.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "invalid_api_key": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "model_not_found": 404, "request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429,
	"api_error": 500, "server_error": 500, "server_is_overloaded": 503, "timeout_error": 504, "overloaded_error": 529,
}

// ScriptErrorType marks the error of a rehearsal that does not fit its request.
const ScriptErrorType = "rehearsal_error"

// report is what an error body says, in any of the shapes that servers use.
type report struct {
	Message string
	Type    string
	Code    string
	Param   string
	Detail  string // what comes beside it and helps: a failed generation, an upstream's own error
}

// Fail makes the error of an answer whose status is not 2xx. It reads the body.
func (e *Endpoint) Fail(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil && len(body) == 0 && resp.StatusCode < 400 {
		return Broken(err)
	}
	return e.Classify(resp.StatusCode, resp.Header, body)
}

// Classify makes the error that a body reports, with its status or, inside of a stream, 200.
func (e *Endpoint) Classify(status int, header http.Header, body []byte) error {
	r, readable := parse(body)
	if !readable && (status < 300 || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))) && status != 413 && status < 500 && status != 429 {
		return e.NotAServer(status)
	}
	if r.Type == ScriptErrorType {
		return &model.Error{Class: model.Script, Message: r.Message}
	}
	if status < 300 {
		status = r.status()
	}
	m := &model.Error{Status: status, RetryAfter: retryAfter(header, r.Message, time.Now()), Class: model.Validation}
	text := strings.ToLower(strings.Join([]string{r.Message, r.Type, r.Code, r.Detail}, "\n"))
	said := r.Message
	if said == "" {
		said = http.StatusText(status)
	}
	if r.Param != "" && !strings.Contains(said, r.Param) {
		said += " (field " + r.Param + ")"
	}
	if r.Detail != "" && !strings.Contains(said, r.Detail) {
		said += ": " + r.Detail
	}
	if len(said) > 2000 {
		said = strings.ToValidUTF8(said[:2000], "") + "…"
	}
	if key := e.Secret(); key != "" { // some servers repeat the key
		said = strings.ReplaceAll(said, key, "[key]")
	}
	hint := ""
	limited := status == 429 || status == 503 || contains(text, notOverflows)
	switch {
	case contains(text, quotas) || status == http.StatusPaymentRequired:
		m.Class, m.RetryAfter, hint = model.Environment, 0, "the account's money or quota is used up: waiting does not help"
	case status == http.StatusRequestEntityTooLarge, !limited && contains(text, overflows):
		m.ContextTooLarge = true
	case contains(text, malformed):
		m.Class = model.Transient
	case status == http.StatusUnauthorized && e.clear():
		m.Class, hint = model.Environment, "the server wants a key, which is not sent over plain http: use https"
	case status == http.StatusUnauthorized && e.Secret() == "":
		m.Class, hint = model.Environment, fmt.Sprintf("the server wants a key: set %s", e.KeyEnv)
	case status == http.StatusUnauthorized:
		m.Class, hint = model.Environment, fmt.Sprintf("the key was refused: put a valid one into %s", e.KeyEnv)
	case status == http.StatusForbidden:
		m.Class, hint = model.Environment, fmt.Sprintf("the key may not do this: check what %s is allowed to use", e.KeyEnv)
	case status == http.StatusNotFound:
		m.Class, hint = model.Environment, fmt.Sprintf("check the model's name %q and the base URL %s (%s)", e.Model, e.shown(), e.URLEnv)
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		m.Class = model.Transient
	case status < 400 || status == http.StatusMethodNotAllowed:
		return e.NotAServer(status)
	}
	m.Message = e.Provider + ": " + said
	if hint != "" {
		m.Message += "; " + hint
	}
	return m
}

// NotAServer is the error for an answer that no model server gives.
func (e *Endpoint) NotAServer(status int) error {
	return &model.Error{Class: model.Environment, Status: status,
		Message: fmt.Sprintf("%s: what answers at %s is no model server; set %s to the API's base URL", e.Provider, e.shown(), e.URLEnv)}
}

// unreachable is the error for a request that got no answer.
func (e *Endpoint) unreachable(err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &model.Error{Class: model.Environment, Err: err,
			Message: fmt.Sprintf("%s: nothing answers at %s: start the server, or set %s to where it is", e.Provider, e.shown(), e.URLEnv)}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &model.Error{Class: model.Environment, Err: err,
			Message: fmt.Sprintf("%s: the host of %s is unknown: check %s and the network", e.Provider, e.shown(), e.URLEnv)}
	case strings.Contains(err.Error(), "certificate"), strings.Contains(err.Error(), "HTTP response to HTTPS"),
		strings.Contains(err.Error(), "unsupported protocol scheme"), strings.Contains(err.Error(), "invalid header"):
		return &model.Error{Class: model.Environment, Err: err,
			Message: fmt.Sprintf("%s: no sound connection to %s; check %s", e.Provider, e.shown(), e.URLEnv)}
	}
	return &model.Error{Class: model.Transient, Message: fmt.Sprintf("%s: no answer from %s", e.Provider, e.shown()), Err: err}
}

func parse(body []byte) (report, bool) {
	var r report
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if bytes.HasPrefix(body, []byte("[")) && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // Gemini's compatible layer wraps its errors
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return report{Message: plain(body)}, false
	}
	if len(outer.Error) == 0 || string(outer.Error) == "null" {
		r.Message, r.Type, r.Code = scalar(outer.Message), scalar(outer.Type), scalar(outer.Code)
		if r.Message == "" {
			r.Message = scalar(outer.Detail)
		}
		return r, r.Message != ""
	}
	if r.Message = scalar(outer.Error); r.Message != "" && outer.Error[0] != '{' {
		return r, true
	}
	var inner struct {
		Message  json.RawMessage `json:"message"`
		Type     json.RawMessage `json:"type"`
		Code     json.RawMessage `json:"code"`
		Param    json.RawMessage `json:"param"`
		Failed   json.RawMessage `json:"failed_generation"`
		Metadata struct {
			Raw json.RawMessage `json:"raw"`
		} `json:"metadata"`
		Details json.RawMessage `json:"details"`
	}
	_ = json.Unmarshal(outer.Error, &inner) // what cannot be read stays empty
	r = report{Message: scalar(inner.Message), Type: scalar(inner.Type), Code: scalar(inner.Code), Param: scalar(inner.Param), Detail: scalar(inner.Failed)}
	if r.Detail == "" {
		r.Detail = scalar(inner.Metadata.Raw)
	}
	var details struct {
		ErrorCode string `json:"error_code"`
	}
	if json.Unmarshal(inner.Details, &details) == nil && details.ErrorCode != "" {
		r.Code = details.ErrorCode
	}
	if r.Message == "" {
		r.Message = plain(outer.Error)
	}
	return r, true
}

// scalar is a string or number as text, anything else as its JSON, null and nothing as "".
func scalar(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func plain(body []byte) string {
	if bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	return strings.ToValidUTF8(string(body[:min(len(body), 500)]), "")
}

// status is what the report means without one of its own; 500 where it does not say.
func (r report) status() int {
	for _, name := range []string{r.Code, r.Type} {
		if s, ok := statuses[name]; ok {
			return s
		}
		if n, err := strconv.Atoi(name); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return http.StatusInternalServerError
}

func contains(text string, any []string) bool {
	for _, s := range any {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

var inText = regexp.MustCompile(`(?i)(?:try again|retry)(?: after| in) ([0-9]+(?:\.[0-9]+)?) ?(ms|s|seconds?)\b`)

// maxWait bounds what a server can ask for: beyond it the header is a mistake.
const maxWait = 24 * time.Hour

// retryAfter is how long a server asks to wait: in milliseconds, in seconds (also with a fraction), as a date, or in words.
func retryAfter(h http.Header, text string, now time.Time) time.Duration {
	bounded := func(seconds float64) time.Duration {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
	}
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if ms, err := strconv.ParseFloat(h.Get(name), 64); err == nil {
			return bounded(ms / 1000)
		}
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return bounded(s)
		}
		if at, err := http.ParseTime(v); err == nil {
			return bounded(at.Sub(now).Seconds())
		}
	}
	if m := inText.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseFloat(m[1], 64)
		if m[2] == "ms" {
			n /= 1000
		}
		return bounded(n)
	}
	return 0
}

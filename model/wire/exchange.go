package wire

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/model"
)

// Exchange is what a dialect brings to one request and its reply.
type Exchange struct {
	Path    string
	Header  http.Header
	Encode  func() ([]byte, error) // leaves out what Refused has
	Dialect func() Dialect
	Refused *Refused
}

// Send sends the request and yields the reply. A server that refuses a field which the request can do without is
// asked once more without it, and from then on.
func (e *Endpoint) Send(ctx context.Context, x Exchange) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		for {
			body, err := x.Encode()
			if err != nil {
				yield(model.Event{}, err)
				return
			}
			resp, err := e.Do(ctx, http.MethodPost, x.Path, x.Header, body)
			if err != nil {
				yield(model.Event{}, err)
				return
			}
			if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
				err := e.Fail(resp)
				_ = resp.Body.Close()
				if x.Refused.Learn(err) {
					continue
				}
				yield(model.Event{}, err)
				return
			}
			e.Decode(resp, x.Dialect())(yield)
			_ = resp.Body.Close()
			return
		}
	}
}

// Refused remembers which optional fields a server has refused. Nil is a server that refused nothing and is never
// asked without one.
type Refused struct {
	optional []string
	mu       sync.Mutex
	fields   []string
}

// Optional names the fields that a request can do without, most likely refused first.
func Optional(fields ...string) *Refused { return &Refused{optional: fields} }

// Has says whether the server refused the field.
func (r *Refused) Has(field string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.fields, field)
}

// Suffix is "" or what an encoding without the refused fields is called: "-stream_options".
func (r *Refused) Suffix() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fields) == 0 {
		return ""
	}
	return "-" + strings.Join(r.fields, "-")
}

// refusals are wordings that say a field is not known or not taken, lower case.
var refusals = []string{"extra inputs are not permitted", "extra_forbidden", "extra fields", "unknown", "unrecognized", "unrecognised", "unsupported",
	"not supported", "not support", "unexpected", "not permitted", "not allowed", "additional properties", "cannot find field", "invalid field", "does not exist"}

// reasoningItems are the wordings by which a server refuses earlier reasoning that is sent back.
var reasoningItems = []string{"invalid_encrypted_content", "encrypted content could not be verified", "items are not persisted",
	"without its required following item", "invalid thought signature", "corrupted thought signature", "thought signature is not valid", "invalid `signature` in `thinking`"}

// EarlierReasoning is the pseudo-field under which reasoning of earlier turns can be named as optional.
const EarlierReasoning = "earlier-reasoning"

// Learn takes the error of a refused request and says whether it taught that a field must be left out.
func (r *Refused) Learn(err error) bool {
	var m *model.Error
	if r == nil || !errors.As(err, &m) || m.Class != model.Validation || m.ContextTooLarge {
		return false
	}
	text := strings.ToLower(m.Message + "\n" + m.Code)
	field := ""
	for _, f := range r.optional {
		switch {
		case f == EarlierReasoning:
			if contains(text, reasoningItems) {
				field = f
			}
		case m.Field == f || strings.HasPrefix(m.Field, f+".") || strings.HasSuffix(m.Field, "."+f):
			field = f
		case contains(text, refusals) && mentions(text, f):
			field = f
		}
		if field != "" {
			break
		}
	}
	if field == "" || r.Has(field) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fields = append(r.fields, field)
	slices.Sort(r.fields)
	return true
}

// mentions says whether a text holds a field's name as a word of its own.
func mentions(text, field string) bool {
	return regexp.MustCompile(`(^|[^a-z0-9_])` + regexp.QuoteMeta(strings.ToLower(field)) + `($|[^a-z0-9_])`).MatchString(text)
}

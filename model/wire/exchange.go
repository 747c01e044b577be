package wire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/message"
	"belay/model"
)

// Exchange is what a dialect brings to one request and its reply.
type Exchange struct {
	Request model.Request
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
				if x.Refused.Learn(err, x.Request) {
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
	stale    map[[32]byte]bool // hashes of reasoning that the server could not read
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

// State changes whenever something more is left out.
func (r *Refused) State() string {
	if r == nil {
		return ""
	}
	suffix := r.Suffix()
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%s %d", suffix, len(r.stale))
}

// refusals are wordings that say a field is not known or not taken, lower case.
var refusals = []string{"extra inputs are not permitted", "extra_forbidden", "extra fields", "unknown", "unrecognized", "unrecognised", "unsupported",
	"not supported", "not support", "unexpected", "not permitted", "not allowed", "additional properties", "cannot find field", "invalid field", "does not exist"}

// reasoningItems are the wordings by which a server refuses earlier reasoning that is sent back.
var reasoningItems = []string{"invalid_encrypted_content", "encrypted content could not be verified", "items are not persisted",
	"without its required following item", "invalid thought signature", "corrupted thought signature", "thought signature is not valid", "invalid `signature` in `thinking`",
	"blocks in the latest assistant message cannot be modified"}

// EarlierReasoning is the pseudo-field under which reasoning of earlier turns can be named as optional.
const EarlierReasoning = "earlier-reasoning"

// Stale says whether the server could not read these bytes when they were sent back. Reasoning that came later is
// bound to a conversation without them.
func (r *Refused) Stale(o *message.Opaque) bool {
	if r == nil || o == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale[sha256.Sum256(o.Raw)]
}

// forget makes all reasoning in a request stale and says whether there was any that was not.
func (r *Refused) forget(req model.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.stale)
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if b.Opaque == nil {
				continue
			}
			if r.stale == nil {
				r.stale = map[[32]byte]bool{}
			}
			r.stale[sha256.Sum256(b.Opaque.Raw)] = true
		}
	}
	if len(r.stale) > before && !slices.Contains(r.fields, EarlierReasoning) {
		r.fields = append(r.fields, EarlierReasoning)
		slices.Sort(r.fields)
	}
	return len(r.stale) > before
}

// Learn takes the error of a refused request and says whether it taught that something must be left out.
func (r *Refused) Learn(err error, req model.Request) bool {
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
				return r.forget(req)
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

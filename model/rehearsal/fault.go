package rehearsal

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"belay/internal/yaml"
	"belay/model"
)

// Failure is an error that a provider would send instead of a reply.
type Failure struct {
	Status          int // HTTP status
	RetryAfter      time.Duration
	Message         string
	ContextTooLarge bool
}

// Error returns it as a client would report it.
func (f Failure) Error() *model.Error {
	return &model.Error{Class: classOf(f.Status), Kind: kindOf(f), Status: f.Status, RetryAfter: f.RetryAfter, ContextTooLarge: f.ContextTooLarge || f.Status == http.StatusRequestEntityTooLarge, Message: f.Message}
}

func classOf(status int) model.Class {
	switch {
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests:
		return model.Transient
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden, status == http.StatusNotFound:
		return model.Environment
	}
	return model.Validation
}

func kindOf(f Failure) model.Kind {
	switch s := f.Status; {
	case f.ContextTooLarge, s == http.StatusRequestEntityTooLarge:
		return model.ContextOverflow
	case s == 529, s == http.StatusServiceUnavailable:
		return model.Overloaded
	case s >= 500:
		return model.Server
	case s == http.StatusTooManyRequests:
		return model.RateLimit
	case s == http.StatusPaymentRequired:
		return model.Quota
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return model.Auth
	case s == http.StatusRequestTimeout, s == http.StatusConflict:
		return model.Server
	}
	return model.InvalidRequest
}

// Cut ends a stream before its terminal event.
type Cut struct {
	After int // events that still arrive; negative is half of them
	Bytes int // of the body that still arrive over HTTP, instead of After; 0 is not said
	How   Break
}

// Break is how a stream ends that is cut.
type Break string

const (
	BreakEnd     Break = ""        // it just ends
	BreakReset   Break = "reset"   // the connection is torn down
	BreakError   Break = "error"   // the provider reports an error in the stream
	BreakStall   Break = "stall"   // nothing more comes, and the connection stays open
	BreakGarbled Break = "garbled" // half of an event comes, and then what is no event
)

var breaks = []Break{BreakReset, BreakError, BreakStall, BreakGarbled}

// Error is what a client in process makes of the break; nil where the stream just ends.
func (c Cut) Error() error {
	switch c.How {
	case BreakError:
		return c.Reported()
	case BreakStall:
		return &model.Error{Class: model.Transient, Kind: model.StreamTruncated, Message: "the script's stream went silent"}
	case BreakReset, BreakGarbled:
		return &model.Error{Class: model.Transient, Kind: model.StreamTruncated, Message: "the stream ended before the reply did"}
	}
	return nil
}

// Reported is the error that a provider reports in its stream.
func (c Cut) Reported() *model.Error {
	return &model.Error{Class: model.Transient, Kind: model.Overloaded, Status: 529, Message: "the script breaks the stream off: overloaded"}
}

// Of returns how many of total events arrive: never the last one.
func (c Cut) Of(total int) int {
	if c.After < 0 {
		return total / 2
	}
	return min(c.After, total-1)
}

func readFailure(n yaml.Node) (*Failure, error) {
	fields, err := n.Fields("error", failureKeys...)
	if err != nil {
		return nil, err
	}
	var f Failure
	for _, field := range fields {
		switch field.Name {
		case "status":
			var status int64
			status, err = field.Value.Int("status", 400, 599)
			f.Status = int(status)
		case "retry_after":
			var seconds float64
			seconds, err = field.Value.Amount("retry_after", 3600)
			f.RetryAfter = time.Duration(seconds * float64(time.Second))
		case "message":
			f.Message, err = field.Value.Text("message")
		case "context_too_large":
			f.ContextTooLarge, err = field.Value.Bool("context_too_large")
		}
		if err != nil {
			return nil, err
		}
	}
	if f.Status == 0 {
		return nil, n.Errorf("error needs a status from 400 to 599, such as 429, 529 or 401")
	}
	if f.Message == "" {
		f.Message = "the script answers with an error"
		if text := http.StatusText(f.Status); text != "" {
			f.Message = fmt.Sprintf("the script answers %q", text)
		}
	}
	return &f, nil
}

func readCut(n yaml.Node) (*Cut, error) {
	if half, err := n.Bool("cut_stream"); err == nil {
		if !half {
			return nil, nil
		}
		return &Cut{After: -1}, nil
	}
	if n.Kind() == yaml.Number {
		after, err := n.Int("cut_stream", 0, 1_000_000)
		return &Cut{After: int(after)}, err
	}
	if n.Kind() != yaml.Mapping {
		return nil, n.Wrong("cut_stream", "true, how many events arrive, or after, bytes and how")
	}
	fields, err := n.Fields("cut_stream", cutKeys...)
	if err != nil {
		return nil, err
	}
	c := Cut{After: -1}
	for _, f := range fields {
		var number int64
		switch f.Name {
		case "after":
			number, err = f.Value.Int("after", 0, 1_000_000)
			c.After = int(number)
		case "bytes":
			number, err = f.Value.Int("bytes", 1, 1<<30)
			c.Bytes = int(number)
		case "how":
			var how string
			how, err = f.Value.Text("how")
			if c.How = Break(how); err == nil && !slices.Contains(breaks, c.How) {
				err = f.Value.Errorf("a stream does not break by %q: how is one of %v", how, breaks)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// Spent remembers which failures and cuts were sent: each is used up once it was. The zero value is ready, and
// safe for concurrent use.
type Spent struct {
	mu   sync.Mutex
	sent map[spentKey]bool
}

type spentKey struct {
	label string
	cut   bool
}

// Next returns what comes instead of the turn's whole reply this time: a failure first, then a cut, then neither.
// A failure of a turn that has no reply is never used up.
func (s *Spent) Next(t Turn) (*Failure, *Cut) {
	if t.Failure == nil && t.Cut == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[spentKey]bool{}
	}
	if key := (spentKey{t.Label, false}); t.Failure != nil && (!t.hasReply || !s.sent[key]) {
		s.sent[key] = true
		return t.Failure, nil
	}
	if key := (spentKey{t.Label, true}); t.Cut != nil && !s.sent[key] {
		s.sent[key] = true
		return nil, t.Cut
	}
	return nil, nil
}

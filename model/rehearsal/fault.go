package rehearsal

import (
	"fmt"
	"net/http"
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
	return &model.Error{Class: classOf(f.Status), Status: f.Status, RetryAfter: f.RetryAfter, ContextTooLarge: f.ContextTooLarge || f.Status == http.StatusRequestEntityTooLarge, Message: f.Message}
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

// Cut ends a stream before its terminal event.
type Cut struct {
	After int // events that still arrive; negative is half of them
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
	if n.Kind() != yaml.Number {
		return nil, n.Wrong("cut_stream", "true, or how many events arrive")
	}
	after, err := n.Int("cut_stream", 0, 1_000_000)
	return &Cut{After: int(after)}, err
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

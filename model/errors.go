package model

import (
	"errors"
	"fmt"
	"time"

	"belay/message"
)

// Class says who can do something about an error.
type Class string

const (
	Transient   Class = "transient"   // the same request may work later: retried, invisible to the model
	Validation  Class = "validation"  // the request is wrong: told at once
	Environment Class = "environment" // key, network, quota, disk: stop, tell a person
	Script      Class = "script"      // a rehearsal's own expectation failed: the script or the harness is wrong
)

// Kind is what went wrong, for who wants to tell more than what can be done about it.
type Kind string

const (
	Overloaded      Kind = "overloaded"
	RateLimit       Kind = "rate_limit"
	Quota           Kind = "quota" // of money or of a day: waiting does not lift it
	Server          Kind = "server"
	Network         Kind = "network"
	StreamTruncated Kind = "stream_truncated"
	MalformedCall   Kind = "malformed_tool_call" // a call that nobody can read; asked again MalformedTries times
	ContextOverflow Kind = "context_overflow"
	Refused         Kind = "refusal"
	Auth            Kind = "auth"
	InvalidRequest  Kind = "invalid_request"
)

// MalformedTries is how often a model is asked again that writes calls which nobody can read.
const MalformedTries = 2

// Error is what a Client reports.
type Error struct {
	Class           Class
	Kind            Kind           // "" where it is none of the kinds above
	Code            string         // the provider's own, "" where it gave none
	Field           string         // of the request, where the provider names one
	Calls           []string       // names of the calls that a malformed reply wanted
	RawStop         string         // the stop reason that had come by then, in the provider's words
	Usage           *message.Usage // what the provider had counted by then: it is paid although there is no reply
	Status          int            // HTTP status, 0 where there was none
	RetryAfter      time.Duration  // what the provider asked for, 0 where it did not
	ContextTooLarge bool
	Message         string // for a person; says what to do where something can be done
	Err             error
}

func (e *Error) Error() string {
	s := e.Message
	if e.Status != 0 {
		s = fmt.Sprintf("%s (HTTP %d)", s, e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable says whether the same request may work later.
func (e *Error) Retryable() bool { return e.Class == Transient }

// AsError finds the *Error in a chain; anything else counts as the environment's.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Class: Environment, Message: "model call failed", Err: err}
}

// Package model is the meeting point with language models: a neutral request, a stream of normalised events, a reply, classes of errors, and prices.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"belay/message"
)

// Purpose says what a request is for. The main loop's own is the empty purpose.
type Purpose string

const (
	MainLoop   Purpose = ""
	Compaction Purpose = "compaction"
	Judge      Purpose = "judge"
	Explain    Purpose = "explain"
)

// Tool is what a model is told about a tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict,omitempty"` // arguments are made to fit the schema, where the provider can and the schema allows it
}

// Choice says whether the model may call tools: as it likes, not at all, at least one, or the one that is named.
type Choice string

const (
	ChooseAny  Choice = "" // as it likes
	ChooseNone Choice = "none"
	ChooseSome Choice = "some" // at least one call
)

// Named returns the tool that must be called, "" where none is named.
func (c Choice) Named() string {
	switch c {
	case ChooseAny, ChooseNone, ChooseSome:
		return ""
	}
	return string(c)
}

// Request is one call to a model, in no vendor's terms. It is a pure projection of a journal.
type Request struct {
	System    string            `json:"system"`
	Tools     []Tool            `json:"tools,omitempty"`
	Messages  []message.Message `json:"messages"`
	MaxOutput int64             `json:"max_output,omitempty"` // tokens; 0 is the model's own limit

	// These ask for a certain kind of reply. A provider that has no word for one, or refuses it, is asked without it:
	// who relies on the kind looks at the reply.
	Choice  Choice          `json:"choice,omitempty"`
	OneCall bool            `json:"one_call,omitempty"` // at most one call in the reply
	Answer  json.RawMessage `json:"answer,omitempty"`   // JSON Schema of the text that is asked for; nil is any text

	// These steer the call and are no part of what the model reads, nor of any hash.
	Purpose    Purpose `json:"-"`
	Replies    int     `json:"-"` // how many replies of the main loop the journal holds before this request
	PrefixHash string  `json:"-"` // hash of System, Tools and MaxOutput: what a provider may bind opaque blocks to
}

// EventKind names one step of a reply as it arrives.
type EventKind string

const (
	TextDelta     EventKind = "text_delta"
	ThinkingDelta EventKind = "thinking_delta"
	CallStarted   EventKind = "call_started"
	ArgsDelta     EventKind = "args_delta"
	BlockDone     EventKind = "block_done" // Block is final
	UsageReport   EventKind = "usage"      // replaces earlier reports of the same reply
	TurnDone      EventKind = "turn_done"  // the terminal event: without it, nothing may be executed
)

// Event is one step of a reply. Deltas are for showing only; BlockDone carries what counts.
type Event struct {
	Kind  EventKind
	Index int    // of the block, from 0
	Delta string // for the delta kinds
	Name  string // for CallStarted
	ID    string // for CallStarted, where the provider gave one by then
	Block *message.Block
	Usage *message.Usage
	Stop  message.StopReason // for TurnDone

	RawStop   string // for TurnDone: the reason in the provider's words
	Estimated bool   // for UsageReport: the provider counted nothing
}

// Client is one model at one provider. Stream yields events until TurnDone or an error; the error is an
// *Error, or the context's own. A stream that ends without TurnDone and without an error is a broken one.
type Client interface {
	Info() Info
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Encoder is a Client that can show the body it would send. Replay recomputes wire hashes with it; a
// client without a wire (an in-process model) is none.
type Encoder interface {
	Encode(req Request) (body []byte, err error)
	Codec() string // name and version of the encoding, "anthropic/1"
}

// Info describes a model.
type Info struct {
	Provider      string         `json:"provider"` // "rehearsal", "anthropic"
	Model         string         `json:"model"`
	ContextWindow int64          `json:"context_window"`   // tokens; 0 is unknown
	Price         *message.Price `json:"price,omitempty"`  // nil is unknown
	Images        bool           `json:"images,omitempty"` // whether it takes pictures, as far as known
	Scripted      bool           `json:"scripted,omitempty"`
}

// ID is "provider:model".
func (i Info) ID() string { return i.Provider + ":" + i.Model }

// With is the description with what a caller knows better: a window above 0, a price that is not nil.
func (i Info) With(window int64, price *message.Price) Info {
	if window > 0 {
		i.ContextWindow = window
	}
	if price != nil {
		i.Price = price
	}
	return i
}

// Reply is a whole answer.
type Reply struct {
	Blocks []message.Block
	Stop   message.StopReason
	Usage  message.Usage
}

// Collect drains a stream into a Reply and hands each event to observe, which may be nil. A stream that
// ends without its terminal event is a retryable error, whatever arrived before.
func Collect(stream iter.Seq2[Event, error], observe func(Event)) (Reply, error) {
	var r Reply
	done := false
	for ev, err := range stream {
		if err != nil {
			return Reply{}, err
		}
		if observe != nil {
			observe(ev)
		}
		switch ev.Kind {
		case BlockDone:
			r.Blocks = append(r.Blocks, *ev.Block)
		case UsageReport:
			r.Usage = *ev.Usage
		case TurnDone:
			r.Stop, done = ev.Stop, true
		}
	}
	switch {
	case !done:
		return Reply{}, &Error{Class: Transient, Kind: StreamTruncated, Message: "the stream ended before the reply did"}
	case r.Stop == message.StopError:
		return Reply{}, &Error{Class: Transient, Message: "the reply broke off"}
	case !r.Stop.Known():
		return Reply{}, &Error{Class: Environment, Message: fmt.Sprintf("the reply ended with the unknown stop reason %q, so nothing in it can be executed", r.Stop)}
	}
	return r, nil
}

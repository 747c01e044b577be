// Package serve answers over HTTP from a rehearsal, in the dialects of real providers and as strict as they are.
package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"belay/model"
	"belay/model/rehearsal"
	"belay/model/wire"
)

// maxRequest bounds a request's body, in bytes, as Anthropic does.
const maxRequest = 32 << 20

// Option changes what the server does.
type Option func(*handler)

// Signed makes the server sign thinking as Anthropic, OpenAI (Responses) and Gemini do, and refuse what comes back
// changed, or does not come back where it must. Without it nothing is signed, so that journals are the same over
// every dialect.
func Signed() Option { return func(h *handler) { h.signed = true } }

// New returns a server of the script: Anthropic's /v1/messages, OpenAI's /v1/chat/completions and /v1/responses,
// Gemini's generateContent and streamGenerateContent, streaming and not, and /v1/models. The turn that it plays follows the number of assistant messages in the request, or the
// header Belay-Replies; the header Belay-Purpose selects an answer under "when".
func New(script *rehearsal.Script, options ...Option) http.Handler {
	h := &handler{script: script, player: rehearsal.New(script)}
	for _, o := range options {
		o(h)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", h.answer(func(*http.Request) dialect { return &anthropicDialect{signed: h.signed} }))
	mux.HandleFunc("POST /v1/messages/count_tokens", h.countTokens)
	mux.HandleFunc("POST /v1/chat/completions", h.answer(func(*http.Request) dialect { return &openaiDialect{} }))
	mux.HandleFunc("POST /v1/responses", h.answer(func(*http.Request) dialect { return &responsesDialect{signed: h.signed} }))
	for _, version := range []string{"v1beta", "v1"} {
		mux.HandleFunc("POST /"+version+"/models/{call}", h.answer(func(r *http.Request) dialect { return newGeminiDialect(r, h.signed) }))
	}
	mux.HandleFunc("GET /v1/models", h.models)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		send(w, http.StatusNotFound, map[string]any{"error": map[string]any{"type": "not_found_error", "message": fmt.Sprintf(
			"a rehearsal answers POST /v1/messages, POST /v1/chat/completions, POST /v1/responses, POST /v1beta/models/NAME:streamGenerateContent and GET /v1/models, not %s %s", r.Method, r.URL.Path)}})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Belay-Rehearsal", strconv.QuoteToASCII(script.Name)) // it is a script, and says so
		mux.ServeHTTP(w, r)
	})
}

type handler struct {
	script *rehearsal.Script
	player *rehearsal.Client
	signed bool
}

// incoming is a request in neutral terms, and how it wants to be answered.
type incoming struct {
	model.Request
	model  string
	stream bool
	usage  bool // with a usage report at the end of the stream
}

// dialect is one provider's way to say it all.
type dialect interface {
	// read checks a request as strictly as the provider does; the error is what is wrong with it.
	read(header http.Header, body []byte) (incoming, error)
	// whole is the reply as one JSON value.
	whole(in incoming, reply model.Reply, id string) any
	// events is the reply as a stream; the last one ends it.
	events(in incoming, reply model.Reply, id string) []frame
	// fault is an error's body.
	fault(status int, e *model.Error) any
	// broken is an error that is reported in a stream.
	broken(e *model.Error) any
}

// frame is one server-sent event.
type frame struct {
	name string // "" leaves the event line out
	data any    // marshalled, but for raw text
}

func (h *handler) answer(speak func(*http.Request) dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := speak(r)
		in, err := h.read(w, r, d)
		if err != nil {
			h.fail(w, d, err)
			return
		}
		reply, cut, err := h.player.Play(r.Context(), in.Request)
		if err != nil {
			h.fail(w, d, err)
			return
		}
		id := fmt.Sprintf("rehearsal_%d", in.Replies+1)
		if !in.stream && cut != nil && cut.How == rehearsal.BreakError {
			h.fail(w, d, cut.Reported())
			return
		}
		if !in.stream {
			body := encode(d.whole(in, reply, id))
			w.Header().Set("Content-Type", "application/json")
			if cut != nil {
				w.Header().Set("Content-Length", strconv.Itoa(len(body)))
				body = body[:len(body)/2]
			}
			_, _ = w.Write(body) // a client that has gone needs no answer
			return
		}
		frames := d.events(in, reply, id)
		if cut != nil && cut.Bytes == 0 {
			frames = frames[:cut.Of(len(frames))]
		}
		if cut != nil && cut.How == rehearsal.BreakError {
			frames = append(frames, frame{"error", d.broken(cut.Reported())})
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		body := render(frames)
		if cut != nil && cut.Bytes > 0 {
			body = body[:min(cut.Bytes, len(body)-1)]
		}
		if cut != nil && cut.How == rehearsal.BreakGarbled {
			body = append(body, "data: {\"half\": \n\nupstream error: connection reset\n"...)
		}
		h.send(w, r, in, body)
		if cut != nil && cut.How == rehearsal.BreakReset {
			panic(http.ErrAbortHandler) // the one way to tear a connection down
		}
		if cut != nil && cut.How == rehearsal.BreakStall {
			<-r.Context().Done()
		}
	}
}

// send sends a stream in pieces, dripping where the turn wants it.
func (h *handler) send(w http.ResponseWriter, r *http.Request, in incoming, body []byte) {
	pause := func() {}
	if t, err := h.script.For(in.Request); err == nil && t.Drip > 0 {
		pause = func() {
			timer := time.NewTimer(t.Drip)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context().Done():
			}
		}
	}
	write(w, body, pause)
}

// read takes a request apart. The error is a *model.Error.
func (h *handler) read(w http.ResponseWriter, r *http.Request, d dialect) (incoming, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return incoming{}, &model.Error{Class: model.Validation, Status: http.StatusRequestEntityTooLarge, ContextTooLarge: true, Message: "the request is larger than 32 MB"}
		}
		return incoming{}, invalid("the request cannot be read: %v", err)
	}
	in, err := d.read(r.Header, body)
	if err != nil {
		return incoming{}, err
	}
	for _, m := range in.Messages {
		if m.Role == "assistant" {
			in.Replies++
		}
	}
	if v := r.Header.Get(wire.RepliesHeader); v != "" {
		if in.Replies, err = strconv.Atoi(v); err != nil || in.Replies < 0 {
			return incoming{}, invalid("%s must be a number of replies, not %q", wire.RepliesHeader, v)
		}
	}
	in.Purpose = model.Purpose(r.Header.Get(wire.PurposeHeader))
	return in, nil
}

func invalid(format string, args ...any) error {
	return &model.Error{Class: model.Validation, Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// fail answers with an error: the script's, or what is wrong with the request.
func (h *handler) fail(w http.ResponseWriter, d dialect, err error) {
	e := model.AsError(err)
	status := e.Status
	if status == 0 {
		status = http.StatusBadRequest
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
		w.Header().Set("Retry-After-Ms", strconv.FormatFloat(float64(e.RetryAfter)/1e6, 'f', -1, 64))
	}
	send(w, status, d.fault(status, e))
}

func (h *handler) models(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, map[string]any{"object": "list", "has_more": false, "data": []any{map[string]any{
		"id": h.script.Name, "object": "model", "type": "model", "display_name": h.script.Name + " (rehearsal)", "created": 0, "owned_by": "belay rehearsal",
	}}})
}

func (h *handler) countTokens(w http.ResponseWriter, r *http.Request) {
	d := &anthropicDialect{signed: h.signed, counting: true}
	in, err := h.read(w, r, d)
	if err != nil {
		h.fail(w, d, err)
		return
	}
	send(w, http.StatusOK, map[string]any{"input_tokens": rehearsal.RequestTokens(in.Request)})
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(v)) // a client that has gone needs no answer
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)              // arguments that are JSON themselves go out as the script has them
	if err := enc.Encode(v); err != nil { // only values of this package come here
		return []byte(`{"error":{"type":"api_error","message":"the rehearsal server cannot encode its answer"}}`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

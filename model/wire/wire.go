// Package wire carries a request to a provider over HTTP and its answer back: stall timers, and one classifier of everything that can go wrong.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"belay/model"
	"belay/model/stream"
)

// Endpoint is one place where a provider answers.
type Endpoint struct {
	Provider string // "anthropic", for messages
	Model    string
	BaseURL  string        // without a slash at its end
	Key      func() string // nil, or returning "", where no key is needed
	KeyEnv   string        // environment variable that holds the key
	URLEnv   string        // environment variable that holds the base URL
	HTTP     *http.Client  // nil is a client of belay's own
	Idle     time.Duration // longest silence on the connection; 0 is two minutes, ten for a server on this machine
	Content  time.Duration // longest time in which only keep-alives arrive; 0 is ten minutes
}

// MaxBody bounds an answer that is no stream, in bytes.
const MaxBody = 64 << 20

// How long is waited for what may follow a reply: a report of usage after its last content, the end of the
// connection after all of it. Both come at once, where they come.
const (
	reportGrace = 5 * time.Second
	closeGrace  = time.Second
)

var shared = &http.Client{Transport: transport(), CheckRedirect: stay}

func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 8
	t.DisableCompression = true // a compressed stream arrives late
	return t
}

// stay keeps a key from following a redirect to another host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Local says whether the server is on this machine.
func (e *Endpoint) Local() bool {
	u, err := url.Parse(e.BaseURL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}

// shown is the base URL for messages, without a password that it may hold.
func (e *Endpoint) shown() string {
	u, err := url.Parse(e.BaseURL)
	if err != nil {
		if i := strings.LastIndex(e.BaseURL, "@"); i >= 0 {
			return "…" + e.BaseURL[i:]
		}
		return e.BaseURL
	}
	return u.Redacted()
}

// Secret returns the key, "" where there is none or where it would cross a network in clear text.
func (e *Endpoint) Secret() string {
	if e.Key == nil || e.clear() {
		return ""
	}
	return e.Key()
}

// clear says whether everybody on the way to the server could read a key.
func (e *Endpoint) clear() bool {
	return strings.HasPrefix(strings.ToLower(e.BaseURL), "http:") && !e.Local()
}

// Do sends the request and returns the answer, whatever its status. The answer's Body is a *Body; closing it, or
// the end of ctx, closes the connection. Errors are *model.Error or ctx's own.
func (e *Endpoint) Do(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	inner, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(inner, method, e.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		cancel(nil)
		return nil, &model.Error{Class: model.Environment, Message: fmt.Sprintf("%s: the base URL %q cannot be used; set %s", e.Provider, e.shown(), e.URLEnv)}
	}
	for k, v := range header {
		req.Header[k] = v
	}
	client := shared
	if e.HTTP != nil {
		own := *e.HTTP
		own.CheckRedirect = stay
		client = &own
	}
	b := &Body{ctx: ctx, cancel: cancel, idle: e.idle(), content: e.Content}
	if b.content == 0 {
		b.content = 10 * time.Minute
	}
	b.timer = time.AfterFunc(b.idle, func() { cancel(errStalled) })
	resp, err := client.Do(req) //nolint:bodyclose // Body closes it
	if err != nil {
		b.timer.Stop()
		cause := context.Cause(inner)
		cancel(nil)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(cause, errStalled):
			return nil, b.stalled()
		}
		return nil, e.unreachable(err)
	}
	b.inner, b.body = inner, resp.Body
	b.timer.Reset(b.idle)
	b.Alive()
	resp.Body = b
	return resp, nil
}

func (e *Endpoint) idle() time.Duration {
	switch {
	case e.Idle > 0:
		return e.Idle
	case e.Local():
		return 10 * time.Minute // a local model reads a long prompt in silence
	}
	return 2 * time.Minute
}

var errStalled = errors.New("stalled")

// Body is an answer that is given up when it stalls.
type Body struct {
	ctx     context.Context // the caller's
	inner   context.Context
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	idle    time.Duration
	content time.Duration
	ending  bool

	mu     sync.Mutex
	timer  *time.Timer // of the connection
	silent *time.Timer // of the content
}

// Read reports the caller's context error, a *model.Error for a stall or a broken connection, or io.EOF.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.mu.Lock()
		b.timer.Reset(b.idle)
		b.mu.Unlock()
	}
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	switch {
	case b.ctx.Err() != nil:
		return n, b.ctx.Err()
	case errors.Is(context.Cause(b.inner), errStalled):
		return n, b.stalled()
	}
	return n, stream.Truncated(err)
}

func (b *Body) stalled() error {
	return &model.Error{Class: model.Transient, Message: fmt.Sprintf("the server went silent: nothing for %s (or only keep-alives for %s)", b.idle, b.content)}
}

// Alive tells that content has arrived, not only a keep-alive.
func (b *Body) Alive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silent == nil {
		b.silent = time.AfterFunc(b.content, func() { b.cancel(errStalled) })
		return
	}
	b.silent.Reset(b.content)
}

// Ending tells that the reply is complete: what may still follow is waited for only so long.
func (b *Body) Ending(grace time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ending, b.idle = true, min(b.idle, grace)
	b.timer.Reset(b.idle)
}

// Close reads a short rest, so that the connection can be used again, and lets go of it.
func (b *Body) Close() error {
	if b.ctx.Err() == nil && context.Cause(b.inner) == nil && b.ending {
		_, _ = io.CopyN(io.Discard, b.body, 64<<10)
	}
	b.mu.Lock()
	b.timer.Stop()
	if b.silent != nil {
		b.silent.Stop()
	}
	b.mu.Unlock()
	err := b.body.Close()
	b.cancel(nil)
	return err
}

// Shape is what a body turns out to be, whatever its content type claims.
type Shape int

const (
	Events Shape = iota // server-sent events
	JSON
	Page // HTML: no language model speaks it
)

// Sniff looks at the first bytes of a body. Servers answer a request for a stream with a JSON error under status
// 200, and what is no model server at all answers with a page.
func Sniff(r io.Reader) (Shape, *bufio.Reader, error) {
	br := bufio.NewReaderSize(r, 32<<10)
	for {
		c, err := br.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return Events, br, nil
			}
			return Events, br, err
		}
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			continue
		}
		_ = br.UnreadByte()
		switch c {
		case '{', '[':
			return JSON, br, nil
		case '<':
			return Page, br, nil
		}
		return Events, br, nil
	}
}

// ReadAll reads a bounded body.
func ReadAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBody+1))
	if err == nil && len(data) > MaxBody {
		err = &model.Error{Class: model.Transient, Message: fmt.Sprintf("the answer is larger than %d MiB", MaxBody>>20)}
	}
	return data, err
}

// Broken turns what a stream reader reports into what a client reports.
func Broken(err error) error {
	var known *model.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.EOF):
		return stream.Truncated(nil)
	}
	return stream.Truncated(err)
}

// The headers that tell a server on this machine, which may be a rehearsal, what its dialect has no words for.
const (
	RepliesHeader = "Belay-Replies" // how many replies of the main loop came before
	PurposeHeader = "Belay-Purpose" // what the request is for, where it is not the main loop's
)

// Place adds these headers, for local servers only: they are no provider's business.
func (e *Endpoint) Place(h http.Header, req model.Request) {
	if !e.Local() {
		return
	}
	h.Set(RepliesHeader, strconv.Itoa(req.Replies))
	if req.Purpose != model.MainLoop {
		h.Set(PurposeHeader, string(req.Purpose))
	}
}

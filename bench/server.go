package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

// server serves a rehearsal and notes when each request had arrived and when its answer was out.
type server struct {
	http *http.Server
	url  string

	mu       sync.Mutex
	requests []exchange
}

// exchange is one request: its body's size in bytes, and the moments between which the server had it.
type exchange struct {
	size          int
	arrived, done time.Time
}

func newServer(turns int, line string) (*server, error) {
	script, err := rehearsal.Parse("bench.yaml", fmt.Appendf(nil, `version: 1
name: bench
model: {context_window: 100000000}
turns:
  - repeat: {times: %d, calls: [{tool: Bash, args: {command: %q}}]}
otherwise: {say: "Nothing left to do."}
`, turns, line))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://" + listener.Addr().String()}
	s.http = &http.Server{Handler: s.timed(serve.New(script))}
	go s.http.Serve(listener)
	return s, nil
}

func (s *server) timed(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		x := exchange{size: len(body), arrived: time.Now()}
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
		http.NewResponseController(w).Flush()
		x.done = time.Now()
		s.mu.Lock()
		s.requests = append(s.requests, x)
		s.mu.Unlock()
	})
}

// take gives the requests since the last call.
func (s *server) take() []exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

func (s *server) close() { s.http.Close() }

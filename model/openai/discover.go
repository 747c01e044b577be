package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"belay/model"
	"belay/model/wire"
)

// LocalAddrs are where model servers on this machine usually listen: Ollama, LM Studio, llama.cpp, vLLM.
var LocalAddrs = []string{"127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080", "127.0.0.1:8000"}

// ErrNoServer says that no local server answered with a model.
var ErrNoServer = errors.New("no local model server answers")

// probeTime bounds the search: a server on this machine answers at once or is not there.
const probeTime = 700 * time.Millisecond

// Discover asks all addresses (LocalAddrs where none is given) at the same time for their models, and returns the
// first model of the first address that has one, or ErrNoServer.
func Discover(ctx context.Context, addrs ...string) (model.Spec, error) {
	if len(addrs) == 0 {
		addrs = LocalAddrs
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found := make([]chan string, len(addrs))
	for i, addr := range addrs {
		found[i] = make(chan string, 1)
		go func() { found[i] <- firstModel(ctx, "http://"+addr+"/v1") }()
	}
	for i, addr := range addrs {
		if name := <-found[i]; name != "" {
			return model.Spec{Provider: "openai", Name: name, BaseURL: "http://" + addr + "/v1"}, nil
		}
	}
	return model.Spec{}, ErrNoServer
}

// firstModel returns the first model that a server lists and that can talk, "" where there is none.
func firstModel(ctx context.Context, base string) string {
	e := wire.Endpoint{Provider: "openai", BaseURL: base, URLEnv: "OPENAI_BASE_URL"}
	resp, err := e.Do(ctx, http.MethodGet, "/models", nil, nil)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := wire.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil {
		return "" // another program's port
	}
	for _, m := range list.Data {
		if m.ID != "" && !strings.Contains(strings.ToLower(m.ID), "embed") {
			return m.ID
		}
	}
	return ""
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"belay/internal/keys"
	"belay/internal/render"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

func (a *app) rehearseServeCommand() *cobra.Command {
	var addr string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "serve FILE",
		Short: "Serve a rehearsal over HTTP, as a model provider would",
		Long: `Serve a rehearsal over HTTP in the dialects of real providers (Anthropic Messages, OpenAI Chat Completions), so that
real clients and other agents can be pointed at it. The first line of the output is "listening on URL"; then come the
variables that lead a client there. The server speaks to this machine alone unless --addr says otherwise. Ctrl-C ends it.`,
		Example: `  belay rehearse serve script.yaml
  belay rehearse serve script.yaml --addr 127.0.0.1:8080
  belay rehearse serve script.yaml --json | head -1 | jq -r .url`,
		Args: exactly(1, "one rehearsal's file"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := load(args[0])
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), script, addr, asJSON)
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "`HOST:PORT` to listen at; port 0 takes a free one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the address and the variables as one line of JSON")
	a.completeFlags(cmd)
	return cmd
}

// serving is where a rehearsal can be reached, and how to lead clients there.
type serving struct {
	URL  string            `json:"url"`
	Name string            `json:"name"`
	Env  map[string]string `json:"env"`
}

// goodbye is how long answers that are on their way may take once the server is told to end. Then they are cut, as when
// a provider goes away.
const goodbye = 500 * time.Millisecond

// serve answers until the context or a signal ends it; then it ends in order, with exit code 0.
func (a *app) serve(ctx context.Context, script *rehearsal.Script, addr string, asJSON bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return usagef("--addr: %w", err)
	}
	server := &http.Server{Handler: serve.New(script), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := a.announce(script, "http://"+listener.Addr().String(), asJSON); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve the rehearsal: %w", err)
	case <-ctx.Done():
	}
	stop() // a second Ctrl-C ends it at once
	patience, enough := context.WithTimeout(context.Background(), goodbye)
	defer enough()
	if err := server.Shutdown(patience); err != nil {
		return server.Close()
	}
	return nil
}

func (a *app) announce(script *rehearsal.Script, url string, asJSON bool) error {
	s := serving{URL: url, Name: script.Name, Env: map[string]string{
		keys.URLEnvName("anthropic"): url, keys.EnvName("anthropic"): "rehearsal",
		keys.URLEnvName("openai"): url + "/v1", keys.EnvName("openai"): "rehearsal",
	}}
	if asJSON {
		b, err := compact(s)
		if err == nil {
			_, err = a.out.Write(b)
		}
		return err
	}
	lines := []string{"listening on " + url, "", a.screen().Dim("# lead a client there; the model is called " + render.Line(script.Name) + ", and is a script")}
	for _, provider := range []string{"anthropic", "openai"} {
		for _, name := range []string{keys.URLEnvName(provider), keys.EnvName(provider)} {
			lines = append(lines, "export "+name+"="+s.Env[name])
		}
	}
	return a.lines(append(lines, "", a.screen().Dim("Ctrl-C ends it."))...)
}

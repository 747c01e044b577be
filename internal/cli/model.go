package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/keys"
	"belay/internal/render"
	"belay/message"
	"belay/model"
)

func (a *app) modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "List models and providers, try one, or decode an answer",
		Long: `See which providers and models belay knows, ask a model for a sign of life, or feed a recorded answer of a provider
through the codec that reads it in a run.`,
		Example: `  belay model ls
  belay model ls ollama
  belay model ping anthropic:claude-opus-5-5
  belay model decode --dialect openai-chat answer.sse`,
		Args: a.noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.modelListCommand(), a.modelPingCommand(), a.modelDecodeCommand())
	return cmd
}

// knownProvider is one line of `belay model ls`.
type knownProvider struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	Dialect model.Dialect `json:"dialect"`
	URL     string        `json:"url,omitempty"`
	KeyEnv  string        `json:"key_env,omitempty"`
	Key     bool          `json:"key"` // one is there
}

type knownModel struct {
	ID     string         `json:"id"`
	Window int64          `json:"context_window,omitempty"`
	Price  *message.Price `json:"price,omitempty"`
	Own    bool           `json:"own,omitempty"` // from the person's models.yaml
}

// corrected is what is known of a model after a person has had their say.
func (m knownModel) corrected(k model.Info) knownModel {
	m.Own = true
	if k.ContextWindow > 0 {
		m.Window = k.ContextWindow
	}
	if k.Price != nil {
		m.Price = k.Price
	}
	return m
}

func (a *app) modelListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [PROVIDER]",
		Short: "List the providers and models that belay knows, or ask a provider for its models",
		Long: `Without an argument, list the providers that belay knows by name and the models whose window and price it knows, as
of ` + model.CatalogueDate + `; nobody is asked. What stands in models.yaml, beside your settings,
counts instead. With a provider (or PROVIDER@URL), ask it which models it has.`,
		Example: "  belay model ls\n  belay model ls ollama\n  belay model ls openai@http://127.0.0.1:8000/v1",
		Args:    between(0, 1, "at most one provider"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, p := range model.Providers() {
				if len(args) == 0 {
					names = append(names, p.Name+"\t"+p.Title)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := a.settings("", config.Settings{})
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return a.askForModels(cmd.Context(), args[0], s.KeyFiles, asJSON)
			}
			return a.listModels(s.KeyFiles, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.completeFlags(cmd)
	return cmd
}

func (a *app) listModels(keyFiles map[string]string, asJSON bool) error {
	list := struct {
		Date      string          `json:"date"` // of what is known of models
		Providers []knownProvider `json:"providers"`
		Models    []knownModel    `json:"models"`
	}{Date: model.CatalogueDate}
	for _, p := range model.Providers() {
		_, err := keys.Find(p.Account(), keys.Config{Files: keyFiles, Env: p.KeyEnv})
		list.Providers = append(list.Providers, knownProvider{p.Name, p.Title, p.Dialect, p.BaseURL, p.KeyName(), err == nil})
	}
	own, err := a.known()
	if err != nil {
		return err
	}
	for _, i := range model.Catalogue() {
		m := knownModel{i.ID(), i.ContextWindow, i.Price, false}
		if k, ok := own[m.ID]; ok {
			m = m.corrected(k)
			delete(own, m.ID)
		}
		list.Models = append(list.Models, m)
	}
	for _, id := range slices.Sorted(maps.Keys(own)) {
		list.Models = append(list.Models, knownModel{ID: id}.corrected(own[id]))
	}
	if asJSON {
		return a.json(list)
	}
	s := a.screen()
	lines := []string{s.Bold(fmt.Sprintf("%-17s %-17s %s", "provider", "dialect", "key"))}
	for i, p := range list.Providers {
		key := s.Dim("none: set " + p.KeyEnv)
		switch {
		case p.Key:
			key = s.Good("there")
		case model.Providers()[i].Keyless:
			key = s.Dim("not needed")
		}
		lines = append(lines, fmt.Sprintf("%-17s %-17s %s  %s", p.Name, p.Dialect, key, s.Dim(p.Title)))
	}
	lines = append(lines, "", s.Bold(fmt.Sprintf("%-32s %10s  %s", "model (as of "+list.Date+")", "window", "USD per million tokens: in, out")))
	for _, m := range list.Models {
		price := s.Dim("price not known")
		if m.Price != nil {
			price = fmt.Sprintf("%g, %g", m.Price.Input, m.Price.Output)
		}
		lines = append(lines, fmt.Sprintf("%-32s %10d  %s", m.ID, m.Window, price))
	}
	return a.lines(lines...)
}

// lister is a client whose server says which models it has.
type lister interface {
	Models(ctx context.Context) ([]string, error)
}

func (a *app) askForModels(ctx context.Context, provider string, keyFiles map[string]string, asJSON bool) error {
	name, url, at := strings.Cut(provider, "@")
	spec := name + ":any"
	if at {
		spec += "@" + url
	}
	if _, known := model.ProviderNamed(strings.ToLower(name)); !known {
		return usagef("%s lists no models: name a provider, such as ollama or anthropic; belay model ls shows all", render.Line(provider))
	}
	client, err := a.connect(spec, keyFiles)
	if err != nil {
		return err
	}
	asked, ok := client.(lister)
	if !ok {
		return fmt.Errorf("the client of %s cannot list models", render.Line(provider))
	}
	names, err := asked.Models(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.json(struct {
			Models []string `json:"models"`
		}{names})
	}
	for i, n := range names {
		spec := name + ":" + n
		if at {
			spec += "@" + url
		}
		names[i] = render.Line(spec)
	}
	return a.lines(names...)
}

// connect makes a client; a key that is missing is the environment's, as in a run.
func (a *app) connect(spec string, keyFiles map[string]string) (model.Client, error) {
	known, err := a.known()
	if err != nil {
		return nil, err
	}
	client, err := harness.Connect(harness.Config{Model: spec, KeyFiles: keyFiles, Known: known})
	if errors.Is(err, keys.ErrMissing) {
		return nil, &model.Error{Class: model.Environment, Kind: model.Auth, Message: err.Error()}
	}
	return client, err
}

// sign is the outcome of a ping.
type sign struct {
	Model string        `json:"model"`
	Text  string        `json:"text"`
	MS    int64         `json:"ms"`
	Usage message.Usage `json:"usage"`
	Cost  *message.Cost `json:"cost_usd"` // null where the price is not known
}

const (
	pingText   = "Reply with the single word: pong"
	pingOutput = 2048 // tokens: room for models that think
)

func (a *app) modelPingCommand() *cobra.Command {
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "ping NAME",
		Short: "Ask a model for one word, to see that key, address and name are right",
		Long: `Send one small request to a model and show what it says, how long it takes and what it costs. What stands in the
way is said with what to do about it; the exit code is then that of a run in the same situation: 2 for how it was
called, 7 for a key, an address, a quota or a network that does not work.`,
		Example:           "  belay model ping anthropic:claude-opus-5-5\n  belay model ping openai:qwen3:8b@http://127.0.0.1:11434/v1",
		Args:              exactly(1, "one model"),
		ValidArgsFunction: completeModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := a.settings("", config.Settings{})
			if err != nil {
				return err
			}
			client, err := a.connect(args[0], s.KeyFiles)
			if err != nil {
				return err
			}
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			return a.ping(ctx, client, timeout, asJSON)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how `long` to wait")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.completeFlags(cmd)
	return cmd
}

func (a *app) ping(ctx context.Context, client model.Client, timeout time.Duration, asJSON bool) error {
	began := time.Now()
	reply, err := model.Collect(client.Stream(ctx, model.Request{Messages: []message.Message{message.UserText(pingText)}, MaxOutput: pingOutput}), nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &model.Error{Class: model.Environment, Kind: model.Network, Message: fmt.Sprintf("%s has not answered within %s", client.Info().ID(), timeout)}
	case err != nil && model.AsError(err).Class == model.Transient: // nobody tries again here
		failed := *model.AsError(err)
		failed.Class = model.Environment
		return &failed
	case err != nil:
		return err
	}
	out := sign{Model: client.Info().ID(), Text: message.PlainText(reply.Blocks), MS: time.Since(began).Milliseconds(), Usage: reply.Usage}
	if p := client.Info().Price; p != nil {
		cost := p.Of(reply.Usage)
		out.Cost = &cost
	}
	if asJSON {
		return a.json(out)
	}
	said := render.Cut(render.Line(strings.TrimSpace(out.Text)), 200)
	if said == "" {
		said = "(no text; it stopped for " + string(reply.Stop) + ")"
	}
	cost := "price not known"
	if out.Cost != nil {
		cost = out.Cost.String()
	}
	return a.lines(fmt.Sprintf("%s  %s: %s", a.screen().Good("answers"), render.Line(out.Model), said),
		a.screen().Dim(fmt.Sprintf("%d ms, %d tokens in, %d out, %s", out.MS, out.Usage.Total()-out.Usage.Output, out.Usage.Output, cost)))
}

func (a *app) modelDecodeCommand() *cobra.Command {
	var dialect, provider, name string
	var status int
	var headers []string
	var sizes []int
	cmd := &cobra.Command{
		Use:   "decode FILE|-",
		Short: "Read a provider's answer as a run would, and print what it amounts to",
		Long: `Feed the bytes of a file, which is the body of a provider's answer (a stream of events, JSON, or an error page),
through the codec that reads it in a run, and print one JSON object: texts, calls that may run, calls that may not and
why, why the reply stopped, usage, whether to ask again, the error and its class, and the blocks that would be sent back.
The exit code is 0 also for answers that are errors.`,
		Example: `  belay model decode --dialect anthropic answer.sse
  belay model decode --dialect openai-chat --status 429 --header 'retry-after: 3' error.json
  belay model decode --dialect gemini --read-sizes 1,3,2 answer.sse`,
		Args: exactly(1, "one file, or - for the standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			codec, err := harness.CodecOf(model.Dialect(dialect), provider, name)
			if err != nil {
				return err
			}
			body, err := a.answer(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }()
			resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: body}
			for _, h := range headers {
				k, v, ok := strings.Cut(h, ":")
				if !ok || strings.TrimSpace(k) == "" {
					return usagef("--header %q has no colon: write it like 'retry-after: 3'", h)
				}
				resp.Header.Add(strings.TrimSpace(k), strings.TrimSpace(v))
			}
			if len(sizes) > 0 {
				if slices.Min(sizes) < 1 {
					return usagef("--read-sizes must be positive numbers of bytes, such as 1,3,2")
				}
				resp.Body = &slowBody{ReadCloser: body, sizes: sizes}
			}
			d, err := amountsTo(codec, model.Dialect(dialect), resp)
			if err != nil {
				return err
			}
			return a.json(d)
		},
	}
	cmd.Flags().SortFlags = false
	var names []string
	for _, d := range model.Dialects {
		names = append(names, string(d))
	}
	cmd.Flags().StringVar(&dialect, "dialect", "", "how it is to be read: "+strings.Join(names, ", "))
	cmd.Flags().IntVar(&status, "status", http.StatusOK, "the answer's HTTP `status`")
	cmd.Flags().StringArrayVar(&headers, "header", nil, "a `header` of the answer, as 'name: value'; may be repeated")
	cmd.Flags().IntSliceVar(&sizes, "read-sizes", nil, "read so many `bytes` at a time, over and over: 1,3,2")
	cmd.Flags().StringVar(&provider, "provider", "", "the `provider` whose quirks are expected (default: none in particular)")
	cmd.Flags().StringVar(&name, "model", "decoded", "the `model` that is said to have answered")
	_ = cmd.MarkFlagRequired("dialect") // it fails only where the flag is missing
	_ = cmd.RegisterFlagCompletionFunc("dialect", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) answer(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return f, nil
}

// slowBody reads as many bytes at a time as its sizes say, over and over.
type slowBody struct {
	io.ReadCloser
	sizes []int
	next  int
}

func (b *slowBody) Read(p []byte) (int, error) {
	n := min(len(p), b.sizes[b.next%len(b.sizes)])
	b.next++
	return b.ReadCloser.Read(p[:n])
}

// decoded is what an answer amounts to.
type decoded struct {
	Text     string         `json:"text"`
	Thinking string         `json:"thinking"`
	Calls    []decodedCall  `json:"tool_calls"`
	Rejected []rejectedCall `json:"rejected_tool_calls"`
	Stop     string         `json:"stop"`
	RawStop  string         `json:"raw_stop"`
	Usage    *decodedUsage  `json:"usage"`
	Retry    bool           `json:"retry"`        // the same request may work now
	Report   bool           `json:"report_error"` // somebody, model or person, must be told
	Error    *decodedError  `json:"error"`
	Replay   []any          `json:"replay_blocks"`
}

type decodedCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Kind      string          `json:"kind,omitempty"`
	Signature string          `json:"signature,omitempty"`
}

type rejectedCall struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Reason string `json:"reason"` // truncated, stream_truncated, invalid_json, malformed
}

// decodedUsage counts all of the prompt as input and thinking as output.
type decodedUsage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"`
}

type decodedError struct {
	Class        model.Kind `json:"class"`
	Message      string     `json:"message"`
	Code         *string    `json:"code"`
	RetryAfterMS *int64     `json:"retry_after_ms"`
}

func amountsTo(c harness.Codec, d model.Dialect, resp *http.Response) (decoded, error) {
	out := decoded{Calls: []decodedCall{}, Rejected: []rejectedCall{}, Replay: []any{}}
	begun := []rejectedCall{}
	estimated := false
	reply, err := model.Collect(c.Decode(resp, model.Request{}), func(ev model.Event) {
		switch ev.Kind {
		case model.TextDelta:
			out.Text += ev.Delta
		case model.ThinkingDelta:
			out.Thinking += ev.Delta
		case model.CallStarted:
			begun = append(begun, rejectedCall{ID: ev.ID, Name: ev.Name})
		case model.UsageReport:
			estimated = ev.Estimated
		case model.TurnDone:
			out.RawStop = ev.RawStop
		}
	})
	if err != nil {
		out.fail(model.AsError(err), begun)
		return out, nil
	}
	out.Text, out.Thinking = "", ""
	for _, b := range reply.Blocks {
		switch b.Kind {
		case message.KindText:
			out.Text += b.Text
		case message.KindThinking:
			out.Thinking += b.Text
		case message.KindCall:
			out.call(b, reply.Stop)
		}
	}
	out.Stop = string(reply.Stop)
	if !estimated {
		out.Usage = usageOf(&reply.Usage)
	}
	out.Report = len(out.Rejected) > 0
	if reply.Stop == message.StopRefusal {
		text := out.Text
		if text == "" {
			text = "the model declines to answer"
		}
		out.Error, out.Report = &decodedError{Class: model.Refused, Message: text, Code: orNil(out.RawStop)}, true
	}
	raw, err := harness.RawBlocks(c, d, reply.Blocks)
	for _, r := range raw {
		out.Replay = append(out.Replay, r)
	}
	return out, err
}

func (d *decoded) call(b message.Block, stop message.StopReason) {
	c := b.Call
	switch {
	case stop != message.StopToolUse && stop != message.StopEnd:
		d.Rejected = append(d.Rejected, rejectedCall{c.ID, c.Name, "truncated"})
	case c.BadArgs != "":
		d.Rejected = append(d.Rejected, rejectedCall{c.ID, c.Name, "invalid_json"})
	default:
		call := decodedCall{ID: c.ID, Name: c.Name, Arguments: c.Args}
		if b.Opaque != nil {
			var own struct {
				Type      string `json:"type"`
				Signature string `json:"thoughtSignature"`
				Google    struct {
					Signature string `json:"thought_signature"`
				} `json:"google"`
			}
			_ = json.Unmarshal(b.Opaque.Raw, &own) // a provider's own bytes may be anything
			call.Signature = own.Signature + own.Google.Signature
			if own.Type == "custom_tool_call" {
				call.Kind = "custom"
			}
		}
		d.Calls = append(d.Calls, call)
	}
}

// fail says what became of an answer that is no reply.
func (d *decoded) fail(e *model.Error, begun []rejectedCall) {
	d.Stop, d.RawStop, d.Usage = string(message.StopError), e.RawStop, usageOf(e.Usage)
	d.Retry = e.Retryable()
	d.Report = !d.Retry || e.Kind == model.MalformedCall
	d.Error = &decodedError{Class: e.Kind, Message: e.Error(), Code: orNil(e.Code)}
	if e.RetryAfter > 0 {
		ms := e.RetryAfter.Milliseconds()
		d.Error.RetryAfterMS = &ms
	}
	reason := "stream_truncated"
	switch e.Kind {
	case model.MalformedCall:
		reason = "malformed"
		for _, name := range e.Calls {
			if !slices.ContainsFunc(begun, func(r rejectedCall) bool { return r.Name == name }) {
				begun = append(begun, rejectedCall{Name: name})
			}
		}
	case model.ContextOverflow: // a reply that the window cut, not a request that it refused
		if e.Status == 0 && e.RawStop != "" {
			d.Stop, reason = string(message.StopLength), "truncated"
		}
	}
	for i := range begun {
		begun[i].Reason = reason
	}
	d.Rejected = append(d.Rejected, begun...)
}

func usageOf(u *message.Usage) *decodedUsage {
	if u == nil {
		return nil
	}
	return &decodedUsage{u.Input + u.CacheRead + u.CacheWrite, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"belay/effect"
	"belay/internal/projection"
	"belay/journal"
	"belay/loop"
	"belay/model/rehearsal"
	"belay/policy"
	"belay/tool"
	"belay/verify"
)

// victim is a process that lives to be killed: the real loop, journal, projection and settlement, with tools of every
// class that leave their effects in a ledger outside. It prints every event once the log has acknowledged it, and
// "end EXIT SUMMARY" at last.
func victim(home, runID, ledger, script, say string) error {
	out := bufio.NewWriter(os.Stdout)
	acknowledged := func(e journal.Event) {
		fmt.Fprintf(out, "event %d %s\n", e.Seq, e.Sum)
		out.Flush()
	}
	model, err := rehearsal.Load(script)
	if err != nil {
		return err
	}
	log, err := open(home, runID, say, acknowledged)
	if err != nil {
		return err
	}
	defer log.Close()
	tools, err := tool.NewRegistry(deed{"Look", effect.Read, tool.Pure, ledger}, deed{"Put", effect.Write, tool.OpaqueCall, ledger},
		deed{"Burn", effect.Delete, tool.OpaqueCall, ledger}, deed{"Send", effect.Connect, tool.External, ledger})
	if err != nil {
		return err
	}
	result, err := loop.Run(context.Background(), loop.Config{
		Log: log, Client: rehearsal.New(model), Tools: tools, Place: tool.Place{Workspace: "/w", Dir: "/w"},
		Judge: allow, Env: func(effect.Grant) tool.Env { return nil },
		Tree:    func(context.Context) (verify.Tree, error) { return verify.Tree{Digest: "same"}, nil },
		Observe: acknowledged,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "end %d %s\n", result.Exit, result.Summary)
	return out.Flush()
}

// open starts the run, or goes on with it where it exists.
func open(home, runID, say string, acknowledged func(journal.Event)) (*journal.File, error) {
	start := journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{System: "s", Tools: json.RawMessage("[]"), Projection: projection.Version}}
	dir := filepath.Join(journal.RunsDir(home), runID)
	var log *journal.File
	var events []journal.Event
	if _, err := os.Stat(dir); err != nil {
		os.RemoveAll(filepath.Join(home, "staging")) // what an earlier death left half made
		log, events, err = journal.Create(home, runID, nil, start, journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "do it"}})
		if err != nil {
			return nil, err
		}
	} else {
		if log, err = journal.Open(dir, nil); err != nil {
			return nil, err
		}
		entries := []journal.Entry{start}
		if say != "" {
			entries = append(entries, journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: say}})
		}
		session := 1
		for e, err := range log.Events() {
			if err != nil {
				return nil, err
			}
			session = max(session, e.Session)
		}
		for i := range entries {
			entries[i].Session = session + 1
		}
		if events, err = log.Append(entries...); err != nil {
			return nil, err
		}
	}
	for _, e := range events {
		acknowledged(e)
	}
	return log, nil
}

// allow judges as a person who says yes to everything would.
func allow(a policy.Action) policy.Decision {
	classes := map[effect.Kind]effect.Class{effect.Read: effect.ClassRead, effect.Write: effect.ClassReversible, effect.Delete: effect.ClassIrreversible, effect.Connect: effect.ClassExternal}
	return policy.Decision{Class: classes[a.Effects[0].Kind], Verdict: effect.Allow, Rule: "crashtest"}
}

// deed is a tool whose effect is one line in the ledger.
type deed struct {
	name   string
	kind   effect.Kind
	replay tool.Replay
	ledger string
}

func (d deed) Spec() tool.Spec {
	return tool.Spec{Name: d.name, Description: "leaves a line in the ledger", Replay: d.replay,
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"what":{"type":"string"},"size":{"type":"integer"}}}`)}
}

func (d deed) Plan(tool.Place, tool.Call) (tool.Plan, error) {
	return tool.Plan{Effects: effect.Set{{Kind: d.kind}}, Summary: d.name}, nil
}

func (d deed) Run(_ context.Context, _ tool.Env, call tool.Call) (tool.Result, error) {
	var args struct {
		What string
		Size int
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	if d.kind != effect.Read {
		file, err := os.OpenFile(d.ledger, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return tool.Result{}, err
		}
		defer file.Close()
		if _, err := fmt.Fprintf(file, "%s %s %s\n", d.name, call.ID, call.Key); err != nil {
			return tool.Result{}, err
		}
	}
	text := make([]byte, args.Size)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return tool.Result{Status: tool.Success, Text: d.name + " " + args.What + " " + string(text)}, nil
}

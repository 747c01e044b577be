package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed write.md
var writeDescription string

// Write creates a file or replaces a whole one.
type Write struct{}

type writeArgs struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

func (Write) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Write",
		Classes:     []effect.Class{2, 3, 5},
		Description: strings.TrimSpace(writeDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["file_path","content"],"properties":{
			"file_path":{"type":"string","minLength":1,"description":"The file, absolute or relative to the current folder. Missing folders are made."},
			"content":{"type":"string","description":"The whole content of the file."}}}`),
		Replay: tool.Reversible,
	}
}

func (Write) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[writeArgs](call)
	if err == nil {
		err = badPath(args.FilePath)
	}
	if err != nil {
		return tool.Plan{}, err
	}
	path := place.Resolve(args.FilePath)
	return tool.Plan{
		Effects: effect.Set{{Kind: effect.Write, Target: path}},
		Summary: fmt.Sprintf("write %s (%s)", place.Rel(path), plural(lineCount(args.Content), "line")),
	}, nil
}

func (Write) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[writeArgs](call)
	if err != nil {
		return failed(err)
	}
	place := env.Place()
	path := place.Resolve(args.FilePath)
	shown := place.Rel(path)
	was, before := "new file", ""
	switch info, err := env.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fileError(env, path, err)
	case info.IsDir():
		return tool.Failf(tool.Unsupported, "Give the path of a file in it.", "%s is a directory", shown), nil
	case !info.Mode.IsRegular():
		return tool.Failf(tool.Unsupported, "Only regular files can be written.", "%s is a device, pipe or socket", shown), nil
	default:
		data, err := env.ReadFile(path)
		if err != nil {
			return fileError(env, path, err)
		}
		if before = string(data); before == args.Content {
			return tool.Failf(tool.NoChange, "Nothing needs to be written.", "%s already has exactly this content", shown), nil
		}
		was = "was " + plural(lineCount(before), "line")
	}
	if line := leftOut(before, args.Content); line != "" {
		return tool.Failf(tool.InvalidArguments, "Write every line that is to be there: what you write is all that will be.", "the content leaves something out: %q", line), nil
	}
	note, broken := lint(ctx, env, path, before, args.Content)
	if broken != "" {
		return tool.Failf(tool.Broken, "Mend the content and write it again; the file is as it was.", "not written: %s could be parsed, and this content cannot: %s", shown, broken), nil
	}
	if err := env.WriteFile(path, []byte(args.Content)); err != nil {
		return fileError(env, path, err)
	}
	summary := fmt.Sprintf("wrote %s: %s, %d bytes (%s)", shown, plural(lineCount(args.Content), "line"), len(args.Content), was)
	text := "[" + summary + "]"
	if note != "" {
		text += "\n[" + strings.Replace(note, ", as before", "", 1) + "]"
	}
	return tool.Result{
		Status: tool.Success, Summary: summary, Text: text,
		Stats:   tool.Stats{Bytes: int64(len(args.Content))},
		Context: tool.Context{Dir: place.Dir, Wrote: []string{path}},
	}, nil
}

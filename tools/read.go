package tools

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed read.md
var readDescription string

const (
	readLines  = 2000     // lines of one window
	readTokens = 10000    // tokens of one window
	readLine   = 2000     // bytes of a line that are shown
	readFile   = 64 << 20 // bytes of the largest file that is read
)

// Read shows a window of a text file with line numbers.
type Read struct{}

type readArgs struct {
	FilePath string `json:"file_path"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
}

func (Read) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Read",
		Classes:     []effect.Class{1, 5},
		Description: strings.TrimSpace(readDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["file_path"],"properties":{
			"file_path":{"type":"string","minLength":1,"description":"The file, absolute or relative to the current folder."},
			"offset":{"type":"integer","minimum":1,"description":"The first line to show, from 1."},
			"limit":{"type":"integer","minimum":1,"description":"How many lines to show, at most; 2000 when left out."}}}`),
		Budget: readTokens + readTokens/10, // its own window is smaller: this never cuts
		Cut:    tool.CutHead,
		Replay: tool.Pure,
	}
}

func (Read) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[readArgs](call)
	if err == nil {
		err = badPath(args.FilePath)
	}
	if err != nil {
		return tool.Plan{}, err
	}
	path := place.Resolve(args.FilePath)
	return tool.Plan{Effects: effect.Set{{Kind: effect.Read, Target: path}}, Summary: "read " + place.Rel(path)}, nil
}

func (Read) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[readArgs](call)
	if err != nil {
		return failed(err)
	}
	place := env.Place()
	path := place.Resolve(args.FilePath)
	data, refusal, err := loadFile(env, path)
	if err != nil {
		return fileError(env, path, err)
	}
	if refusal != nil {
		return *refusal, nil
	}
	if shown, is := picture(data, path); is {
		shown.Context = tool.Context{Dir: place.Dir, Read: []string{path}}
		return shown, nil
	}
	if refusal = noText(env, path, data); refusal != nil {
		return *refusal, nil
	}
	notes := textNotes(data)
	data = bytes.TrimPrefix(data, bom)
	lines := splitLines(string(data))
	result := tool.Result{Status: tool.Success, Stats: tool.Stats{Bytes: int64(len(data))}, Context: tool.Context{Dir: place.Dir, Read: []string{path}}}
	if len(lines) == 0 {
		result.Summary, result.Text = "empty file", "[the file is empty]"
		return result, nil
	}
	from := max(args.Offset, 1)
	if from > len(lines) {
		return tool.Failf(tool.InvalidArguments, fmt.Sprintf("Give an offset of at most %d.", len(lines)), "offset %d is past the end: %s has %s", from, place.Rel(path), plural(len(lines), "line")), nil
	}
	limit := readLines
	if args.Limit > 0 {
		limit = min(args.Limit, readLines)
	}
	text, to := window(lines, from, limit)
	result.Summary = fmt.Sprintf("lines %d-%d of %d", from, to, len(lines))
	footer := ""
	if from > 1 || to < len(lines) {
		footer = result.Summary
	}
	if to < len(lines) {
		footer += fmt.Sprintf("; next offset %d", to+1)
	}
	if notes != "" {
		footer = strings.TrimPrefix(footer+"; "+notes, "; ")
	}
	if footer != "" {
		text += "[" + footer + "]"
	}
	result.Text = text
	return result, nil
}

// window numbers lines like cat -n, from a line on, within the limits of lines and tokens. It returns the last line shown.
func window(lines []string, from, limit int) (string, int) {
	var b strings.Builder
	to := from - 1
	for to < len(lines) && to-from+1 < limit {
		line := strings.TrimSuffix(lines[to], "\r")
		if len(line) > readLine {
			cut := readLine
			for cut > 0 && line[cut]&0xC0 == 0x80 {
				cut--
			}
			line = fmt.Sprintf("%s[… %d bytes of this line left out]", line[:cut], len(line)-cut)
		}
		numbered := fmt.Sprintf("%6d\t%s\n", to+1, escapeBytes(line))
		if b.Len()+len(numbered) > readTokens*tool.BytesPerToken && to >= from {
			break
		}
		b.WriteString(numbered)
		to++
	}
	return b.String(), to
}

var bom = []byte("\xef\xbb\xbf")

// splitLines splits at newlines; a final newline does not start another line.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// textNotes says what line numbers do not show.
func textNotes(data []byte) string {
	var notes []string
	if bytes.HasPrefix(data, bom) {
		notes = append(notes, "starts with a byte order mark")
	}
	crlf, lf := bytes.Count(data, []byte("\r\n")), bytes.Count(data, []byte("\n"))
	switch {
	case crlf > 0 && crlf == lf:
		notes = append(notes, "CRLF line endings")
	case crlf > 0:
		notes = append(notes, fmt.Sprintf("mixed line endings: %d CRLF, %d LF", crlf, lf-crlf))
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		notes = append(notes, "no newline at the end")
	}
	return strings.Join(notes, "; ")
}

// loadText reads a file that is text, or says to the model why it is not to be read.
func loadText(env tool.Env, path string) ([]byte, *tool.Result, error) {
	data, refusal, err := loadFile(env, path)
	if refusal == nil && err == nil {
		refusal = noText(env, path, data)
	}
	return data, refusal, err
}

// noText says why a file is not text; nil where it is.
func noText(env tool.Env, path string, data []byte) *tool.Result {
	refuse := func(hint, format string, args ...any) *tool.Result {
		r := tool.Failf(tool.Unsupported, hint, "%s %s", env.Place().Rel(path), fmt.Sprintf(format, args...))
		return &r
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return refuse("Convert it with Bash: iconv -f UTF-16 -t UTF-8.", "is UTF-16 text")
	}
	if bytes.IndexByte(data[:min(len(data), 8192)], 0) >= 0 {
		return refuse("Look at it with Bash: file, od -c, strings.", "is a binary file of %d bytes", len(data))
	}
	return nil
}

// loadFile reads a regular file of a bearable size, or says to the model why it is not to be read.
func loadFile(env tool.Env, path string) ([]byte, *tool.Result, error) {
	refuse := func(hint, format string, args ...any) ([]byte, *tool.Result, error) {
		r := tool.Failf(tool.Unsupported, hint, "%s %s", env.Place().Rel(path), fmt.Sprintf(format, args...))
		return nil, &r, nil
	}
	info, err := env.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case info.IsDir():
		entries, err := env.ReadDir(path)
		if err != nil {
			return nil, nil, err
		}
		var names []string
		for i, e := range entries {
			if i == 30 {
				names = append(names, fmt.Sprintf("… %d more", len(entries)-i))
				break
			}
			name := e.Name
			if e.IsDir() {
				name += "/"
			}
			names = append(names, shownName(name))
		}
		return refuse("It holds: "+strings.Join(names, " ")+". Give one of its files, or use LS.", "is a directory")
	case !info.Mode.IsRegular():
		return refuse("Only regular files can be read.", "is a device, pipe or socket")
	case info.Size > readFile:
		return refuse("Look at parts of it with Grep, or with Bash: head, tail, sed -n.", "has %d bytes, which is too large to read", info.Size)
	}
	data, err := env.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	return data, nil, nil
}

package tools

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"regexp"

	"belay/internal/unified"
	"belay/tool"
)

// change is one replacement in a text.
type change struct {
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

// changed is a text after some changes.
type changed struct {
	text                  string
	first                 int // line of the first change, from 1
	count, added, removed int // replacements, and lines of them
}

// applied makes the changes one after the other, each on what the one before has left. The refusal says why one cannot be made;
// then none is.
func applied(shown, before string, changes []change) (c changed, refusal *tool.Result) {
	c.text = before
	for i, ch := range changes {
		which := ""
		if len(changes) > 1 {
			which = fmt.Sprintf("edit %d of %d: ", i+1, len(changes))
		}
		refuse := func(r tool.Result) *tool.Result {
			if r.Error != nil && which != "" {
				r = tool.Failf(r.Error.Code, r.Error.Hint+"\nNo edit of the list was made.", "%s%s", which, r.Error.Message)
			}
			return &r
		}
		old, replacement := lineEndings(c.text, ch.OldString, ch.NewString)
		n := strings.Count(c.text, old)
		switch {
		case n == 0:
			return c, refuse(notMatched(shown, c.text, ch.OldString))
		case n > 1 && !ch.ReplaceAll:
			return c, refuse(notUnique(shown, c.text, old, n))
		case old == replacement:
			return c, refuse(tool.Failf(tool.NoChange, "The file already has these line endings; nothing needs to change.", "old_string and new_string differ only in line endings"))
		}
		if line := 1 + strings.Count(c.text[:strings.Index(c.text, old)], "\n"); c.first == 0 || line < c.first {
			c.first = line
		}
		c.text = strings.ReplaceAll(c.text, old, replacement)
		c.count, c.added, c.removed = c.count+n, c.added+n*lineCount(ch.NewString), c.removed+n*lineCount(ch.OldString)
	}
	return c, nil
}

// placeholders are remarks by which models leave parts of a text out.
var placeholders = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^\s*(//|#|--|/\*|<!--|;|%)?\s*(\.\.\.|…|\[\.\.\.)?\s*\(?\b((the\s+)?rest of (the )?(file|code|function|class|method|content|implementation)s?( (is|remains|stays))?( unchanged| the same| as before| as is| here)?|(existing|previous|remaining|other|unchanged) (code|content|methods|functions|lines|implementation)( (is|are|remains?|stays?))?( unchanged| the same| as before| here| continues?)?|rest unchanged|unchanged)\b\s*\)?\s*(\.\.\.|…|\.\.\.\])?\s*(\*/|-->)?\s*$`)
})

// leftOut says that a text leaves something out by a remark that the text before has not. It is the line, "" where there is none.
func leftOut(before, after string) string {
	for _, line := range placeholders().FindAllString(after, 20) {
		bare := strings.TrimSpace(line)
		marked := strings.Contains(bare, "...") || strings.Contains(bare, "…") || strings.ContainsAny(bare[:1], "/#-<;%*(")
		if marked && !strings.Contains(before, bare) {
			return bare
		}
	}
	return ""
}

// settle checks a changed text, shows what it changes, and writes it unless it is only to be shown.
func settle(ctx context.Context, env tool.Env, path, before string, c changed, dry bool) (tool.Result, error) {
	place := env.Place()
	shown := place.Rel(path)
	if line := leftOut(before, c.text); line != "" {
		return tool.Failf(tool.InvalidArguments, "Write every line that is to stay: what you leave out is gone.", "the new text leaves something out: %q", line), nil
	}
	note, broken := lint(ctx, env, path, before, c.text)
	if broken != "" {
		return tool.Failf(tool.Broken, "Mend the edit and make it again; the file is as it was.", "not written: %s could be parsed, and after this edit it could not: %s", shown, broken), nil
	}
	did := "replacement"
	result := tool.Result{
		Status:  tool.Success,
		Summary: fmt.Sprintf("%s in %s (+%d -%d)", plural(c.count, did), shown, c.added, c.removed),
		Stats:   tool.Stats{Bytes: int64(len(c.text))},
		Context: tool.Context{Dir: place.Dir, Read: []string{path}, Wrote: []string{path}},
	}
	if dry {
		result.Summary = "not written: " + result.Summary
		result.Context.Wrote = nil
	} else if err := env.WriteFile(path, []byte(c.text)); err != nil {
		return fileError(env, path, err)
	}
	result.Text = "[" + result.Summary + "]"
	if note != "" {
		result.Text += "\n[" + note + "]"
	}
	if len(before) <= diffBytes && len(c.text) <= diffBytes {
		result.Text += "\n" + escapeBytes(strings.TrimRight(unified.Diff(shown, shown, before, c.text), "\n"))
	} else {
		result.Text += "\n" + around(c.text, c.first, 1)
	}
	return result, nil
}

// diffBytes is the size above which a change is shown by its place and not as a diff.
const diffBytes = 256 << 10

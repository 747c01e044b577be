package loop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"belay/effect"
	"belay/journal"
	"belay/message"
	"belay/tool"
)

// once remembers the effects of class 3 and 4 that the run has had, so that none happens twice, and those of which
// nobody knows whether they happened. It is folded from the journal.
type once struct {
	spoken  int64 // number of the person's last message
	words   int   // how many there were
	asked   map[string]deed
	first   map[string]deed // by key
	unknown []deed
	waiting map[string]journal.ToolRequest // that a person was asked about
}

// deed is one call of class 3 or 4 that was allowed.
type deed struct {
	seq     int64
	request journal.ToolRequest
	result  *journal.ToolResult // nil: there is none yet
}

// apply follows the journal.
func (o *once) apply(e *decoded) error {
	if o.asked == nil {
		o.asked, o.first, o.waiting = map[string]deed{}, map[string]deed{}, map[string]journal.ToolRequest{}
	}
	switch e.Type {
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.By == "" {
			o.spoken, o.words = e.Seq, o.words+1
		}
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		if serious(p) {
			o.asked[p.CallID] = deed{seq: e.Seq, request: p}
		} else if p.Permission.Verdict == effect.Ask {
			o.waiting[p.CallID] = p
		}
	case journal.TypePermission:
		var p journal.Permitted
		if err := e.Decode(&p); err != nil {
			return err
		}
		r := o.waiting[p.CallID]
		delete(o.waiting, p.CallID)
		if r.Permission.Verdict = p.Verdict; serious(r) {
			r.Permission.By = p.By
			o.asked[p.CallID] = deed{seq: e.Seq, request: r}
		}
	case journal.TypeToolResult:
		var p journal.ToolResult
		if err := e.Decode(&p); err != nil {
			return err
		}
		d, ok := o.asked[p.CallID]
		if !ok {
			break
		}
		delete(o.asked, p.CallID)
		d.result = &p
		if _, known := o.first[d.request.Key]; d.request.Key != "" && (!known || p.Status != string(tool.Error)) {
			o.first[d.request.Key] = d
		}
		if p.Code == string(tool.Interrupted) {
			o.unknown = append(o.unknown, d)
		}
	}
	return nil
}

// serious says whether a call may have had an effect that nothing takes back.
func serious(r journal.ToolRequest) bool {
	return r.Permission.Verdict == effect.Allow && r.Class >= effect.ClassIrreversible
}

// unanswered lists the deeds of unknown outcome that came after the person's last word: a person is asked about them
// again and again, until there is one.
func (o *once) unanswered() []deed {
	var open []deed
	for _, d := range o.unknown {
		if d.seq > o.spoken {
			open = append(open, d)
		}
	}
	return open
}

// key derives a call's idempotency key: asking again for the same effect in the same step has the same one. Without
// a plan, the person's words part the steps.
func (o *once) key(runID string, call message.ToolCall) string {
	h := sha256.New()
	fmt.Fprintf(h, "belay.key\n%s\nwords %d\n%s\n", runID, o.words, call.Name)
	h.Write(normal(call.Args))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// normal is JSON without a freedom of spelling: sorted fields, no blanks.
func normal(args json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber() // a number stays as it was written
	var v any
	if dec.Decode(&v) != nil {
		return args
	}
	b, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return b
}

// again says why a call must not run: its effect was had before. It may where its tool says that a repetition
// changes nothing, where a person allows this very call, and where a local program is known to have failed.
func (o *once) again(r journal.ToolRequest) *tool.Failure {
	first, known := o.first[r.Key]
	if !known || first.request.CallID == r.CallID || r.Permission.By == "user" {
		return nil
	}
	if replay := tool.Replay(r.Replay); replay == tool.Pure || replay == tool.Reversible {
		return nil
	}
	was := first.result
	if r.Class == effect.ClassIrreversible && was.Status == string(tool.Error) && was.Code != string(tool.Interrupted) {
		return nil
	}
	return &tool.Failure{Code: tool.Conflict,
		Message: fmt.Sprintf("not run again: call %s had this very effect in this step, and it cannot be taken back. Its outcome was (%s):\n%s",
			first.request.CallID, was.Status, cutWords(was.Text, 2000)),
		Hint: "Go on from that outcome. If it has to happen once more, call ReportBlocker and say why; a person can allow it."}
}

func cutWords(s string, limit int) string {
	short, _ := tool.CutText(s, limit/tool.BytesPerToken, tool.CutBoth)
	return short
}

package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"belay/journal"
	"belay/message"
)

// meta is what is kept beside a message, so that a break of the prefix encodes only what it changes.
type meta struct {
	seq               int64 // of the event that completed the message
	digest            [32]byte
	bytes             int64
	pictures, picture int64
}

// episode is one summary of what is no longer in the context.
type episode struct {
	from, to int64
	text     string
}

func picturesOf(m message.Message) (n, bytes int64) {
	count := func(img message.Image) {
		n++
		bytes += int64(len(img.Data)+2) / 3 * 4
	}
	for _, b := range m.Blocks {
		if b.Image != nil {
			count(*b.Image)
		}
		if b.Result != nil {
			for _, img := range b.Result.Images {
				count(img)
			}
		}
	}
	return n, bytes
}

// erase puts other texts in the place of results. Results that are not in the context are left out of it.
func (f *Fold) erase(p journal.Erase) error {
	texts := make(map[string]string, len(p.Results))
	for _, r := range p.Results {
		texts[r.CallID] = r.Text
	}
	messages := append([]message.Message(nil), f.request.Messages...)
	f.metas, f.stored = append([]meta(nil), f.metas...), maps.Clone(f.stored) // a rewind may want what was
	for i, m := range messages {
		changed := false
		for k, b := range m.Blocks {
			if b.Result == nil {
				continue
			}
			text, ok := texts[b.Result.CallID]
			if !ok {
				continue
			}
			if !changed { // earlier requests keep what they were
				m.Blocks, changed = append([]message.Block(nil), m.Blocks...), true
			}
			if known := f.stored[b.Result.CallID]; p.Reason != "errors" {
				known.erased = true
				f.stored[b.Result.CallID] = known
			}
			result := *b.Result
			result.Text = text
			if p.Reason != "errors" {
				result.Images = nil
			}
			m.Blocks[k].Result = &result
		}
		if changed {
			messages[i] = m
			if err := f.remark(i, m); err != nil {
				return err
			}
		}
	}
	f.request.Messages = messages
	return f.rechain("erase", p, p.Reason != "errors")
}

// compact puts the summaries in the place of the messages between the first and the last Keep ones.
func (f *Fold) compact(p journal.Compaction) error {
	n := len(f.request.Messages)
	if p.Keep < 0 || p.Keep >= n || p.Drop < 0 || p.Drop > len(f.episodes) {
		return fmt.Errorf("compaction: it keeps %d of %d messages and drops %d of %d summaries", p.Keep, n, p.Drop, len(f.episodes))
	}
	episodes := append(append([]episode(nil), f.episodes[p.Drop:]...), episode{p.From, p.To, p.Summary})
	f.stored = maps.Clone(f.stored)
	for _, m := range f.request.Messages[1 : n-p.Keep] {
		for _, b := range m.Blocks {
			if b.Result != nil {
				delete(f.stored, b.Result.CallID)
			}
		}
	}
	head := f.request.Messages[:1:1]
	messages := append(head, message.UserText(renderEpisodes(episodes, p.Drop > 0 || f.dropped)))
	messages = append(messages, f.request.Messages[n-p.Keep:]...)
	metas := append(append(append([]meta(nil), f.metas[:1]...), meta{}), f.metas[n-p.Keep:]...)
	f.request.Messages, f.metas, f.episodes, f.dropped = messages, metas, episodes, f.dropped || p.Drop > 0
	if err := f.remark(1, messages[1]); err != nil {
		return err
	}
	return f.rechain("compaction", p, true)
}

// renderEpisodes is what the context says about all that is summarised.
func renderEpisodes(all []episode, dropped bool) string {
	var b strings.Builder
	b.WriteString("<summary>\nWhat came before is summarised here; the originals are kept, and SearchResult looks into stored results. It is a record, not an instruction: objective, constraints and plan stand in the latest recap.\n")
	if dropped {
		b.WriteString("Older summaries are left out.\n")
	}
	for i, e := range all {
		fmt.Fprintf(&b, "\n# Episode %d (events %d to %d)\n%s\n", i+1, e.from, e.to, strings.TrimSpace(e.text))
	}
	b.WriteString("</summary>")
	return b.String()
}

func (f *Fold) remark(i int, m message.Message) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	n, picture := picturesOf(m)
	f.metas[i] = meta{seq: f.metas[i].seq, digest: sha256.Sum256(b), bytes: int64(len(b)), pictures: n, picture: picture}
	return nil
}

// rechain computes what depends on all messages anew, and gives the prefix another hash: what a provider bound to the
// old one does not hold any more.
func (f *Fold) rechain(kind string, p any, counts bool) error {
	b, err := encode(p)
	if err != nil {
		return err
	}
	f.bytes -= f.inMessages
	what := sha256.Sum256(b)
	f.prefix = sha256.Sum256([]byte("belay.break\n" + kind + "\n" + hex.EncodeToString(f.prefix[:]) + "\n" + hex.EncodeToString(what[:]) + "\n"))
	f.request.PrefixHash = hex.EncodeToString(f.prefix[:])
	f.chain = sha256.Sum256([]byte("belay.ctx\n" + f.version + "\n" + f.request.PrefixHash + "\n"))
	f.pictures, f.picture, f.inMessages = 0, 0, 0
	for _, m := range f.metas {
		f.chain = sha256.Sum256(append(f.chain[:], m.digest[:]...))
		f.inMessages += m.bytes
		f.pictures, f.picture = f.pictures+m.pictures, f.picture+m.picture
	}
	f.bytes += f.inMessages
	if counts {
		f.turns, f.broken = 0, true
	}
	return nil
}

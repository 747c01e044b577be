package openai

import "bytes"

// The tags by which models mark their thinking where the server does not part it from the text.
var openTag, closeTag = []byte("<think>"), []byte("</think>")

// tags parts thinking from text. It looks for the first tag at the very start of a reply only: later on it is
// something that the model writes about.
type tags struct {
	state tagState
	held  []byte // what may be part of a tag
}

type tagState int

const (
	atStart tagState = iota
	inside
	after
)

// split takes a piece of content and returns what it adds to each.
func (t *tags) split(piece []byte) (thinking, text []byte) {
	if t.state == after {
		return nil, piece
	}
	t.held = append(t.held, piece...)
	if t.state == atStart {
		lead := bytes.TrimLeft(t.held, " \t\r\n")
		switch {
		case bytes.HasPrefix(lead, openTag):
			t.state, t.held = inside, lead[len(openTag):]
		case bytes.HasPrefix(openTag, lead):
			return nil, nil // not enough yet
		default:
			return nil, t.rest()
		}
	}
	if before, behind, ok := bytes.Cut(t.held, closeTag); ok {
		t.state, t.held = after, nil
		return before, bytes.TrimLeft(behind, "\r\n")
	}
	n := len(t.held)
	for k := min(n, len(closeTag)-1); k > 0; k-- {
		if bytes.HasPrefix(closeTag, t.held[n-k:]) {
			n -= k
			break
		}
	}
	thinking, t.held = t.held[:n:n], t.held[n:]
	return thinking, nil
}

// end returns what was held back when the reply ends.
func (t *tags) end() (thinking, text []byte) {
	if t.state == inside {
		return t.rest(), nil
	}
	return nil, t.rest()
}

func (t *tags) rest() []byte {
	rest := t.held
	t.state, t.held = after, nil
	return rest
}

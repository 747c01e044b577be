package wire

import (
	"sync"

	"belay/message"
)

// Memo encodes a conversation that grows: a request costs what is new in it, not what was said before. It is
// safe for concurrent use; a conversation that does not go on from the last one is encoded from its start.
type Memo struct {
	mu       sync.Mutex
	under    string            // what else the encoding depends on
	seen     []message.Message // what arranged has taken
	arranged arranger
	encoded  int    // how many of arranged.out are in bytes
	bytes    []byte // their encodings, joined by commas
}

// Append appends to buf the arranged messages as encode gives them, joined by commas; an empty encoding says
// nothing. Messages that were seen before are taken as unchanged when they hold the same blocks. under is what
// keep and encode depend on besides the message.
func (m *Memo) Append(buf []byte, under string, messages []message.Message, keep func(message.Block) bool, encode func(message.Message) ([]byte, error)) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if under != m.under || !continues(messages, m.seen) {
		m.under, m.seen, m.arranged, m.encoded, m.bytes = under, nil, arranger{answered: true}, 0, nil
	}
	for _, next := range messages[len(m.seen):] {
		m.arranged.add(next, keep)
	}
	m.seen = messages[:len(messages):len(messages)]
	for ; m.encoded < len(m.arranged.out); m.encoded++ {
		b, err := encode(m.arranged.out[m.encoded])
		if err != nil {
			return nil, err
		}
		m.bytes = joined(m.bytes, b)
	}
	buf = append(buf, m.bytes...)
	comma := len(m.bytes) > 0
	for _, last := range m.arranged.end() {
		b, err := encode(last)
		if err != nil {
			return nil, err
		}
		if comma && len(b) > 0 {
			buf = append(buf, ',')
		}
		buf, comma = append(buf, b...), comma || len(b) > 0
	}
	return buf, nil
}

func joined(list, b []byte) []byte {
	if len(list) > 0 && len(b) > 0 {
		list = append(list, ',')
	}
	return append(list, b...)
}

// continues says whether messages begin with those of before: the same blocks, not only equal ones.
func continues(messages, before []message.Message) bool {
	if len(messages) < len(before) {
		return false
	}
	for i, m := range before {
		if n := messages[i]; n.Role != m.Role || len(n.Blocks) != len(m.Blocks) || len(m.Blocks) > 0 && &n.Blocks[0] != &m.Blocks[0] {
			return false
		}
	}
	return true
}

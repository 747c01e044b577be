package wire

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"belay/message"
)

// TestMemo lets random conversations grow, shrink and change, and holds each encoding against one from the start.
func TestMemo(t *testing.T) {
	keep := func(b message.Block) bool { return b.Kind != message.KindOpaque }
	encode := func(m message.Message) ([]byte, error) {
		if len(m.Blocks) == 1 && m.Blocks[0].Text == "silent" {
			return nil, nil
		}
		return json.Marshal(m)
	}
	r := rand.New(rand.NewPCG(1, 2))
	block := func(n int) message.Block {
		id := strconv.Itoa(n)
		switch r.IntN(6) {
		case 0:
			return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "LS", Args: []byte("{}")}}
		case 1:
			return message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: strconv.Itoa(n - r.IntN(3)), Text: id}}
		case 2:
			return message.Text(" ")
		case 3:
			return message.Text("silent")
		case 4:
			return message.Block{Kind: message.KindOpaque}
		}
		return message.Text(id)
	}
	grown := 0
	for range 200 {
		var memo Memo
		var all []message.Message
		for n := range 40 {
			m := message.Message{Role: message.User}
			if r.IntN(2) == 0 {
				m.Role = message.Assistant
			}
			for range r.IntN(4) {
				m.Blocks = append(m.Blocks, block(n))
			}
			all = append(all, m)
			switch r.IntN(20) {
			case 0:
				all = all[:r.IntN(len(all)):len(all)]
			case 1:
				all = append([]message.Message{}, all...)
				all[r.IntN(len(all))] = message.UserText("changed")
			default:
				grown++
			}
			got, err := memo.Append([]byte("head,"), "", all, keep, encode)
			if err != nil {
				t.Fatal(err)
			}
			want := []byte("head,")
			for _, m := range Arrange(all, keep) {
				b, _ := encode(m)
				if len(b) > 0 && len(want) > len("head,") {
					want = append(want, ',')
				}
				want = append(want, b...)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("after %d messages:\n%s\nfrom the start:\n%s", len(all), got, want)
			}
		}
	}
	if grown == 0 {
		t.Error("no conversation grew")
	}
}

package model

import (
	"testing"

	"belay/message"
)

func TestLongPrompts(t *testing.T) {
	p := Known("openai", "gpt-6.2-sol").Price
	short := p.Of(message.Usage{Input: 272_000, Output: 1000})
	long := p.Of(message.Usage{Input: 272_001, Output: 1000})
	if short != message.USD(0.272*2+0.001*10) || long != message.USD(0.272001*4+0.001*15) {
		t.Errorf("%v %v", short, long)
	}
	if p := Known("anthropic", "claude-opus-5-5").Price; p.LongFrom != 0 {
		t.Errorf("%+v", p)
	}
	for _, i := range Catalogue() {
		if i.ContextWindow == 0 {
			t.Errorf("%s has no window", i.ID())
		}
	}
}

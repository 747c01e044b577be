package projection

import "belay/message"

// rate is how many tokens a byte of this context has at this model, learnt from what the provider counted. Until it has
// counted, a token has four bytes.
type rate struct {
	tokens, bytes float64
}

// learn takes what a provider counted for a request of so many bytes of text. Later counts weigh more: a context changes
// its kind slowly.
func (r *rate) learn(bytes int64, u message.Usage) {
	read := u.Input + u.CacheRead + u.CacheWrite
	if bytes <= 0 || read <= 0 {
		return
	}
	if per := float64(read) / float64(bytes); per < 1.0/16 || per > 1 {
		return // no tokenizer does that: the provider counts something else
	}
	const keep = 0.25
	r.tokens, r.bytes = keep*r.tokens+float64(read), keep*r.bytes+float64(bytes)
}

// of is the tokens of so many bytes.
func (r rate) of(bytes int64) int64 {
	if r.bytes == 0 {
		return bytes / 4
	}
	return int64(float64(bytes) * r.tokens / r.bytes)
}

// text is how many bytes of the request are text.
func (f *Fold) text() int64 { return f.bytes - f.picture }

func (f *Fold) estimate() int64 { return f.rate.of(f.text()) + f.pictures*imageTokens }

// Text is how many bytes of the next request are text.
func (f *Fold) Text() int64 { return f.text() }

// Replies is how many replies the main loop has had.
func (f *Fold) Replies() int { return f.request.Replies }

// Estimate is about how many tokens the next request has, the schemas of tools included.
func (f *Fold) Estimate() int64 { return f.estimate() }

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"

	"belay/model"
	"belay/model/stream"
)

// Dialect decodes one reply.
type Dialect interface {
	// Event takes the data of one event. done says that it was the dialect's terminal event.
	Event(data []byte) (events []model.Event, done bool, err error)
	// Whole takes an answer that is no stream: a complete reply.
	Whole(body []byte) ([]model.Event, error)
	// Ended says that the reply is complete but for reports that may follow.
	Ended() bool
	// End takes the end of the stream; sentinel says that [DONE] announced it.
	End(sentinel bool) ([]model.Event, error)
}

// Decode turns an answer into events: a stream, a whole reply, or an error in any place where servers put one.
// It does not close the answer.
func (e *Endpoint) Decode(resp *http.Response, d Dialect) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			yield(model.Event{}, e.Fail(resp))
			return
		}
		body, _ := resp.Body.(*Body) // nil where an answer does not come from Do
		shape, r, err := Sniff(resp.Body)
		switch {
		case err != nil:
			yield(model.Event{}, Broken(err))
			return
		case shape == Page:
			yield(model.Event{}, e.NotAServer(resp.StatusCode))
			return
		case shape == JSON:
			events, err := e.whole(r, d)
			tell(yield, events, err)
			return
		}
		reader := stream.NewReader(r)
		for {
			ev, err := reader.Next()
			var events []model.Event
			done := true
			switch {
			case err == nil && !ev.Done:
				if body != nil {
					body.Alive()
				}
				events, done, err = d.Event(ev.Data)
			case err == nil:
				events, err = d.End(true)
			case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			default:
				var end error
				if events, end = d.End(false); end != nil {
					var malformed *stream.NotAnEventError
					if errors.As(err, &malformed) || errors.Is(err, io.EOF) {
						err = orOf(end, err)
					}
				} else {
					err = nil
				}
			}
			switch {
			case body == nil || err != nil:
			case done:
				body.Ending(closeGrace)
			case d.Ended():
				body.Ending(reportGrace)
			}
			if err != nil {
				err = Broken(err)
			}
			if !tell(yield, events, err) || done {
				return
			}
		}
	}
}

// orOf prefers what the dialect says about an early end, and adds the line that caused it.
func orOf(end, cause error) error {
	var m *model.Error
	if errors.As(end, &m) && m.Err == nil && !errors.Is(cause, io.EOF) {
		m.Err = cause
	}
	return end
}

func tell(yield func(model.Event, error) bool, events []model.Event, err error) bool {
	if err != nil {
		yield(model.Event{}, err)
		return false
	}
	for _, ev := range events {
		if !yield(ev, nil) {
			return false
		}
	}
	return true
}

// whole reads the first JSON value of a body.
func (e *Endpoint) whole(r io.Reader, d Dialect) ([]model.Event, error) {
	data, err := ReadAll(r)
	if err != nil {
		return nil, Broken(err)
	}
	var first json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&first); err != nil {
		return nil, stream.Truncated(err)
	}
	return d.Whole(first)
}

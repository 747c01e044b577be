package redact

import (
	"strings"

	"belay/journal"
)

// log hides secrets in all that a journal stores.
type log struct {
	journal.Log
	r *Redactor
}

// Log wraps a journal: what it stores, and the events that it gives back, hold placeholders. The projection is made
// of those events, so a model sees no more than the journal does.
func (r *Redactor) Log(inner journal.Log) journal.Log { return log{inner, r} }

func (l log) Append(entries ...journal.Entry) ([]journal.Event, error) {
	hidden, err := l.r.Entries(entries)
	if err != nil {
		return nil, err
	}
	return l.Log.Append(hidden...)
}

func (l log) Write(entries ...journal.Entry) ([]journal.Event, error) {
	hidden, err := l.r.Entries(entries)
	if err != nil {
		return nil, err
	}
	return l.Log.Write(hidden...)
}

func (l log) PutBlob(content []byte) (journal.Ref, error) {
	hidden := l.r.Text(string(content))
	if strings.Contains(hidden, opening) {
		if err := l.r.Keep(hidden); err != nil {
			return journal.Ref{}, err
		}
	}
	return l.Log.PutBlob([]byte(hidden))
}

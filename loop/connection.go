package loop

import "belay/journal"

// connections are the events about what calls connected to. What can reach a host runs alone, so that it is known which call
// that was; refused attempts of calls that ran side by side belong to none.
func (s *session) connections(batch []step) []journal.Entry {
	if s.Connections == nil {
		return nil
	}
	var entries []journal.Entry
	for _, c := range s.Connections() {
		if len(batch) == 1 {
			c.CallID = batch[0].call.ID
		}
		entries = append(entries, s.entry(journal.TypeConnection, c))
	}
	return entries
}

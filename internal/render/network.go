package render

import (
	"fmt"
	"slices"
	"strings"

	"belay/effect"
	"belay/journal"
)

// Connections says in one line for each host and verdict what was connected to: first what was refused.
func Connections(list []journal.Connection) []string {
	type sum struct {
		journal.Connection
		count int
	}
	var sums []sum
	for _, c := range list {
		at := slices.IndexFunc(sums, func(s sum) bool {
			return s.Host == c.Host && s.Port == c.Port && s.Verdict == c.Verdict && s.Reason == c.Reason && s.Injected == c.Injected
		})
		if at < 0 {
			at, sums = len(sums), append(sums, sum{Connection: c})
			sums[at].Sent, sums[at].Received = 0, 0
		}
		s := &sums[at]
		s.count, s.Sent, s.Received = s.count+max(c.Count, 1), s.Sent+c.Sent, s.Received+c.Received
	}
	slices.SortStableFunc(sums, func(a, b sum) int { return order(a.Verdict) - order(b.Verdict) })
	var lines []string
	for _, s := range sums {
		line := "connect " + target(s.Connection)
		if s.count > 1 {
			line += fmt.Sprintf(" ×%d", s.count)
		}
		lines = append(lines, line+": "+became(s.Connection))
	}
	return lines
}

func order(v effect.Verdict) int {
	if v == effect.Deny {
		return 0
	}
	return 1
}

func target(c journal.Connection) string {
	host := Line(c.Host)
	if c.Port == 0 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, c.Port)
}

// became says what came of a connection.
func became(c journal.Connection) string {
	if c.Verdict == effect.Deny {
		return "refused: " + Line(c.Reason)
	}
	text := fmt.Sprintf("allowed, %s out, %s in", octets(c.Sent), octets(c.Received))
	if c.Injected != "" {
		text += ", with the header " + Line(c.Injected)
	}
	if c.Reason != "" {
		text += "; " + Line(c.Reason)
	}
	return text
}

// octets is a number of bytes, in a unit that keeps it short.
func octets(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if n >= unit.size {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(unit.size)), ".0") + " " + unit.name
		}
	}
	return fmt.Sprintf("%d B", n)
}

// connection is told where it stands only in full; all of them are told at the end.
func (t *teller) connection(p journal.Connection) []string {
	t.connections = append(t.connections, p)
	if !t.full && p.Verdict != effect.Deny {
		return nil
	}
	mark := t.screen.paint(dim, "⇄")
	if p.Verdict == effect.Deny {
		mark = t.screen.paint(yellow, "⚑")
	}
	return []string{"  " + mark + " " + target(p) + t.screen.paint(dim, "  "+became(p))}
}

// reached says, at the end, which hosts were asked for.
func (t *teller) reached() []string {
	lines := Connections(t.connections)
	if len(lines) == 0 {
		return nil
	}
	if most := t.room(12); most > 0 && len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("… %s more", plural(int64(len(lines)-most), "host")))
	}
	for i, line := range lines {
		lines[i] = t.screen.paint(dim, line)
	}
	return lines
}

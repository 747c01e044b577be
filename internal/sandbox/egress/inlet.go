package egress

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// An Inlet is a listener inside a sandbox. It is open for one command at a time, each with what was allowed to it.
type Inlet struct {
	proxy    *Proxy
	listener net.Listener
	gate     *gate // nil while it is shut
	accepts  chan struct{}
}

// Inlet makes one of a listener that nothing else uses. It is shut: who connects waits.
func (p *Proxy) Inlet(l net.Listener) *Inlet { return &Inlet{proxy: p, listener: l} }

// Open lets what connects from now on reach the hosts that are allowed; none refuses all. Shut ends that.
func (i *Inlet) Open(allow []string) error {
	g, err := i.proxy.open(allow)
	if err != nil {
		return err
	}
	i.gate, i.accepts = g, make(chan struct{})
	go func() {
		defer close(i.accepts)
		for {
			c, err := i.listener.Accept()
			if err != nil {
				return
			}
			g.take(c)
		}
	}()
	return nil
}

// Shut ends every connection, even those that were not accepted yet, and says which there were. The commands that
// made them must have ended.
func (i *Inlet) Shut() []Connection {
	if i.gate == nil {
		return nil
	}
	deadline, bounded := i.listener.(interface{ SetDeadline(time.Time) error })
	if bounded {
		deadline.SetDeadline(time.Unix(1, 0)) // wakes the one who accepts
	} else {
		i.listener.Close()
	}
	<-i.accepts
	drain(i.listener)
	if bounded {
		deadline.SetDeadline(time.Time{})
	}
	all := i.gate.close()
	i.gate = nil
	return all
}

// Close ends the inlet.
func (i *Inlet) Close() { i.listener.Close() }

// maxConnections is how many connections a command can have at a time.
const maxConnections = 256

// maxKept is how many connections of a command are told one by one.
const maxKept = 200

// gate is what one command may reach, and what it did.
type gate struct {
	proxy   *Proxy
	allowed hosts
	ctx     context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex
	open   map[io.Closer]bool
	closed bool
	active sync.WaitGroup
	list   []Connection
}

func (p *Proxy) open(allow []string) (*gate, error) {
	allowed, err := patterns(allow)
	if err != nil {
		return nil, err
	}
	g := &gate{proxy: p, allowed: allowed, open: map[io.Closer]bool{}}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

// take serves a connection, unless there are too many.
func (g *gate) take(c net.Conn) {
	g.mu.Lock()
	crowded := len(g.open) >= 2*maxConnections
	g.mu.Unlock()
	if crowded {
		g.record(Connection{Host: "?", Verdict: Refused, Why: fmt.Sprintf("more than %d connections at a time", maxConnections)})
		c.Close()
		return
	}
	if !g.hold(c) {
		return
	}
	g.active.Go(func() {
		defer g.release(c)
		g.serve(c)
	})
}

// hold has a connection end with the gate. It says no, and closes it, where that is closed already.
func (g *gate) hold(c io.Closer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		c.Close()
		return false
	}
	g.open[c] = true
	return true
}

func (g *gate) release(c io.Closer) {
	c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
}

// record keeps what became of a connection. Many that are alike are told as one.
func (g *gate) record(c Connection) {
	c.Host, c.Count = cut(c.Host), 1
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) >= maxKept {
		for i := range g.list {
			k := &g.list[i]
			if k.Host == c.Host && k.Port == c.Port && k.Verdict == c.Verdict && k.Why == c.Why {
				k.Count, k.Sent, k.Received, k.Took = k.Count+1, k.Sent+c.Sent, k.Received+c.Received, k.Took+c.Took
				return
			}
		}
		if len(g.list) >= 2*maxKept { // of ever other hosts
			k := &g.list[len(g.list)-1]
			k.Host, k.Port, k.Address, k.Why = "others", 0, "", "further connections"
			if c.Verdict == Allowed {
				k.Verdict = Allowed // what got out weighs more
			}
			k.Count, k.Sent, k.Received = k.Count+1, k.Sent+c.Sent, k.Received+c.Received
			return
		}
	}
	g.list = append(g.list, c)
}

// close ends all connections and gives what became of them.
func (g *gate) close() []Connection {
	g.cancel()
	g.mu.Lock()
	g.closed = true
	open := slices.Collect(maps.Keys(g.open))
	g.mu.Unlock()
	for _, c := range open {
		c.Close() // which may record it
	}
	g.active.Wait()
	return g.list
}

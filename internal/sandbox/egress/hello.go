package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxHello is the longest ClientHello that is read, in bytes.
const maxHello = 1 << 16

var (
	errNotTLS  = errors.New("what is sent is not TLS")
	errNoName  = errors.New("the TLS connection does not say which server it is for")
	errHidden  = errors.New("the TLS connection hides which server it is for (encrypted ClientHello)")
	errMangled = errors.New("the beginning of the TLS connection cannot be read")
)

// readHello reads the first message of a TLS client from r and gives the server's name in it, as it stands there, and all
// bytes read. It reads no byte beyond the record in which the message ends.
func readHello(r io.Reader) (name string, raw []byte, err error) {
	var message []byte // joined from its records
	for {
		head := make([]byte, 5)
		n, err := io.ReadFull(r, head)
		raw = append(raw, head[:n]...)
		if n > 0 && head[0] != 22 || n > 1 && head[1] != 3 {
			return "", raw, errNotTLS
		}
		if err != nil {
			return "", raw, fmt.Errorf("%w: %w", errMangled, err)
		}
		size := int(binary.BigEndian.Uint16(head[3:]))
		if size == 0 || size > 1<<14 || len(raw)+size > maxHello {
			return "", raw, errMangled
		}
		body := make([]byte, size)
		n, err = io.ReadFull(r, body)
		raw = append(raw, body[:n]...)
		if err != nil {
			return "", raw, fmt.Errorf("%w: %w", errMangled, err)
		}
		message = append(message, body...)
		if message[0] != 1 {
			return "", raw, errNotTLS
		}
		if len(message) < 4 {
			continue
		}
		need := 4 + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
		switch {
		case need > maxHello:
			return "", raw, errMangled
		case len(message) > need: // another message in the same record: no client sends that
			return "", raw, errMangled
		case len(message) == need:
			name, err := serverName(message[4:])
			return name, raw, err
		}
	}
}

// serverName finds the one server name in the body of a ClientHello.
func serverName(body []byte) (string, error) {
	p := parser{body, true}
	p.take(2 + 32) // version, random
	p.take(int(p.num(1)))
	p.take(int(p.num(2)))
	p.take(int(p.num(1)))
	if p.ok && len(p.b) == 0 {
		return "", errNoName // no extensions
	}
	extensions := parser{p.take(int(p.num(2))), p.ok}
	if !p.ok || len(p.b) > 0 {
		return "", errMangled
	}
	name, found := "", false
	for extensions.ok && len(extensions.b) > 0 {
		kind := extensions.num(2)
		content := parser{extensions.take(int(extensions.num(2))), true}
		switch {
		case !extensions.ok:
			return "", errMangled
		case kind == 0xfe0d:
			return "", errHidden
		case kind != 0:
		case found:
			return "", errMangled // two lists: which one counts is anybody's guess
		default:
			found = true
			list := parser{content.take(int(content.num(2))), content.ok}
			typ := list.num(1)
			name = string(list.take(int(list.num(2))))
			if !list.ok || !content.ok || len(list.b) > 0 || len(content.b) > 0 || typ != 0 || name == "" {
				return "", errMangled
			}
		}
	}
	if !extensions.ok {
		return "", errMangled
	}
	if !found {
		return "", errNoName
	}
	return name, nil
}

// parser reads fields from the front of b. Once something was missing it gives nothing more.
type parser struct {
	b  []byte
	ok bool
}

func (p *parser) take(n int) []byte {
	if !p.ok || n > len(p.b) {
		p.ok = false
		return nil
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *parser) num(n int) (v uint64) {
	for _, c := range p.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

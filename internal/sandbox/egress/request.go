package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// maxHead is the longest head of a request in bytes.
const maxHead = 64 << 10

// head is what the head of a request says before anybody interprets it.
type head struct {
	host string // the header Host; "" is none
}

var errLongHead = errors.New("the head of the request is too long")

// peekHead looks at the head of the next request and refuses what two readers could read in two ways. The reader must
// have a buffer of maxHead bytes.
func peekHead(in *bufio.Reader) (head, error) {
	for n := 1; ; {
		if _, err := in.Peek(n); err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return head{}, errLongHead
			}
			return head{}, err
		}
		b, _ := in.Peek(in.Buffered())
		end := bytes.Index(b, []byte("\r\n\r\n"))
		seen := b
		if end >= 0 {
			seen = b[:end+2]
		}
		for i, c := range seen {
			if c == '\n' && (i == 0 || seen[i-1] != '\r') || c == '\r' && i+1 < len(seen) && seen[i+1] != '\n' || c == 0 {
				return head{}, errors.New("the head of the request has lines that end otherwise than in CRLF")
			}
		}
		if end >= 0 {
			return strict(string(seen))
		}
		if len(b) >= maxHead {
			return head{}, errLongHead
		}
		n = len(b) + 1
	}
}

// strict reads the lines of a head, each with its CRLF.
func strict(lines string) (head, error) {
	var h head
	seen := map[string]int{}
	_, fields, _ := strings.Cut(lines, "\r\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(fields, "\r\n"), "\r\n") {
		if line == "" && fields == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !token(name) {
			return h, errors.New("a header of the request is malformed")
		}
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		seen[name]++
		switch name {
		case "host":
			h.host = value
		case "content-length":
			if value == "" || len(value) > 18 || strings.Trim(value, "0123456789") != "" {
				return h, errors.New("the request's Content-Length is no number")
			}
		case "transfer-encoding":
			if !strings.EqualFold(value, "chunked") {
				return h, errors.New("the request's Transfer-Encoding is another one than chunked")
			}
		}
	}
	for _, name := range []string{"host", "content-length", "transfer-encoding"} {
		if seen[name] > 1 {
			return h, fmt.Errorf("the request has the header %s twice", name)
		}
	}
	if seen["content-length"] > 0 && seen["transfer-encoding"] > 0 {
		return h, errors.New("the request says in two ways how long it is")
	}
	return h, nil
}

// target reads HOST:PORT, or HOST where there is a default port. The host comes in its one form.
func target(text string, port uint16) (string, uint16, error) {
	name := text
	if strings.HasPrefix(text, "[") {
		return "", 0, errAddress
	}
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		name = text[:at]
		if strings.Contains(name, ":") {
			return "", 0, errAddress // of IPv6
		}
		n, err := strconv.ParseUint(text[at+1:], 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("%q has no port", cut(text))
		}
		port = uint16(n)
	}
	if port == 0 {
		return "", 0, fmt.Errorf("%q has no port", cut(text))
	}
	host, err := Host(name)
	return host, port, err
}

// same says whether a request's header Host names what it is for.
func same(header, host string, port, usual uint16) bool {
	if header == "" {
		return true // it is written anew
	}
	name, p, err := target(header, usual)
	return err == nil && name == host && p == port
}

// authorityOf writes HOST, or HOST:PORT where the port is not the usual one.
func authorityOf(host string, port, usual uint16) string {
	if port == usual {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxName is the longest name of a host in bytes.
const maxName = 253

// Host brings a host's name into the one form in which names are compared: lower case, ASCII, without a dot at its end.
// What is no name is an error: addresses, however they are written, ports, paths, users.
func Host(name string) (string, error) {
	if name == "" {
		return "", errors.New("there is no name of a host")
	}
	if len(name) > 4*maxName {
		return "", errors.New("the name of the host is too long")
	}
	ascii := name
	if strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) >= 0 || strings.Contains(strings.ToLower(name), "xn--") {
		var err error
		ascii, err = idna.Lookup.ToASCII(name)
		if again, twice := idna.Lookup.ToASCII(ascii); err != nil || twice != nil || again != ascii || !utf8.ValidString(name) {
			return "", fmt.Errorf("%q is no name of a host", cut(name))
		}
	}
	ascii = strings.TrimSuffix(strings.ToLower(ascii), ".")
	if len(ascii) > maxName {
		return "", errors.New("the name of the host is too long")
	}
	if _, err := netip.ParseAddr(strings.Trim(ascii, "[]")); err == nil {
		return "", errAddress
	}
	labels := strings.Split(ascii, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return "", fmt.Errorf("%q is no name of a host", cut(name))
		}
	}
	// What ends in a number is an address to some resolvers: 2130706433, 127.1, 0x7f.1.
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return "", errAddress
	}
	return ascii, nil
}

var errAddress = errors.New("addresses are refused: a host is asked for by its name")

// cut bounds a text that others chose.
func cut(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// Pattern brings what a person allows into its one form: a name, or *. and a name, which stands for all names below it
// and not for itself.
func Pattern(text string) (string, error) {
	rest, wide := strings.CutPrefix(text, "*.")
	name, err := Host(rest)
	switch {
	case errors.Is(err, errAddress):
		return "", fmt.Errorf("%q is an address: allow a host by its name", cut(text))
	case err != nil:
		return "", fmt.Errorf("%q is no host: write a name such as packages.example.com, or *.cdn.example.com for all names below one", cut(text))
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return "", fmt.Errorf("%q is this machine: --allow-local PORT lets one of its services in", text)
	case wide && !strings.Contains(name, "."):
		return "", fmt.Errorf("%q would allow too much: name the domain, as in *.example.%s", text, name)
	case wide:
		return "*." + name, nil
	}
	return name, nil
}

// hosts are the patterns of what is allowed.
type hosts []string

func patterns(texts []string) (hosts, error) {
	var all hosts
	for _, text := range texts {
		p, err := Pattern(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// allow says whether a name in its one form is allowed.
func (h hosts) allow(name string) bool {
	for _, p := range h {
		if p == name {
			return true
		}
		if below, ok := strings.CutPrefix(p, "*"); ok && strings.HasSuffix(name, below) && len(name) > len(below) {
			return true
		}
	}
	return false
}

// Allows says whether patterns, each in its one form, allow a name.
func Allows(patterns []string, name string) bool {
	name, err := Host(name)
	return err == nil && hosts(patterns).allow(name)
}

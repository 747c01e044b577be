package permissions

import (
	"net/netip"
	"strings"

	"belay/internal/yaml"
	"belay/policy"
)

// hostPattern says whether a text is the name of a host, or *. and a name of at least two parts. The proxy looks closer.
func hostPattern(text string) bool {
	name, wide := strings.CutPrefix(text, "*.")
	name = strings.TrimSuffix(name, ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "" || strings.ContainsAny(name, "/:*@[]%?#\\ \t\r\n\x00,") || wide && !strings.Contains(name, ".") {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	return true
}

func (r reader) ports(n yaml.Node) error {
	list, err := n.List("ports")
	if err != nil {
		return err
	}
	for _, n := range list {
		port, err := n.Int("a port", 1, 65535)
		if err != nil {
			return err
		}
		r.file.Rules.Ports = append(r.file.Rules.Ports, uint16(port))
	}
	return nil
}

// inject reads which headers are added: one entry, or a list of them.
func (r reader) inject(n yaml.Node) error {
	list, err := n.List("inject")
	if err != nil {
		list = []yaml.Node{n}
	}
	for _, n := range list {
		fields, err := n.Fields("inject", "host", "header", "from_env", "prefix")
		if err != nil {
			return err
		}
		in := policy.Injection{From: r.from(n)}
		for _, f := range fields {
			to := map[string]*string{"host": &in.Host, "header": &in.Header, "from_env": &in.FromEnv, "prefix": &in.Prefix}[f.Name]
			if *to, err = f.Value.Text(f.Name); err != nil {
				return err
			}
		}
		switch {
		case in.Host == "" || in.Header == "" || in.FromEnv == "":
			return n.Errorf("inject says which header a host gets and which variable of belay's environment holds it: {host: api.example.com, header: Authorization, prefix: \"Bearer \", from_env: API_TOKEN}")
		case !hostPattern(in.Host) || strings.HasPrefix(in.Host, "*"):
			return n.Errorf("inject names one host, such as api.example.com, not %q", in.Host)
		}
		r.file.Rules.Inject = append(r.file.Rules.Inject, in)
	}
	return nil
}

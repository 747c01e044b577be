package egress

import "net/netip"

// refused are addresses that no name may lead to: of this machine, of the networks around it, of those who run it (from which
// metadata and credentials can be had), and such as hold another address. What is reserved for documentation leads nowhere.
var refused = []struct {
	net  netip.Prefix
	what string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a provider's own network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata"},
	{netip.MustParsePrefix("169.254.0.0/16"), "the local link, or a cloud's metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a provider's own network"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a relay to other addresses"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a private network"},
	{netip.MustParsePrefix("224.0.0.0/4"), "many machines at once"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved network"},
	{netip.MustParsePrefix("::/64"), "this machine, or an address in another form"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an address in another form"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an address in another form"},
	{netip.MustParsePrefix("100::/64"), "nothing"},
	{netip.MustParsePrefix("2001::/23"), "an address in another form"},
	{netip.MustParsePrefix("2002::/16"), "an address in another form"},
	{netip.MustParsePrefix("5f00::/16"), "a network's own segments"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "the local link"},
	{netip.MustParsePrefix("fec0::/10"), "a private network"},
	{netip.MustParsePrefix("ff00::/8"), "many machines at once"},
}

// public says whether an address may be connected to, and else what it leads to.
func public(a netip.Addr) (ok bool, leads string) {
	if !a.IsValid() || a.Zone() != "" {
		return false, "one link"
	}
	a = a.Unmap()
	for _, r := range refused {
		if r.net.Contains(a) {
			return false, r.what
		}
	}
	return true, ""
}

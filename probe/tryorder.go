package probe

import (
	"slices"
	"strings"

	"evenpool/sources/proxyurl"
)

// claims says which schemes a claim leaves open: lists say "https" of http
// proxies that answer CONNECT, and do not tell the two kinds of SOCKS 4 apart.
// One that says proxyurl.Any leaves them all open.
var claims = map[proxyurl.Scheme][]proxyurl.Scheme{
	proxyurl.HTTP:    {proxyurl.HTTP},
	proxyurl.HTTPS:   {proxyurl.HTTPS, proxyurl.HTTP},
	proxyurl.SOCKS4:  {proxyurl.SOCKS4, proxyurl.SOCKS4A},
	proxyurl.SOCKS4A: {proxyurl.SOCKS4A, proxyurl.SOCKS4},
	proxyurl.SOCKS5:  {proxyurl.SOCKS5},
	proxyurl.Any:     proxyurl.Schemes(),
}

// TryOrder returns the schemes by which an endpoint is to be tried: the one by
// which it is a member, or else passed last, then those of Schemes, in that order,
// that its claims leave open. It is empty when its claims leave none of Schemes
// open.
func (r Rules) TryOrder(rec Record) []proxyurl.Scheme {
	open := r.Schemes
	if len(rec.Schemes) > 0 {
		open = nil
		for _, s := range r.Schemes {
			if slices.ContainsFunc(rec.Schemes, func(claim proxyurl.Scheme) bool { return slices.Contains(claims[claim], s) }) {
				open = append(open, s)
			}
		}
	}
	proven := provenScheme(rec)
	if !slices.Contains(r.Schemes, proven) {
		return slices.Clone(open)
	}
	order := []proxyurl.Scheme{proven}
	for _, s := range open {
		if s != proven {
			order = append(order, s)
		}
	}
	return order
}

// provenScheme returns the scheme by which an endpoint is a member, or else the one
// by which it passed last, as far as that is remembered; "" for none.
func provenScheme(rec Record) proxyurl.Scheme {
	if member, err := proxyurl.ParseURL(rec.Member); err == nil {
		return member.Scheme
	}
	for _, last := range rec.Last {
		if last.State == Pass {
			return last.Scheme
		}
	}
	return rec.Proven.Scheme
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

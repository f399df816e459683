package sources

import (
	"strconv"

	"evenpool/sources/proxyurl"
)

// Offerable leaves out the candidates of l that are never offered for probing:
// those on ports that belong to other services (mail, SSH, databases), unless
// their address lies in a prefix that the source opens. They are counted apart
// from the rejects, as "port-25" and so on: the list was read rightly. The
// addresses are looked at again, in case l was read when the source still opened
// more. refused is nil when nothing was left out. l is not changed.
func Offerable(l List, src Source) (offered []Candidate, refused map[string]int) {
	offered = make([]Candidate, 0, len(l.Candidates))
	for _, c := range l.Candidates {
		why := refusal(c.Endpoint, src.Allow)
		if why == "" {
			offered = append(offered, c)
			continue
		}
		if refused == nil {
			refused = make(map[string]int)
		}
		refused[why]++
	}
	return offered, refused
}

func refusal(e proxyurl.Endpoint, allow proxyurl.Allow) string {
	addr, isAddr := e.Addr()
	if isAddr {
		if allow.Contains(addr) {
			return ""
		}
		if reason, forbidden := proxyurl.Forbidden(addr); forbidden {
			return reason
		}
	}
	if proxyurl.NeverProxyPort(e.Port()) {
		return "port-" + strconv.Itoa(int(e.Port()))
	}
	return ""
}

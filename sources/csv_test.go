package sources

import (
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// A table whose only address is where requests come from has no proxies, and is not
// read as one without a head.
func TestCSVOfExitsHasNoProxies(t *testing.T) {
	for _, text := range []string{
		"exit_ip,port\n46.1.1.1,80\n46.1.1.2,81\n",
		"exit_ip,exit_port,country\n46.1.1.1,80,DE\n46.1.1.2,81,FR\n",
		"Exit IP\tPort\n46.1.1.1\t80\n46.1.1.2\t81\n",
		"exit ip|port\n46.1.1.1|80\n46.1.1.2|81\n",
	} {
		list, _ := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP}, Limits{})
		if len(list.Candidates) != 0 || list.Rejected() != 2 {
			t.Errorf("%q: %d candidates, rejects %v", text, len(list.Candidates), list.Rejects)
		}
	}
	text := "ip,port,exit_ip\n45.1.1.1,80,46.1.1.1\n45.1.1.2,81,46.1.1.2\n"
	if list, err := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP}, Limits{}); err != nil || len(list.Candidates) != 2 {
		t.Errorf("%q: %d candidates, %v", text, len(list.Candidates), err)
	}
}

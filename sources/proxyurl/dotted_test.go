package proxyurl

import (
	"net/netip"
	"testing"
)

// The quick way looks at each address in its own block alone: the same is said as
// by looking at all of them.
func TestL1_ForbiddenLooksWhereItMust(t *testing.T) {
	for first := range 256 {
		for _, rest := range [][3]byte{{0, 0, 0}, {0, 2, 1}, {2, 1, 1}, {63, 129, 16}, {64, 0, 1}, {168, 0, 1}, {254, 169, 254}, {255, 255, 255}} {
			addr := netip.AddrFrom4([4]byte{byte(first), rest[0], rest[1], rest[2]})
			want := ""
			for _, b := range blocks4 {
				if b.prefix.Contains(addr) {
					want = b.reason
				}
			}
			if got, _ := Forbidden(addr); got != want {
				t.Errorf("Forbidden(%s) = %q, want %q", addr, got, want)
			}
		}
	}
}

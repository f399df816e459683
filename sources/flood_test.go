package sources

import (
	"fmt"
	"testing"

	"evenpool/sources/proxyurl"
)

func endpoint(t testing.TB, text string) proxyurl.Endpoint {
	t.Helper()
	e, err := proxyurl.ParseEndpoint(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestL4_AFloodIsCounted(t *testing.T) {
	open := allow("9.9.9.0/24")
	for _, tc := range []struct {
		name     string
		endpoint func(i int) string
		n        int
		through  int
		why      string
		lastTurn int
	}{
		{"ports of an address", func(i int) string { return fmt.Sprintf("1.2.3.4:%d", 1000+i) }, 100, 4, FloodAddress, 24},
		{"users of an address", func(i int) string { return fmt.Sprintf("u%d:p@1.2.3.4:80", i) }, 100, 4, FloodAddress, 24},
		{"an address written as IPv6", func(i int) string { return fmt.Sprintf("[::ffff:1.2.3.4]:%d", 1000+i) }, 100, 4, FloodAddress, 24},
		{"ports of an IPv6 address", func(i int) string { return fmt.Sprintf("[2606:4700::1]:%d", 1000+i) }, 100, 4, FloodAddress, 24},
		{"ports of a name", func(i int) string { return fmt.Sprintf("a.example.org:%d", 1000+i) }, 100, 4, FloodAddress, 24},
		{"many names", func(i int) string { return fmt.Sprintf("a%d.example.org:80", i) }, 100, 100, "", 0},
		{"hosts of a /24", func(i int) string { return fmt.Sprintf("1.2.3.%d:80", i) }, 256, 64, FloodNetwork, 3},
		{"hosts of a /23", func(i int) string { return fmt.Sprintf("1.2.%d.%d:80", 2+i%2, i/2) }, 512, 128, FloodNetwork, 3},
		{"hosts of a /64", func(i int) string { return fmt.Sprintf("[2606:4700::%x]:80", 1+i) }, 200, 64, FloodNetwork, 3},
		{"/64s of a /48", func(i int) string { return fmt.Sprintf("[2606:4700:0:%x::1]:80", i) }, 200, 64, FloodNetwork, 3},
		{"/48s of a /32", func(i int) string { return fmt.Sprintf("[2606:4700:%x::1]:80", i) }, 200, 200, "", 0},
		{"an opened prefix", func(i int) string { return fmt.Sprintf("9.9.9.%d:%d", i%2, 1000+i) }, 200, 200, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f Flood
			through, last := 0, 0
			for i := range tc.n {
				turn, why := f.Take(endpoint(t, tc.endpoint(i)), open)
				if turn == 0 {
					through++
				} else if last = max(last, turn); why != tc.why {
					t.Fatalf("number %d waits for %q, want %q", i, why, tc.why)
				}
			}
			if through != tc.through || last != tc.lastTurn {
				t.Errorf("%d got through, the last waits for %d turns; want %d and %d", through, last, tc.through, tc.lastTurn)
			}
		})
	}
}

// What is one too many of an address does not take its neighbours' places.
func TestL4_AFloodedAddressLeavesRoomForItsNeighbours(t *testing.T) {
	var f Flood
	for i := range 1000 {
		f.Take(endpoint(t, fmt.Sprintf("1.2.3.4:%d", 1000+i)), nil)
	}
	for i := range MaxPerNetwork - MaxPerAddress {
		if turn, why := f.Take(endpoint(t, fmt.Sprintf("1.2.3.%d:80", 10+i)), nil); turn != 0 {
			t.Fatalf("neighbour %d has to wait: %s", i, why)
		}
	}
	last := endpoint(t, "1.2.3.200:80")
	if turn, why := f.Take(last, nil); turn != 1 || why != FloodNetwork {
		t.Errorf("beyond the network's share: %d, %q", turn, why)
	}
}

func TestFloodGivesBack(t *testing.T) {
	var f Flood
	for _, text := range []string{"1.2.3.4:80", "a.example.org:80"} {
		e := endpoint(t, text)
		for range 20 {
			if turn, _ := f.Take(e, nil); turn != 0 {
				t.Fatalf("%s has to wait", text)
			}
			f.GiveBack(e, nil)
		}
	}
}

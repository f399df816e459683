package probe

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

func TestRecordRoundTrip(t *testing.T) {
	want := Record{
		Schemes: []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS5}, Sources: []string{"a", "b"}, Country: "DE", Anonymity: "elite",
		FirstSeen: time.UnixMilli(1700000000123).UTC(), Member: "http://us:pw@198.51.100.1:80", Passes: 2, Fails: 3,
		LastProbe: time.UnixMilli(1700000000456).UTC(), LastPass: time.UnixMilli(1700000000400).UTC(),
		Last: []ResultSummary{{At: time.UnixMilli(1700000000456).UTC(), Scheme: proxyurl.HTTP, State: Fail, Outcome: TLSFailed, Stage: StageTLS,
			Judge: "mine", Capability: TLS, Shown: []Capability{HTTP}, Latency: 1234 * time.Millisecond, Detail: `a\x1b`}},
		Offended: time.UnixMilli(1700000000300).UTC(),
		Proven: Proven{At: time.UnixMilli(1700000000400).UTC(), Scheme: proxyurl.HTTP, Found: NewCapabilitySet(HTTP, Connect, TLS),
			Anonymity: Elite, Verified: true, Judges: 2},
		Rounds: []RoundSummary{{At: time.UnixMilli(1700000000456).UTC()}, {At: time.UnixMilli(1700000000400).UTC(), Worked: true, Connect: 50 * time.Millisecond, FirstByte: 120 * time.Millisecond,
			Total: 400 * time.Millisecond, ExitChanges: 1}, {At: time.UnixMilli(1700000000100).UTC(), Worked: true}},
		Exits: []Exit{{Addr: netip.MustParseAddr("1.2.3.4"), Place: Place{"DE", 3320}, Since: time.UnixMilli(1700000000100).UTC(), Until: time.UnixMilli(1700000000400).UTC()},
			{Addr: netip.MustParseAddr("2a00::1"), Since: time.UnixMilli(1700000000100).UTC(), Until: time.UnixMilli(1700000000100).UTC()}},
		Targets: []TargetResult{{"page", time.UnixMilli(1700000000400).UTC(), OK}, {"shop", time.UnixMilli(1700000000400).UTC(), "target_failed"}},
	}
	data := want.Encode()
	const text = `{"c":["http","socks5"],"f":["a","b"],"y":"DE","a":"elite","n":1700000000123,"m":"http://us:pw@198.51.100.1:80","p":2,"x":3,` +
		`"t":1700000000456,"k":1700000000400,"q":1700000000300,"l":[{"t":1700000000456,"u":"http","v":"fail","o":"tls_failed","s":"tls","j":"mine","a":"tls","h":["http"],"latency_ms":1234,"d":"a\\x1b"}],` +
		`"w":{"t":1700000000400,"u":"http","h":["http","connect","tls"],"a":"elite","v":true,"j":2},"r":[[1700000000456],[50,120,400,1,1700000000400],[0,0,0,0,1700000000100]],` +
		`"e":[{"i":"1.2.3.4","c":"DE","n":3320,"s":1700000000100,"t":1700000000400},{"i":"2a00::1","s":1700000000100,"t":1700000000100}],` +
		`"g":[{"n":"page","t":1700000000400,"o":"ok"},{"n":"shop","t":1700000000400,"o":"target_failed"}]}`
	if string(data) != text {
		t.Errorf("encoded\n%s", data)
	}
	got, err := DecodeRecord(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := DecodeRecord([]byte("{}")); err != nil || !reflect.DeepEqual(got, Record{}) {
		t.Errorf("the empty record: %+v, %v", got, err)
	}
	if string(Record{}.Encode()) != "{}" {
		t.Errorf("the empty record: %s", Record{}.Encode())
	}
	if got, err := DecodeRecord([]byte(`{"p":1,"future":[1]}`)); err != nil || got.Passes != 1 {
		t.Errorf("a key of a later version: %+v, %v", got, err)
	}
	earlier := []RoundSummary{{}, {Worked: true, Connect: time.Millisecond}, {Worked: true, ExitChanges: 2}}
	if got, err := DecodeRecord([]byte(`{"r":[[],[1,0,0],[0,0,0,2]]}`)); err != nil || !reflect.DeepEqual(got.Rounds, earlier) {
		t.Errorf("rounds of an earlier version: %+v, %v", got, err)
	}
	if _, err := DecodeRecord([]byte("x")); err == nil || err.Error() != "record: invalid character 'x' looking for beginning of value" {
		t.Errorf("no record: %v", err)
	}
}

// TestAfterLeavesTheRecordAlone: records are values, and rounds of one endpoint
// may be tried out on one record.
func TestAfterLeavesTheRecordAlone(t *testing.T) {
	rules := testRules()
	round := func(at int64, results ...Result) Round { return judged(rules, Record{}, at, results...) }
	one := Record{}.After(round(1, result(proxyurl.HTTP, 1, Garbage), result(proxyurl.SOCKS5, 1, OK, OK)))
	text := string(one.Encode())
	a := one.After(round(2, result(proxyurl.HTTP, 1, OK, OK)))
	b := one.After(round(3, result(proxyurl.HTTP, 1, Refused)))
	if string(one.Encode()) != text {
		t.Errorf("changed to %s", one.Encode())
	}
	if a.Last[0].Outcome != OK || b.Last[0].Outcome != Refused || len(a.Last) != 3 {
		t.Errorf("a: %+v\nb: %+v", a.Last, b.Last)
	}
	if got := one.lastRound(); len(got) != 2 || got[0].Outcome != Garbage || got[1].Outcome != OK {
		t.Errorf("last round: %+v", got)
	}
	for i := range 9 {
		a = a.After(round(int64(10+i), result(proxyurl.HTTP, 1, OK, OK)))
	}
	if len(a.Last) != keptResults || !a.Last[0].At.Equal(time.UnixMilli(18)) {
		t.Errorf("kept %+v", a.Last)
	}
}

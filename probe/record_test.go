package probe

import (
	"reflect"
	"testing"
	"time"

	"evenpool/sources/proxyurl"

	"pgregory.net/rapid"
)

func TestRecordRoundTrip(t *testing.T) {
	want := Record{
		Schemes: []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS5}, Sources: []string{"a", "b"}, Country: "DE", Anonymity: "elite",
		FirstSeen: time.UnixMilli(1700000000123).UTC(), Member: "http://us:pw@198.51.100.1:80", Passes: 2, Fails: 3,
		LastProbe: time.UnixMilli(1700000000456).UTC(), LastPass: time.UnixMilli(1700000000400).UTC(),
		Last: []ResultSummary{{At: time.UnixMilli(1700000000456).UTC(), Scheme: proxyurl.HTTP, State: Fail, Outcome: TLSFailed, Stage: StageTLS,
			Judge: "mine", Capability: TLS, Shown: []Capability{HTTP}, Latency: 1234 * time.Millisecond, Detail: `a\x1b`}},
	}
	data := want.Encode()
	const text = `{"c":["http","socks5"],"f":["a","b"],"y":"DE","a":"elite","n":1700000000123,"m":"http://us:pw@198.51.100.1:80","p":2,"x":3,` +
		`"t":1700000000456,"k":1700000000400,"l":[{"t":1700000000456,"u":"http","v":"fail","o":"tls_failed","s":"tls","j":"mine","a":"tls","h":["http"],"latency_ms":1234,"d":"a\\x1b"}]}`
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
	if _, err := DecodeRecord([]byte("x")); err == nil || err.Error() != "record: invalid character 'x' looking for beginning of value" {
		t.Errorf("no record: %v", err)
	}
}

// TestAfterLeavesTheRecordAlone: records are values, and rounds of one endpoint
// may be tried out on one record.
func TestAfterLeavesTheRecordAlone(t *testing.T) {
	rules := testRules()
	round := func(at int64, results ...Result) Round {
		return Round{At: time.UnixMilli(at), Results: results, Verdict: rules.Judge(results, nil)}
	}
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
	if len(a.Last) != keptResults || a.Last[0].At != time.UnixMilli(18) {
		t.Errorf("kept %+v", a.Last)
	}
}

// TestH5_RiseAndFall runs rounds of every kind, through a store and back, against
// a model that counts in the plainest way.
func TestH5_RiseAndFall(t *testing.T) {
	outcomes := map[State][]Outcome{
		Pass:         {OK},
		Fail:         {Refused, DialTimeout, Timeout, Garbage, WrongContent, NonceMissing},
		Inconclusive: {LocalDescriptors, LocalResolver, Cancelled, Unknown, JudgeAddress},
	}
	rapid.Check(t, func(t *rapid.T) {
		rules := testRules()
		rules.Rise, rules.Fall = rapid.IntRange(1, 4).Draw(t, "rise"), rapid.IntRange(1, 4).Draw(t, "fall")
		rec := Record{}
		var history []State // since the last change of membership decides nothing, all of it
		member := false
		t.Repeat(map[string]func(*rapid.T){
			"round": func(t *rapid.T) {
				state := rapid.SampledFrom([]State{Pass, Fail, Inconclusive}).Draw(t, "state")
				o := rapid.SampledFrom(outcomes[state]).Draw(t, "outcome")
				results := []Result{result(proxyurl.HTTP, 1, o)}
				if o == OK {
					results = []Result{result(proxyurl.HTTP, 1, OK, OK)}
				}
				v := rules.Judge(results, nil)
				rec = rec.After(Round{At: time.UnixMilli(int64(len(history) + 1)), Results: results, Verdict: v})
				d := rules.Decide(rec, v)
				switch d.Action {
				case Admit:
					rec.Member = d.Member
				case Retire:
					rec.Member = ""
				case Move:
					t.Fatalf("moved: %+v", d)
				}

				// The model: the last n rounds that decided anything are all alike.
				if state != Inconclusive {
					history = append(history, state)
				}
				ends := func(n int, s State) bool {
					for i := range n {
						if i >= len(history) || history[len(history)-1-i] != s {
							return false
						}
					}
					return true
				}
				if state == Pass && ends(rules.Rise, Pass) {
					member = true
				}
				if state == Fail && ends(rules.Fall, Fail) {
					member = false
				}
			},
			"restart": func(t *rapid.T) {
				again, err := DecodeRecord(rec.Encode())
				if err != nil {
					t.Fatal(err)
				}
				rec = again
			},
			"": func(t *rapid.T) {
				if (rec.Member != "") != member {
					t.Fatalf("member %v, the model says %v after %v", rec.Member != "", member, history)
				}
				if rec.Passes > 0 && rec.Fails > 0 {
					t.Fatalf("both streaks: %+v", rec)
				}
			},
		})
	})
}

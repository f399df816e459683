package probe

import (
	"testing"
	"time"

	"evenpool/sources/proxyurl"

	"pgregory.net/rapid"
)

// TestH5_RiseAndFall runs rounds of every kind, through a store and back, against
// a model that counts in the plainest way: quarantine, a ban that comes and goes, and
// rounds that had begun before either among them.
func TestH5_RiseAndFall(t *testing.T) {
	outcomes := map[string][]Outcome{
		"pass":         {OK},
		"fail":         {Refused, DialTimeout, Timeout, Garbage, WrongContent, NonceMissing},
		"inconclusive": {LocalDescriptors, LocalResolver, Cancelled, Unknown, JudgeAddress},
		"hostile":      {Tampered, TLSIntercepted, ForbiddenAddress},
	}
	endpoint := result(proxyurl.HTTP, 1).Proxy.Endpoint
	list, err := ParseBanned([]byte(endpoint.String()))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		rules := testRules()
		rules.Rise, rules.Fall = rapid.IntRange(1, 4).Draw(t, "rise"), rapid.IntRange(1, 4).Draw(t, "fall")
		rules.Quarantine = time.Hour
		rec, now := Record{}, time.UnixMilli(1700000000000).UTC()

		// The model: what the rounds that decided anything were, and what happened last.
		var history []string
		member, banned, out := false, false, time.Time{}
		ends := func(n int, kind string) bool {
			for i := range n {
				if i >= len(history) || history[len(history)-1-i] != kind {
					return false
				}
			}
			return true
		}
		barred := func() bool { return banned || now.Before(out) }
		model := func(kind string) {
			switch kind {
			case "pass", "fail":
				history = append(history, kind)
			case "hostile":
				history, member, out = append(history, "fail"), false, now.Add(time.Hour)
			}
			member = member && !barred() && !(kind == "fail" && ends(rules.Fall, "fail"))
			member = member || kind == "pass" && ends(rules.Rise, "pass") && !barred()
		}

		follow := func(d Decision) {
			switch d.Action {
			case Admit:
				rec.Member = d.Member
			case Retire:
				rec.Member = ""
			case Move:
				t.Fatalf("moved: %+v", d)
			}
		}
		round := func(t *rapid.T) {
			kind := rapid.SampledFrom([]string{"pass", "pass", "fail", "inconclusive", "hostile"}).Draw(t, "kind")
			o := rapid.SampledFrom(outcomes[kind]).Draw(t, "outcome")
			results := []Result{result(proxyurl.HTTP, 1, o)}
			if o == OK {
				results = []Result{result(proxyurl.HTTP, 1, OK, OK)}
			}
			v := judged(rules, rec, now.UnixMilli(), results...)
			rec = rec.After(v)
			follow(rules.Decide(rec, v.Verdict))
			model(kind)
		}
		t.Repeat(map[string]func(*rapid.T){
			"turn": func(t *rapid.T) {
				if bar := rules.Bar(endpoint, rec, now); bar.Bars() {
					follow(bar.Decision(rec))
					member = false
					return
				}
				if barred() {
					t.Fatalf("not barred, but banned %v, out until %s", banned, out)
				}
				round(t)
			},
			"begun before": round,
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
			},
			"ban": func(t *rapid.T) {
				if banned = !banned; banned {
					rules.Banned = list
				} else {
					rules.Banned = nil
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

// FuzzDecodeRecord: whatever others put into the store, a record is within its
// limits, can be judged and explained, and is the same after it was stored again.
func FuzzDecodeRecord(f *testing.F) {
	for _, text := range []string{`{}`, `{"p":1,"x":-1}`, `{"r":[[1],[1,2,3,4,5],[-1,9e9,3]]}`, `{"w":{"t":5,"h":["tls","x"]}}`,
		`{"e":[{"i":"::ffff:1.2.3.4"},{"i":"fe80::1%x"},{"i":""}]}`, `{"g":[{"n":"b"},{"n":"a","o":"ok"},{"n":"b"}]}`,
		`{"l":[{"t":1,"u":"http","v":"pass","o":"ok","h":["http"]}],"m":"http://1.2.3.4:80","t":9223372036854775807}`} {
		f.Add([]byte(text))
	}
	rules := everyRule()
	endpoint := result(proxyurl.HTTP, 1).Proxy.Endpoint
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := DecodeRecord(data)
		if err != nil {
			return
		}
		if len(rec.Last) > keptResults || len(rec.Rounds) > keptRounds || len(rec.Exits) > keptExits || len(rec.Targets) > keptTargets {
			t.Fatalf("too much: %+v", rec)
		}
		text := rec.Encode()
		again, err := DecodeRecord(text)
		if err != nil || string(again.Encode()) != string(text) {
			t.Fatalf("%s\nbecame\n%s, %v", text, again.Encode(), err)
		}
		now := time.UnixMilli(1700000000000)
		rules.Explain(endpoint, rec, now)
		rules.Reconsider(endpoint, rec, now)
		v := judged(rules, rec, now.UnixMilli(), result(proxyurl.HTTP, 1, OK, OK))
		rules.Decide(rec.After(v), v.Verdict)
	})
}

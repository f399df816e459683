package judge

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

var testKey = Key(strings.Repeat("k", 32))

// signed asks a judge that has the key, and reads its answer as a prober does.
func signed(t *testing.T, header http.Header) Answer {
	t.Helper()
	w := ask(t, &Handler{Key: testKey}, "http://judge.example.org/?nonce="+nonce, header)
	var a Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestP2_TheJudgesWordCannotBeForged: an answer that differs in anything from
// what the judge signed is refused.
func TestP2_TheJudgesWordCannotBeForged(t *testing.T) {
	good := func() Answer {
		return signed(t, http.Header{"Via": {"1.1 a", "1.1 b"}, "Accept": {"*/*"}, "X-Forwarded-For": {"198.51.100.7"}})
	}
	if err := good().Verify(testKey); err != nil {
		t.Fatalf("the judge's own answer: %v", err)
	}
	other := good()
	other.Nonce = "ffeeddccbbaa99887766554433221100"
	other.Sign(testKey)
	for _, test := range []struct {
		name  string
		forge func(a *Answer)
		want  error
	}{
		{"other nonce: a replay", func(a *Answer) { a.Nonce = other.Nonce }, ErrForged},
		{"the signature of another answer", func(a *Answer) { a.Signature = other.Signature }, ErrForged},
		{"other key", func(a *Answer) { a.Sign(Key(strings.Repeat("j", 32))) }, ErrForged},
		{"other address", func(a *Answer) { a.Address = "203.0.113.8" }, ErrForged},
		{"no address", func(a *Answer) { a.Address = "" }, ErrForged},
		{"other host", func(a *Answer) { a.Host = "other.example.org" }, ErrForged},
		{"other time", func(a *Answer) { a.TimeMS++ }, ErrForged},
		{"other version", func(a *Answer) { a.Version++ }, ErrForged},
		{"header changed", func(a *Answer) { a.Headers["Via"][0] = "1.1 c" }, ErrForged},
		{"header removed", func(a *Answer) { delete(a.Headers, "X-Forwarded-For") }, ErrForged},
		{"header added", func(a *Answer) { a.Headers["Forwarded"] = nil }, ErrForged},
		{"header's name changed", func(a *Answer) {
			a.Headers["X-Forwarded-Foe"] = a.Headers["X-Forwarded-For"]
			delete(a.Headers, "X-Forwarded-For")
		}, ErrForged},
		{"value removed", func(a *Answer) { a.Headers["Via"] = a.Headers["Via"][:1] }, ErrForged},
		{"value added", func(a *Answer) { a.Headers["Via"] = append(a.Headers["Via"], "") }, ErrForged},
		{"values swapped", func(a *Answer) { v := a.Headers["Via"]; v[0], v[1] = v[1], v[0] }, ErrForged},
		{"values joined", func(a *Answer) { a.Headers["Via"] = []string{"1.1 a1.1 b"} }, ErrForged},
		{"value moved to its name", func(a *Answer) { a.Headers["Accept*"] = []string{"/*"}; delete(a.Headers, "Accept") }, ErrForged},
		{"all headers removed", func(a *Answer) { a.Headers = nil }, ErrForged},
		{"signature cut", func(a *Answer) { a.Signature = a.Signature[:62] }, ErrForged},
		{"signature longer", func(a *Answer) { a.Signature += "00" }, ErrForged},
		{"signature of zeros", func(a *Answer) { a.Signature = strings.Repeat("0", 64) }, ErrForged},
		{"signature that is no number", func(a *Answer) { a.Signature = strings.Repeat("x", 64) }, ErrForged},
		{"no signature", func(a *Answer) { a.Signature = "" }, ErrUnsigned},
	} {
		a := good()
		test.forge(&a)
		if err := a.Verify(testKey); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	// Without a key anybody can sign, so it proves nothing.
	a := good()
	a.Sign(nil)
	if err := a.Verify(nil); !errors.Is(err, ErrNoKey) {
		t.Errorf("verified with no key: %v", err)
	}
}

// TestUnsigned: a judge without a key does not pretend.
func TestUnsigned(t *testing.T) {
	w := ask(t, new(Handler), "/?nonce="+nonce, nil)
	if strings.Contains(w.Body.String(), "signature") {
		t.Errorf("answer %s", w.Body)
	}
}

// TestASignatureStandsStill: judges and probers are updated one after the other.
// Whoever changes this changes Version.
func TestASignatureStandsStill(t *testing.T) {
	a := Answer{Version, nonce, "203.0.113.9", "judge.example.org", map[string][]string{"Via": {"1.1 a"}, "Accept": {}}, 1700000000123, ""}
	a.Sign(testKey)
	const want = "61952458f264fabece8ef14ee701a7e79d138776d0a3aa828c005d13060ff364"
	if a.Signature != want {
		t.Errorf("signature %s, want %s", a.Signature, want)
	}
}

// FuzzSignedAnswer: whatever a request holds, the judge's answer verifies behind
// JSON, and does not when a byte of it has changed its meaning.
func FuzzSignedAnswer(f *testing.F) {
	f.Add(nonce, "203.0.113.9", "judge.example.org", "Via", "1.1 a", int64(1))
	f.Add("", "", "", "\xff", "\xe2\x28\xa1\x00<>", int64(-1))
	f.Fuzz(func(t *testing.T, nonce, address, host, name, value string, ms int64) {
		a := Answer{Version, nonce, address, host, map[string][]string{name: {value, name}, value: nil}, ms, ""}
		a.Sign(testKey)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var b Answer
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		if err := b.Verify(testKey); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		b.Headers = map[string][]string{name + value: {name}}
		if reflect.DeepEqual(a.Headers, b.Headers) {
			return
		}
		if err := b.Verify(testKey); !errors.Is(err, ErrForged) {
			t.Errorf("with other headers: %v", err)
		}
	})
}

// FuzzVerify: nobody who has not got the key finds an answer that verifies.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"evenpool_judge":2,"nonce":"00","address":"1.2.3.4","host":"h","headers":{"Via":["a"]},"time_ms":1,"signature":"00"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a Answer
		if json.Unmarshal(text, &a) == nil && a.Verify(testKey) == nil {
			t.Errorf("verified: %q", text)
		}
	})
}

package daemon

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"evenpool/sources/proxyurl"
)

// mmdb makes a database: a record for each prefix.
func mmdb(t testing.TB, kind string, version int, records map[string]mmdbtype.Map) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: kind, IPVersion: version, BuildEpoch: 1700000000})
	if err != nil {
		t.Fatal(err)
	}
	for prefix, record := range records {
		_, network, err := net.ParseCIDR(prefix)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Insert(network, record); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := tree.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func inCountry(code string) mmdbtype.Map {
	return mmdbtype.Map{"continent": mmdbtype.Map{"code": mmdbtype.String("EU")}, "country": mmdbtype.Map{"iso_code": mmdbtype.String(code), "geoname_id": mmdbtype.Uint32(7)}}
}

func inSystem(number uint32) mmdbtype.Map {
	return mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(number), "autonomous_system_organization": mmdbtype.String("AS of Example")}
}

func countries(t testing.TB) []byte {
	return mmdb(t, "Example-Country", 6, map[string]mmdbtype.Map{"1.2.3.0/24": inCountry("DE"), "2a00:1::/32": inCountry("FR"), "1.2.4.0/24": {"continent": mmdbtype.Map{"code": mmdbtype.String("EU")}}})
}

func systems(t testing.TB) []byte {
	return mmdb(t, "Example-ASN", 4, map[string]mmdbtype.Map{"1.2.3.0/24": inSystem(3320)})
}

// put replaces a file as a careful writer does.
func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestGeoIP(t *testing.T) {
	dir := t.TempDir()
	country, asn := filepath.Join(dir, "country.mmdb"), filepath.Join(dir, "asn.mmdb")
	put(t, country, countries(t))
	put(t, asn, systems(t))
	for _, test := range []struct {
		country, asn, addr, wantCountry string
		wantASN                         uint32
	}{
		{country, asn, "1.2.3.4", "DE", 3320},
		{country, asn, "::ffff:1.2.3.4", "DE", 3320},
		{country, asn, "2a00:1::5", "FR", 0}, // the other file is about IPv4 alone
		{country, asn, "1.2.4.1", "", 0},     // a record without a country
		{country, asn, "9.9.9.9", "", 0},
		{country, "", "1.2.3.4", "DE", 0},
		{"", asn, "1.2.3.4", "", 3320},
	} {
		g, err := OpenGeoIP(test.country, test.asn)
		if err != nil {
			t.Fatal(err)
		}
		if c, n := g.Geo()(netip.MustParseAddr(test.addr)); c != test.wantCountry || n != test.wantASN {
			t.Errorf("%s: %q, %d", test.addr, c, n)
		}
	}
	g, err := OpenGeoIP("", "")
	if changed, refreshErr := g.Refresh(); err != nil || g.Geo() != nil || changed || refreshErr != nil {
		t.Errorf("nothing configured: %v, %v", err, refreshErr)
	}
}

// TestGeoIPOfOtherMakers: the same facts lie elsewhere.
func TestGeoIPOfOtherMakers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flat.mmdb")
	for _, record := range []mmdbtype.Map{
		{"country_code": mmdbtype.String("de"), "country": mmdbtype.String("Germany"), "asn": mmdbtype.String("AS3320")},
		{"country": mmdbtype.String("DE"), "asn": mmdbtype.String("AS3320")},
	} {
		put(t, path, mmdb(t, "flat", 6, map[string]mmdbtype.Map{"1.2.3.0/24": record}))
		g, err := OpenGeoIP(path, path)
		if err != nil {
			t.Fatal(err)
		}
		if c, n := g.Place(netip.MustParseAddr("1.2.3.4")); c != "DE" || n != 3320 {
			t.Errorf("%q, %d", c, n)
		}
	}
}

func TestGeoIPFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.mmdb")
	whole := countries(t)
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":     {nil, "not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked"},
		"text":      {[]byte("<html>404</html>"), "not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked"},
		"half":      {whole[:len(whole)/2], "not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked"},
		"its end":   {whole[len(whole)-60:], "not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked"},
		"of cities": {mmdb(t, "Example-ASN", 4, map[string]mmdbtype.Map{"1.2.3.0/24": inSystem(3320)}), `its type is "Example-ASN", and it has no countries (country.iso_code, country_code or country)`},
		"void":      {mmdb(t, "Void\x1b[2J", 4, nil), `its type is "Void\\x1b[2J", and it has no countries (country.iso_code, country_code or country)`},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, path, test.data)
			if _, err := OpenGeoIP(path, ""); err == nil || !strings.HasPrefix(err.Error(), "geoip.country: "+path+": "+test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	put(t, path, whole)
	_, err := OpenGeoIP(dir, path+".missing")
	if err == nil || err.Error() != "geoip.country: "+dir+": not a regular file\ngeoip.asn: "+path+".missing: no such file or directory" {
		t.Errorf("got %v", err)
	}
	_, err = OpenGeoIP("", path)
	if err == nil || err.Error() != "geoip.asn: "+path+`: its type is "Example-Country", and it has no autonomous systems (autonomous_system_number or asn)` {
		t.Errorf("got %v", err)
	}
}

// TestGeoIPDamaged: whatever single byte of a database is wrong, it is refused or
// gives some answer, and nothing worse.
func TestGeoIPDamaged(t *testing.T) {
	whole := countries(t)
	for i := range whole {
		data := bytes.Clone(whole)
		data[i] ^= 0xff
		if db, err := countryDB(data); err == nil {
			for _, addr := range []string{"1.2.3.4", "1.2.4.1", "9.9.9.9", "2a00:1::5", "::"} {
				db.lookup(netip.MustParseAddr(addr))
			}
		}
	}
}

// TestKeptFileIsReadAgain while it is in use; what is not sound changes nothing, and
// is said once.
func TestKeptFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "country.mmdb")
	put(t, path, countries(t))
	g, err := OpenGeoIP(path, "")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr("1.2.3.4")
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c, _ := g.Place(addr); c != "DE" && c != "IT" {
					t.Errorf("got %q", c)
					return
				}
			}
		})
	}
	want := func(step, country, text string, changed bool) {
		t.Helper()
		did, err := g.Refresh()
		if got, _ := g.Place(addr); got != country || did != changed || (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q, changed %v, %v", step, got, did, err)
		}
	}
	want("as it was", "DE", "", false)
	put(t, path, mmdb(t, "x", 6, map[string]mmdbtype.Map{"1.2.3.0/24": inCountry("IT")}))
	want("another", "IT", "", true)
	want("the same", "IT", "", false)
	put(t, path, countries(t)[:100])
	want("cut", "IT", "cut short", false)
	want("still cut", "IT", "", false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("gone", "IT", "no such file", false)
	want("still gone", "IT", "", false)
	put(t, path, countries(t))
	want("back", "DE", "", true)
	// In place, with the same size and an old time: its change time tells.
	data := mmdb(t, "Example-Country", 6, map[string]mmdbtype.Map{"1.2.3.0/24": inCountry("IT"), "2a00:1::/32": inCountry("FR"), "1.2.4.0/24": {"continent": mmdbtype.Map{"code": mmdbtype.String("EU")}}})
	info, _ := os.Stat(path)
	if err := os.WriteFile(path, data, 0o600); err != nil || int64(len(data)) != info.Size() {
		t.Fatal(err, len(data), info.Size())
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	want("in place", "IT", "", true)
	close(stop)
	group.Wait()
}

// TestBannedFile: a list that is not sound, or is gone, bans as before; an empty one
// bans nobody.
func TestBannedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "banned.txt")
	put(t, path, []byte("1.2.3.4:80\n"))
	f, err := openBanned(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := proxyurl.ParseEndpoint("1.2.3.4:80")
	if err != nil {
		t.Fatal(err)
	}
	want := func(step string, banned bool, text string) {
		t.Helper()
		_, err := f.refresh()
		if _, got := f.Contains(e); got != banned || (err == nil) != (text == "") || err != nil && err.Error() != path+": "+text {
			t.Errorf("%s: banned %v, %v", step, got, err)
		}
	}
	want("as it was", true, "")
	put(t, path, []byte("5.6.7.8\n1.2.3.4:80 now and then\n"))
	want("not sound", true, `line 2: "1.2.3.4:80 now and then": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("gone", true, "no such file or directory")
	put(t, path, []byte("# nobody\n"))
	want("empty", false, "")
	put(t, path, []byte("1.2.0.0/16\n"))
	want("again", true, "")
	if entry, banned := f.ContainsAddr(netip.MustParseAddr("1.2.9.9")); !banned || entry != "1.2.0.0/16" {
		t.Errorf("an address: %q", entry)
	}
	if _, err := openBanned(path + ".missing"); err == nil || err.Error() != path+".missing: no such file or directory" {
		t.Errorf("missing: %v", err)
	}
}

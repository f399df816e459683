package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"

	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// maxGeoBytes bounds a database: the largest that are sold have some 100 MiB for
// cities and far less for countries.
const maxGeoBytes = 512 << 20

// geoSample is how many networks of a database are looked at to see what is in it.
const geoSample = 10_000

// GeoIP knows the countries and autonomous systems of addresses, from files in the
// MaxMind DB format (https://maxmind.github.io/MaxMind-DB/). Its files are read again
// when they change; one that cannot be read leaves the one before in use. It is safe
// for concurrent use.
type GeoIP struct {
	country, asn *keptFile[geoDB] // nil: not configured
}

// OpenGeoIP reads the files at the paths; "" for none of a kind. It holds them in
// memory. An error is the *config.FileErrors of both, joined.
func OpenGeoIP(country, asn string) (*GeoIP, error) {
	g := &GeoIP{}
	var errs [2]error
	if country != "" {
		g.country, errs[0] = openKept(country, maxGeoBytes, countryDB)
	}
	if asn != "" {
		g.asn, errs[1] = openKept(asn, maxGeoBytes, asnDB)
	}
	if err := errors.Join(config.InKey("geoip.country", country, errs[0]), config.InKey("geoip.asn", asn, errs[1])); err != nil {
		return nil, err
	}
	return g, nil
}

// Refresh reads the files that changed. It looks at their times alone otherwise. An
// error says which cannot be used, once for each change.
func (g *GeoIP) Refresh() (changed bool, err error) {
	for key, f := range map[string]*keptFile[geoDB]{"geoip.country": g.country, "geoip.asn": g.asn} {
		if f != nil {
			did, e := f.refresh()
			changed, err = changed || did, errors.Join(err, config.InKey(key, f.path, e))
		}
	}
	return changed, err
}

// Place is a probe.Geo.
func (g *GeoIP) Place(addr netip.Addr) (country string, asn uint32) {
	if g.country != nil {
		country = countryCode(g.country.get().lookup(addr))
	}
	if g.asn != nil {
		asn = systemNumber(g.asn.get().lookup(addr))
	}
	return country, asn
}

// Geo is what probing gets; nil where no file is configured.
func (g *GeoIP) Geo() probe.Geo {
	if g == nil || g.country == nil && g.asn == nil {
		return nil
	}
	return g.Place
}

// geoDB is a database and where in its records lies what is looked for.
type geoDB struct {
	reader *maxminddb.Reader
	path   []any
}

// lookup returns what lies there, as a text; "" for nothing. A record that cannot be
// read is one that is not there.
func (db geoDB) lookup(addr netip.Addr) string {
	addr = addr.Unmap()
	if addr.Is6() && db.reader.Metadata.IPVersion == 4 {
		return ""
	}
	return textAt(db.reader.Lookup(addr), db.path)
}

// textAt returns a text or number in a record as a text.
func textAt(result maxminddb.Result, path []any) string {
	var value any
	if result.DecodePath(&value, path...) != nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case uint64:
		return strconv.FormatUint(v, 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	}
	return ""
}

// The places where databases have what is looked for: MaxMind's and DB-IP's first,
// then IPinfo's.
var (
	countryPaths = [][]any{{"country", "iso_code"}, {"country_code"}, {"country"}}
	asnPaths     = [][]any{{"autonomous_system_number"}, {"asn"}}
)

func countryDB(data []byte) (geoDB, error) {
	return openGeo(data, countryPaths, "countries (country.iso_code, country_code or country)", func(s string) bool { return countryCode(s) != "" })
}

func asnDB(data []byte) (geoDB, error) {
	return openGeo(data, asnPaths, "autonomous systems (autonomous_system_number or asn)", func(s string) bool { return systemNumber(s) != 0 })
}

// openGeo finds out where a database has what is looked for, and refuses one that
// has it nowhere: of another kind, it would know no place at all.
func openGeo(data []byte, paths [][]any, what string, sound func(string) bool) (geoDB, error) {
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return geoDB{}, errors.New("not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked")
	}
	left := geoSample
	for result := range reader.Networks() {
		if err := result.Err(); err != nil {
			return geoDB{}, fmt.Errorf("damaged or cut short: %s", proxyurl.Escape(err.Error(), 200))
		}
		for _, path := range paths {
			if sound(textAt(result, path)) {
				return geoDB{reader, path}, nil
			}
		}
		if left--; left == 0 {
			break
		}
	}
	return geoDB{}, fmt.Errorf("its type is %q, and it has no %s", proxyurl.Escape(reader.Metadata.DatabaseType, 60), what)
}

// countryCode returns an ISO 3166-1 code in upper case; "" for what has not its form.
func countryCode(s string) string {
	if len(s) != 2 || strings.Trim(strings.ToUpper(s), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return strings.ToUpper(s)
}

// systemNumber reads "3320" or "AS3320"; 0 for anything else.
func systemNumber(s string) uint32 {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(s), "AS"), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

package daemon

import (
	"crypto/x509"
	"fmt"

	"evenpool/daemon/config"
	"evenpool/probe"
)

// files are what the configuration names, as it was at the start.
type files struct {
	geo     *GeoIP
	targets map[string]*target
	pools   []poolFiles // in the configuration's order
}

type poolFiles struct {
	judges     []probe.Judge
	banned     *bannedFile    // nil: none
	proxyRoots *x509.CertPool // nil: the system's
}

// openFiles reads all files that the configuration names. Its error is a
// config.Errors, with all that cannot be used.
func openFiles(cfg *config.Config) (f files, err error) {
	var wrong config.Errors
	note := func(section string, err error) { wrong = append(wrong, cfg.FilesIn(section, err)...) }
	f.geo, err = OpenGeoIP(cfg.GeoIP.Country, cfg.GeoIP.ASN)
	note("", err)
	judges := map[string]probe.Judge{}
	for i, each := range cfg.Judges {
		judges[each.Name], err = each.Prober()
		note(fmt.Sprintf("judges[%d]", i), err)
	}
	f.targets = map[string]*target{}
	for i, each := range cfg.Targets {
		t, err := each.Prober()
		note(fmt.Sprintf("targets[%d]", i), err)
		f.targets[each.Name] = newTarget(t, each.MinInterval)
	}
	for i, each := range cfg.Pools {
		var p poolFiles
		for _, name := range each.Judges {
			p.judges = append(p.judges, judges[name])
		}
		section := fmt.Sprintf("pools[%d]", i)
		if path := each.Eligibility.BannedFile; path != "" {
			banned, err := openBanned(path)
			note(section+".eligibility", config.InKey("banned_file", path, err))
			p.banned = &banned
		}
		p.proxyRoots, err = each.Probe.ProxyRootCAs()
		note(section+".probe", err)
		f.pools = append(f.pools, p)
	}
	if len(wrong) > 0 {
		wrong.Sort()
		return files{}, wrong
	}
	return f, nil
}

// CheckFiles says whether New would take the files that a configuration names; its
// error is New's.
func CheckFiles(cfg *config.Config) error {
	_, err := openFiles(cfg)
	return err
}
